"""Retention: which finished runs are old enough, and dropping them with everything that is folded from their logs."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Count, Max, Q, QuerySet

from agents.spec import FINAL
from control.runs.models import Call, Command, Event, IdempotencyKey, Receipt, Run, Verdict, WorkspaceLease

AT_ONCE = 50


def old_trees(before: datetime) -> QuerySet[Run, Any]:
    """Roots of trees in which every run had ended before this time; a tree stays or goes as a whole."""
    ended = Q(status__in=[status.value for status in FINAL])
    trees = Run.objects.values("root").annotate(open=Count("pk", filter=~ended), last=Max("finished_at"))
    return trees.filter(open=0, last__lt=before).values_list("root", flat=True)


def count(before: datetime) -> dict[str, int]:
    """What `drop` would take away now."""
    gone = {"runs": 0, "events": 0}
    for roots in _in_parts(list(old_trees(before))):
        runs = list(Run.objects.filter(root__in=roots).values_list("pk", flat=True))
        gone["runs"] += len(runs)
        gone["events"] += Event.objects.filter(run_id__in=runs).count()
    return gone


def drop(before: datetime) -> dict[str, int]:
    """Delete the old trees, some at a time, so that no transaction is long. Audit rows are never touched."""
    gone = {"runs": 0, "events": 0}
    for roots in _in_parts(list(old_trees(before))):
        with transaction.atomic():
            runs = list(Run.objects.filter(root__in=roots).values_list("pk", flat=True))
            gone["events"] += Event.objects.filter(run_id__in=runs).delete()[0]
            for model in (Call, Verdict, WorkspaceLease):
                model.objects.filter(run_id__in=runs).delete()
            commands = list(Command.objects.filter(run_id__in=runs).values_list("pk", flat=True))
            Receipt.objects.filter(Q(run_id__in=runs) | Q(command_id__in=commands)).delete()
            Command.objects.filter(pk__in=commands).delete()
            gone["runs"] += Run.objects.filter(pk__in=runs).delete()[0]
    # A key that old is not repeated any more.
    IdempotencyKey.objects.filter(created_at__lt=before).delete()
    return gone


def _in_parts(roots: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(roots), AT_ONCE):
        yield roots[start : start + AT_ONCE]
