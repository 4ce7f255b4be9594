"""Retention: which finished runs are old enough, and dropping them with everything that is folded from their logs; and
with them what of the desk's own rows is over."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Q, QuerySet

from agents.spec import FINAL
from control.incidents import retention as desk
from control.incidents.trees import drop_trees
from control.runs.models import Event, IdempotencyKey, Run

AT_ONCE = 50


def old_trees(before: datetime) -> QuerySet[Run, Any]:
    """Roots of trees in which every run had ended before this time; a tree stays or goes as a whole."""
    ended = Q(status__in=[status.value for status in FINAL])
    trees = Run.objects.values("root").annotate(open=Count("pk", filter=~ended), last=Max("finished_at"))
    return trees.filter(open=0, last__lt=before).values_list("root", flat=True)


def count(before: datetime) -> dict[str, int]:
    """What `drop` would take away now."""
    gone = {"runs": 0, "events": 0, "postmortems": 0}
    for roots in _in_parts(list(old_trees(before))):
        runs = list(Run.objects.filter(root__in=roots).values_list("pk", flat=True))
        gone["runs"] += len(runs)
        gone["events"] += Event.objects.filter(run_id__in=runs).count()
        gone["postmortems"] += desk.postmortems_of(runs)
    return gone | desk.count(before)


def drop(before: datetime) -> dict[str, int]:
    """Delete the old trees, some at a time, so that no transaction is long. Audit rows are never touched."""
    gone = {"runs": 0, "events": 0, "postmortems": 0}
    for roots in _in_parts(list(old_trees(before))):
        for name, number in drop_trees(roots).items():
            gone[name] += number
    # A key that old is not repeated any more.
    IdempotencyKey.objects.filter(created_at__lt=before).delete()
    return gone | desk.drop(before)


def _in_parts(roots: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(roots), AT_ONCE):
        yield roots[start : start + AT_ONCE]
