"""Dropping trees of ended runs, with everything that is folded from their logs and that people wrote about them."""

from collections.abc import Sequence

from django.db import transaction
from django.db.models import Q

from agents.policy.accounts import run_key
from control.incidents.retention import drop_postmortems
from control.runs.models import (
    Account,
    Call,
    Command,
    Cursor,
    Event,
    Receipt,
    Reservation,
    Run,
    Verdict,
    WorkspaceLease,
)


def drop_trees(roots: Sequence[str]) -> dict[str, int]:
    """In one transaction, so name some at a time. Audit rows are never touched."""
    gone = {"runs": 0, "events": 0, "postmortems": 0}
    with transaction.atomic():
        runs = list(Run.objects.filter(root__in=roots).values_list("pk", flat=True))
        gone["events"] = Event.objects.filter(run_id__in=runs).delete()[0]
        Account.objects.filter(key__in=[run_key(run) for run in runs]).delete()
        for model in (Call, Verdict, Reservation, WorkspaceLease, Cursor):
            model.objects.filter(run_id__in=runs).delete()
        commands = list(Command.objects.filter(run_id__in=runs).values_list("pk", flat=True))
        Receipt.objects.filter(Q(run_id__in=runs) | Q(command_id__in=commands)).delete()
        Command.objects.filter(pk__in=commands).delete()
        gone["postmortems"] = drop_postmortems(runs)
        gone["runs"] = Run.objects.filter(pk__in=runs).delete()[0]
    return gone
