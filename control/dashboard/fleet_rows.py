"""The fleet as rows: which runs a filter means, how a row is written, and the strip of numbers above."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, Max, Min, Q, QuerySet, Sum
from django.db.models.fields.json import KeyTransform
from django.utils import timezone
from django.utils.safestring import SafeString

from agents.spec import ACTIVE, FINAL, Status
from control.dashboard import gauges, states
from control.dashboard.render import part
from control.runs.models import Call, Run, Worker

PAGE = 60
_ACTIVE = [status.value for status in ACTIVE]
_FINAL = [status.value for status in FINAL]
ALIVE = timedelta(seconds=20)
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


def in_view(runs: QuerySet[Run], view: str, me: str, now: datetime) -> QuerySet[Run]:
    if view == "active":
        return runs.filter(status__in=_ACTIVE)
    if view == "needs":
        return runs.filter(status=Status.WAITING.value, waiting_for__in=["question", "approval"])
    if view == "tripped":
        bad = [Status.TRIPPED.value, Status.FAILED.value, Status.LOST.value]
        return runs.filter(status__in=bad, finished_at__gte=now - timedelta(hours=24))
    if view == "mine":
        return runs.filter(owner=me)
    return runs


def page_of(runs: QuerySet[Run], cursor: str) -> tuple[list[Run], str]:
    """Families together, the newest first (ids are ordered by time), and the cursor of the next page."""
    ordered = runs.order_by("-root", "path").defer("final")
    if "~" in cursor:
        root, _, path = cursor.partition("~")
        ordered = ordered.filter(Q(root__lt=root) | Q(root=root, path__gt=path))
    found = list(ordered[: PAGE + 1])
    if len(found) <= PAGE:
        return found, ""
    last = found[PAGE - 1]
    return found[:PAGE], f"{last.root}~{last.path}"


def row_html(run: Run, now: datetime | None = None) -> SafeString:
    """One row, the same for every viewer."""
    now = now or timezone.now()
    fuses = {fuse.name: fuse for fuse in gauges.fuses(run, now)}
    return part(
        "runs/fleet/_row.html",
        {
            "run": run,
            "state": states.state_of(run, now),
            "final": Status(run.status).final,
            "depth": run.path.count("/"),
            "turns": fuses["max_turns"],
            "tokens": fuses["max_tokens"],
            "cost": fuses["max_cost"],
            "pips": states.pips(run.rung),
        },
    )


def rows_html(runs: Iterable[Run]) -> list[SafeString]:
    now = timezone.now()
    return [row_html(run, now) for run in runs]


def strip_html() -> SafeString:
    return part("runs/fleet/_strip.html", strip(timezone.now()))


def strip(now: datetime) -> dict[str, Any]:
    """The numbers above the table."""
    active = dict(Run.objects.filter(status__in=_ACTIVE).values_list("status").annotate(n=Count("id")).order_by())
    today = Run.objects.filter(finished_at__gte=now - timedelta(hours=24))
    ended = dict(today.values_list("status").annotate(n=Count("id")).order_by())
    order = ("running", "waiting", "stopping", "queued")
    ends = ("completed", "exhausted", "interrupted", "tripped", "failed", "lost")
    return {
        "now": [{"state": states.WORDS[name], "count": active.get(name, 0)} for name in order],
        "day": [{"state": states.WORDS[name], "count": ended.get(name, 0)} for name in ends],
        "spend": _spend(now),
        "workers": _workers(now),
        "stops": _stops(today),
    }


def _spend(now: datetime) -> dict[str, Any]:
    lively = Run.objects.filter(last_activity_at__gte=now - timedelta(minutes=1)).values("id")[:500]
    minute = Call.objects.filter(run_id__in=lively, completed_at__gte=now - timedelta(minutes=1)).aggregate(
        usd=Sum("cost_usd"), taken=Sum("input_tokens"), made=Sum("output_tokens")
    )
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    today = Run.objects.filter(created_at__gte=day).aggregate(
        usd=Sum("cost_usd"), taken=Sum("input_tokens"), made=Sum("output_tokens")
    )
    return {
        "usd": minute["usd"] or Decimal(0),
        "tokens": (minute["taken"] or 0) + (minute["made"] or 0),
        "today": today["usd"] or Decimal(0),
        "tokens_today": (today["taken"] or 0) + (today["made"] or 0),
    }


def _workers(now: datetime) -> dict[str, Any]:
    up = Worker.objects.filter(kind="worker", gone_at=None, seen_at__gte=now - ALIVE)
    found = up.aggregate(up=Count("id"), capacity=Sum("capacity"), seen=Max("seen_at"))
    held = Run.objects.filter(lease_until__gte=now, status__in=_ACTIVE).count()
    oldest = Run.objects.filter(status=Status.QUEUED.value).aggregate(at=Min("created_at"))["at"]
    return {"up": found["up"], "capacity": found["capacity"] or 0, "runs": held, "oldest": oldest}


def _stops(today: QuerySet[Run]) -> dict[str, Any]:
    """Seconds that interrupts of the last day took, as their own reports say."""
    reports = today.filter(status=Status.INTERRUPTED.value).values_list("stopped", flat=True)[:1000]
    known: list[dict[str, Any]] = [report for report in reports if isinstance(report, dict)]
    seconds = sorted(float(report["seconds"]) for report in known if report.get("seconds") is not None)
    return {
        "p50": quantile(seconds, 0.5),
        "p95": quantile(seconds, 0.95),
        "unverified": sum(1 for report in known if not report.get("verified")),
    }


def quantile(ordered: Sequence[float], share: float) -> float | None:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else None
