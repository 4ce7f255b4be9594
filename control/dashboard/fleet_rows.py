"""The fleet as rows: which runs a filter means, how a row is written, and the strip of numbers above."""

import re
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, Max, Q, QuerySet, Sum
from django.db.models.fields.json import KeyTransform
from django.utils import timezone
from django.utils.safestring import SafeString

from agents.spec import ACTIVE, FINAL, Status
from control.dashboard import gauges, states
from control.dashboard.render import part
from control.incidents import listing
from control.runs import line
from control.runs.models import Call, Run, Worker
from control.runs.recorded import without_recorded

PAGE = 60
_ACTIVE = [status.value for status in ACTIVE]
_FINAL = [status.value for status in FINAL]
ALIVE = timedelta(seconds=20)
# How old the numbers of a page may be; its socket brings new ones at once.
STRIP_KEPT_S = 1.0
MOST_ROWS = 4_000
_rows: dict[str, tuple[tuple[Any, ...], SafeString]] = {}
_TERM = re.compile(r"(agent|status|label|owner|project):(\S+)")

VIEWS: dict[str, str] = {
    "": "All",
    "active": "Active",
    "needs": "Needs me",
    "tripped": "Tripped or failed today",
    "mine": "Mine",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What the address says: a view, and a query such as `agent:importer status:running invoices`."""

    q: str = ""
    view: str = ""
    me: str = ""

    @property
    def any(self) -> bool:
        return bool(self.q or self.view)


def select(filters: Filters, now: datetime) -> QuerySet[Run]:
    """The runs a filter means. Unknown words of a query are looked for in the task."""
    runs = in_view(Run.objects.all(), filters.view, filters.me, now)
    for number, (name, value) in enumerate(_TERM.findall(filters.q)):
        if name == "label":
            key, equals, wanted = value.partition("=")
            # A key of its own, never a path of look-ups: what people type must not become `__regex`.
            kept = runs.alias(**{f"label{number}": KeyTransform(key, "labels")})
            runs = kept.filter(**{f"label{number}": wanted}) if equals else runs.filter(labels__has_key=key)
        else:
            runs = runs.filter(**{name: value})
    for word in _TERM.sub(" ", filters.q).split():
        runs = runs.filter(Q(task__icontains=word) | Q(agent__icontains=word) | Q(id=word.lower()))
    return runs


def active_since(moment: datetime) -> Q:
    """No index knows of last activity, so only those are looked at that can have been active."""
    return (Q(status__in=_ACTIVE) | Q(finished_at__gte=moment)) & Q(last_activity_at__gte=moment)


def in_view(runs: QuerySet[Run], view: str, me: str, now: datetime) -> QuerySet[Run]:
    if view == "active":
        return runs.filter(status__in=_ACTIVE)
    if view == "needs":
        return runs.filter(status=Status.WAITING.value, waiting_for__in=["question", "approval"])
    if view == "tripped":
        bad = [Status.TRIPPED.value, Status.FAILED.value, Status.LOST.value]
        return without_recorded(runs.filter(status__in=bad, finished_at__gte=now - timedelta(hours=24)))
    if view == "mine":
        return runs.filter(owner=me)
    return runs


def page_of(runs: QuerySet[Run], cursor: str) -> tuple[list[Run], str]:
    """Families together, the newest first (ids are ordered by time), and the cursor of the next page."""
    ordered = gauges.with_limits(runs).order_by("-root", "path")
    if "~" in cursor:
        root, _, path = cursor.partition("~")
        ordered = ordered.filter(Q(root__lt=root) | Q(root=root, path__gt=path))
    found = list(ordered[: PAGE + 1])
    if len(found) <= PAGE:
        return found, ""
    last = found[PAGE - 1]
    return found[:PAGE], f"{last.root}~{last.path}"


def row_html(run: Run, now: datetime | None = None) -> SafeString:
    """One row, the same for every viewer. A page is mostly rows, and most of them are as they were: each is written
    once for all that it shows. No word in it ages, since scripts tell how long ago something was."""
    now = now or timezone.now()
    fuses = {fuse.name: fuse for fuse in gauges.fuses(run, now)}
    context = {
        "state": states.state_of(run, now),
        "activity": line.activity(run),
        "turns": fuses["max_turns"],
        "tokens": fuses["max_tokens"],
        "cost": fuses["max_cost"],
        # What has no column of its own, once it is near.
        "near": next((fuses[name] for name in ("max_steps", "max_seconds") if fuses[name].near), None),
    }
    shown = (run.task, run.agent, run.owner, str(run.labels), run.rung, run.errors, run.exit_reason, run.stop_seconds)
    key = (run.last_seq, run.status, run.last_activity_at, str(run.stopped), *context.values(), *shown)
    kept = _rows.get(run.pk)
    if kept is not None and kept[0] == key:
        return kept[1]
    more = {"run": run, "final": Status(run.status).final, "depth": run.path.count("/")}
    html = part("runs/fleet/_row.html", {**context, **more})
    if len(_rows) > MOST_ROWS:
        _rows.clear()
    _rows[run.pk] = (key, html)
    return html


def rows_html(runs: Iterable[Run]) -> list[SafeString]:
    now = timezone.now()
    return [row_html(run, now) for run in runs]


class _KeptStrip:
    """One look at the numbers for all pages that are opened within a moment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards both; who comes while one looks waits for what that one finds
        self._at = 0.0
        self._html: SafeString | None = None

    def html(self, most_s: float) -> SafeString:
        with self._lock:
            if self._html is None or time.monotonic() - self._at > most_s:
                began = time.monotonic()
                self._html, self._at = part("runs/fleet/_strip.html", strip(timezone.now())), began
            return self._html

    def forget(self) -> None:
        with self._lock:
            self._html = None


_kept_strip = _KeptStrip()
forget_strip = _kept_strip.forget


def strip_html(most_s: float = STRIP_KEPT_S) -> SafeString:
    """The strip, at most so many seconds old."""
    return _kept_strip.html(most_s)


def strip(now: datetime) -> dict[str, Any]:
    """The numbers above the table."""
    held = Count("id", filter=Q(lease_until__gte=now))
    counted = Run.objects.filter(status__in=_ACTIVE).values_list("status").annotate(n=Count("id"), held=held).order_by()
    found = list(counted)
    active = {status: n for status, n, _ in found}
    today = without_recorded(Run.objects.filter(finished_at__gte=now - timedelta(hours=24)))
    ended = dict(today.values_list("status").annotate(n=Count("id")).order_by())
    order = ("running", "waiting", "stopping", "queued")
    ends = ("completed", "exhausted", "interrupted", "tripped", "failed", "lost")
    return {
        "now": [{"state": states.WORDS[name], "count": active.get(name, 0)} for name in order],
        "day": [{"state": states.WORDS[name], "count": ended.get(name, 0)} for name in ends],
        "spend": _spend(now),
        "workers": _workers(now, sum(held for *_, held in found)),
        "stops": _stops(today),
        "incidents": listing.unresolved(),
    }


def _spend(now: datetime) -> dict[str, Any]:
    paid = without_recorded(Run.objects.all())
    since = now - timedelta(minutes=1)
    lively = paid.filter(active_since(since)).values("id")[:500]
    minute = Call.objects.filter(run_id__in=lively, completed_at__gte=since).aggregate(
        usd=Sum("cost_usd"), taken=Sum("input_tokens"), made=Sum("output_tokens")
    )
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    today = paid.filter(created_at__gte=day).aggregate(
        usd=Sum("cost_usd"), taken=Sum("input_tokens"), made=Sum("output_tokens")
    )
    return {
        "usd": minute["usd"] or Decimal(0),
        "tokens": (minute["taken"] or 0) + (minute["made"] or 0),
        "today": today["usd"] or Decimal(0),
        "tokens_today": (today["taken"] or 0) + (today["made"] or 0),
    }


def _workers(now: datetime, held: int) -> dict[str, Any]:
    up = Worker.objects.filter(kind="worker", gone_at=None, seen_at__gte=now - ALIVE)
    found = up.aggregate(up=Count("id"), capacity=Sum("capacity"), seen=Max("seen_at"))
    return {"up": found["up"], "capacity": found["capacity"] or 0, "runs": held, "queue": line.queue_age()}


def _stops(today: QuerySet[Run]) -> dict[str, Any]:
    """Seconds that interrupts of the last day took, from the request to the end of the run."""
    stopped = today.filter(status=Status.INTERRUPTED.value)
    known = stopped.filter(stop_seconds__isnull=False).order_by("-finished_at")
    seconds = sorted(value or 0.0 for value in known.values_list("stop_seconds", flat=True)[:1000])
    return {
        "p50": quantile(seconds, 0.5),
        "p95": quantile(seconds, 0.95),
        "unverified": stopped.filter(stopped__verified=False).count(),
    }


def quantile(ordered: Sequence[float], share: float) -> float | None:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else None
