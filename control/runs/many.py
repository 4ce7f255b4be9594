"""Many runs at once: who is eligible for a verb now, and who not and why."""

from collections.abc import Mapping
from typing import Any

from django.db.models import Count, Q, QuerySet

from agents.commands import CommandKind
from agents.spec import FINAL, Status
from control.runs.models import Run
from control.runs.selection import Selection, as_id

SAMPLE = 3
VERBS = (CommandKind.INTERRUPT, CommandKind.STEER)


def preview(chosen: Selection, kind: CommandKind = CommandKind.INTERRUPT, **more: Any) -> dict[str, Any]:
    """What the verb would do now. `not_eligible` is grouped by why, each with its count and some ids."""
    found = eligible(chosen, kind)
    sample = found.order_by("-created_at", "-pk").only("id", "agent", "task", "status", "owner", "activity")[:SAMPLE]
    return {
        "dry_run": True,
        "eligible": found.count(),
        "not_eligible": left_out(chosen, kind),
        "sample": [_told(run) for run in sample],
        **more,
    }


def _told(run: Run) -> dict[str, Any]:
    return {"id": run.pk, "agent": run.agent, "task": run.task[:200], "status": run.status, "activity": run.activity}


def active(chosen: Selection) -> QuerySet[Run]:
    return chosen.runs().exclude(status__in=list(FINAL))


_UNDER_WAY = Q(stop_command__isnull=False) | Q(status=Status.STOPPING.value)


def eligible(chosen: Selection, kind: CommandKind) -> QuerySet[Run]:
    """Active runs on which the verb would do something new; notes and stops are both idle on what is stopping."""
    assert kind in VERBS
    return active(chosen).exclude(_UNDER_WAY)


def left_out(chosen: Selection, kind: CommandKind) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = []
    left: Mapping[str, QuerySet[Run]] = {
        "already_finished": chosen.runs().filter(status__in=list(FINAL)),
        "already_stopping": active(chosen).filter(_UNDER_WAY),
    }
    for why, runs in left.items():
        for row in runs.values("status").annotate(count=Count("pk")).order_by("status"):
            newest = runs.filter(status=row["status"]).order_by("-created_at", "-pk")
            some = list(newest.values_list("pk", flat=True)[:SAMPLE])
            groups.append({"why": why, "status": row["status"], "count": row["count"], "sample": some})
    if unknown := _unknown_ids(chosen):
        groups.append({"why": "not_found", "status": None, "count": len(unknown), "sample": unknown[:SAMPLE]})
    return groups


def _unknown_ids(chosen: Selection) -> list[str]:
    if chosen.ids is None:
        return []
    wanted = {given: as_id(given) for given in chosen.ids}
    known = set(Run.objects.filter(pk__in=[k for k in wanted.values() if k]).values_list("pk", flat=True))
    return [given for given, found in wanted.items() if found not in known]
