"""How the window writes numbers, times, states and text that agents wrote."""

from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

import orjson
from django import template
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString

from agents.events import stamp
from control import plain, prose
from control.coloured import coloured
from control.dashboard import states

register = template.Library()


@register.filter(is_safe=False)
def seen(value: Any) -> str:
    """Text from agents: escapes stripped, hidden characters shown. Autoescaping follows."""
    return "" if value is None else plain.visible(str(value))


@register.filter
def terminal(value: Any) -> SafeString:
    """What a tool wrote, with its colours as classes."""
    return coloured(str(value or ""))


@register.filter
def laid_out(value: Any) -> SafeString:
    """What a model wrote, with its Markdown laid out; empty where that would say the same."""
    return prose.laid_out(str(value or ""))


@register.filter
def pretty(value: Any) -> str:
    """A value that this version does not know, as JSON."""
    return plain.visible(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode()[:8_000])


@register.filter
def raw_body(value: Any) -> Any:
    return getattr(value, "raw", str(value))


@register.filter
def first_line(value: Any, limit: int = 140) -> str:
    return plain.visible(plain.first_line(str(value or ""), limit))


@register.filter
def count(value: Any) -> str:
    """`3,102`; unknown is a dash."""
    return "–" if value is None else f"{int(value):,}"


@register.filter
def prompt_tokens(usage: Any) -> int:
    """All tokens of a request, cached or not."""
    return sum(int(usage.get(name) or 0) for name in ("input", "cache_read", "cache_write"))


@register.filter
def short(value: Any) -> str:
    """`71.2 k`, `1.40 M`: three figures are enough to act on."""
    if value is None:
        return "–"
    number = float(value)
    if number < 1_000:
        return f"{number:.0f}"
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if number >= size * 0.9995:
            scaled = number / size
            return f"{scaled:.0f} {unit}" if scaled >= 99.95 else f"{scaled:.1f} {unit}"
    return f"{number:.0f}"


@register.filter
def money(value: Any) -> str:
    """`$1.84`; small sums keep the figures that say something; unknown is told, never 0."""
    if value is None or value == "":
        return "unknown"
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return "unknown"
    if amount == 0 or amount >= 1:
        return f"${amount:,.2f}"
    if amount < Decimal("0.0001"):
        return "<$0.0001"
    return f"${amount:.3f}" if amount >= Decimal("0.1") else f"${amount:.4f}"


@register.filter
def duration_ms(value: Any) -> str:
    return "" if value is None else duration(float(value) / 1000)


@register.filter
def duration(value: Any) -> str:
    """`31 ms`, `4.1 s`, `6:12`, `1 h 14 m`."""
    if value is None:
        return ""
    seconds = max(0.0, float(value))
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d}"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} m"


@register.filter
def took(run: Any) -> str:
    """From a run's start to its end."""
    begun, ended = run.started_at, run.finished_at
    return duration((ended - begun).total_seconds()) if begun and ended else ""


@register.filter
def stop_seconds(value: Any) -> str:
    """Seconds of a stop, with two figures behind the point; milliseconds where these would say nothing."""
    if value is None:
        return ""
    seconds = float(value)
    return f"{seconds * 1000:.0f} ms" if seconds < 0.095 else f"{seconds:.2f} s"


def _moment(value: Any) -> datetime | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    return value if isinstance(value, datetime) else None


def _time(value: Any, form: str, otherwise: str) -> SafeString:
    """A time in UTC in this form; the script adds local and relative time on hover."""
    moment = _moment(value)
    if moment is None:
        return SafeString(otherwise)
    moment = moment.astimezone(UTC)
    whole = moment.strftime("%Y-%m-%d %H:%M:%S")
    return format_html('<time datetime="{}" title="{} UTC">{}</time>', stamp(moment), whole, moment.strftime(form))


@register.filter
def clock(value: Any) -> SafeString:
    """A time of day."""
    return _time(value, "%H:%M:%S", "")


@register.filter
def clock_short(value: Any) -> SafeString:
    return _time(value, "%H:%M", "–")


@register.filter
def day(value: Any) -> SafeString:
    """Day and time of something that may be long ago."""
    return _time(value, "%Y-%m-%d %H:%M", "–")


@register.filter
def still(value: Any) -> SafeString:
    """Like `ticking`, for shared parts: no age is written, so that one rendering serves everyone at any time."""
    moment = _moment(value)
    if moment is None:
        return SafeString("")
    word = moment.astimezone(UTC).strftime("%H:%M:%S")
    return format_html('<time datetime="{}" data-since>since {}</time>', stamp(moment), word)


@register.filter
def countdown(value: Any) -> SafeString:
    """When something ends; the script counts down to it."""
    moment = _moment(value)
    if moment is None:
        return SafeString("")
    word = moment.astimezone(UTC).strftime("%H:%M:%S")
    return format_html('<time datetime="{}" data-until>at {} UTC</time>', stamp(moment), word)


@register.filter
def rest(height: float) -> float:
    """Where a bar of this height begins when it stands on the bottom of 100."""
    return round(100 - height, 1)


@register.filter
def iso(value: Any) -> str:
    moment = _moment(value)
    return stamp(moment) if moment else ""


@register.filter
def field(mapping: Any, name: str) -> Any:
    """`mapping[name]` where a template could not say it; None if it is not there."""
    try:
        return mapping[name]
    except (KeyError, TypeError, IndexError):
        return None


@register.filter
def words(code: Any) -> str:
    """`write_memory` as people say it."""
    return str(code).replace("_", " ")


@register.filter
def spread(value: Any, fuse: str) -> str:
    """A number in the unit of the fuse that would hold it."""
    if fuse == "max_cost":
        return money(value)
    return duration(value) if fuse == "max_seconds" else count(int(value))


@register.filter
def browser(agent: Any) -> str:
    """A browser and its system by name, from what it says of itself; more is nobody's business."""
    text = str(agent or "")
    names = ("Edg/Edge", "OPR/Opera", "Firefox/Firefox", "Chrome/Chrome", "Safari/Safari", "curl/curl")
    name = next((word for word in names if word.split("/")[0] + "/" in text), "/A program").split("/")[1]
    systems = ("iPhone", "iPad", "Android", "Windows", "Mac OS", "Linux")
    system = next((word for word in systems if word in text), "")
    return f"{name} on {system}" if system else name


# The same few stand hundreds of times on a page, so each is written once.
@register.simple_tag
@lru_cache(maxsize=512)
def icon(name: str, label: str = "") -> SafeString:
    """One of our own icons. Without a label it is decoration and hidden from screen readers."""
    return render_to_string("_icon.html", {"name": name, "label": label})


@register.simple_tag
@lru_cache(maxsize=16)
def ladder(rung: str | None) -> SafeString:
    """The ladder's rungs as pips, filled up to this one."""
    return render_to_string("runs/_pips.html", {"rung": rung, "pips": states.pips(rung)})


@register.simple_tag
def gauge(share: float | None, label: str = "") -> SafeString:
    """A bar of how much of a limit is used; amber from 80 %, red from 92 %. No limit, no bar."""
    if share is None:
        return SafeString("")
    width = max(0.0, min(100.0, float(share) * 100))
    level = "over" if width >= 92 else "warn" if width >= 80 else "ok"
    return _bar(round(width, 1), level, label)


@lru_cache(maxsize=1024)
def _bar(width: float, level: str, label: str) -> SafeString:
    return render_to_string("_gauge.html", {"width": width, "level": level, "label": label})


# Call state -> (icon, colour class, word)
CALLS = {
    "planned": ("queued", "muted", "waits"),
    "running": ("running", "running", "running"),
    "ok": ("check", "completed", ""),
    "error": ("cross", "failed", "error"),
    "blocked": ("blocked", "failed", "not executed"),
    "stub": ("blocked", "waiting", "unchanged"),
    "denied": ("blocked", "waiting", "denied"),
    "dry_run": ("queued", "muted", "dry run"),
    "not_started": ("queued", "muted", "not started"),
    "timeout": ("hourglass", "failed", "timed out"),
    "stopped": ("square", "interrupted", "stopped"),
    "effect_unknown": ("question", "waiting", "effect unknown"),
    "closed": ("square", "muted", "ended with the run"),
}


@register.filter
def call_icon(state: str) -> str:
    return CALLS.get(state, ("question", "muted", state))[0]


@register.filter
def call_colour(state: str) -> str:
    return CALLS.get(state, ("question", "muted", state))[1]


@register.filter
def call_word(state: str) -> str:
    return CALLS.get(state, ("question", "muted", state))[2]
