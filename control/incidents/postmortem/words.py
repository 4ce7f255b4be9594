"""How a postmortem writes numbers, times and text that agents wrote: plain words for pages and files alike."""

from datetime import UTC, datetime
from decimal import Decimal

from agents.policy.redaction import cut, make_safe
from control.plain import visible

UNKNOWN = "unknown"


def told(text: object, limit: int = 200) -> str:
    """One line of text from outside: secrets hidden before it is cut, hidden characters written out."""
    safe = visible(make_safe(str(text if text is not None else "")).text)
    line = " ".join(safe.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def block(text: str, limit: int = 20_000) -> str:
    """The same for text of several lines."""
    return cut(visible(make_safe(text).text), limit)[0]


def money(value: Decimal | None) -> str:
    """`$1.84`; small sums keep the figures that say something."""
    if value is None:
        return UNKNOWN
    if value == 0 or abs(value) >= 1:
        return f"${value:,.2f}"
    if abs(value) < Decimal("0.0001"):
        return "<$0.0001"
    return f"${value:.3f}" if abs(value) >= Decimal("0.1") else f"${value:.4f}"


def span(seconds: float | None) -> str:
    """`38 ms`, `4.1 s`, `6 m 12 s`, `1 h 14 m`, `3 d 4 h`."""
    if seconds is None:
        return "–"
    seconds = max(0.0, seconds)
    if 0 < seconds < 0.001:
        return "under 1 ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02d} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} m"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"


def clock(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%H:%M:%S")


def day(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def count(number: int, one: str, many: str = "") -> str:
    """`1 call`, `29 calls`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
