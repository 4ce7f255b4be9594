"""Commands for many runs in one transaction: a kill switch of hundreds must not cost hundreds of transactions.

The rules are those of `inbox`: rows are locked in order of id before they are looked at, whole trees for an interrupt.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from django.db.models import OuterRef, Subquery

from agents.commands import CommandKind, Scope
from agents.spec import FINAL, Status
from control.runs import hints, unheld
from control.runs.clock import database_now
from control.runs.models import Bulk, Command, Run

_FINAL = frozenset(status.value for status in FINAL)
_COLUMNS = ("id", "root", "path", "status", "epoch", "lease_until", "turns", "last_seq", "stop_command")


def interrupt(bulk: Bulk, ids: Collection[str]) -> int:
    """Interrupt these runs with all below them, in the caller's transaction; how many commands were new.

    A run below another one of these, or that is being stopped already, gets no command of its own; all are signalled.
    """
    runs = _locked_trees(ids)
    by_run = _interrupting(runs.values())
    fresh: list[Command] = []
    now = database_now()
    for run in sorted((runs[pk] for pk in ids if pk in runs), key=lambda run: len(run.path)):
        if run.status in _FINAL or _above(run, by_run) is not None:
            continue
        by_run[run.pk] = _command(bulk, run.pk, CommandKind.INTERRUPT, scope=Scope.SUBTREE, issued_at=now)
        fresh.append(by_run[run.pk])
    Command.objects.bulk_create(fresh)
    named = [command.run_id for command in fresh]
    mine = Command.objects.filter(bulk=bulk.pk, run_id=OuterRef("pk")).order_by("-id").values("id")[:1]
    Run.objects.filter(pk__in=named).update(stop_command=Subquery(mine))
    resting = [run for run in runs.values() if unheld.is_unheld(run) and run.status not in _FINAL]
    unheld.interrupt_many([(run, command) for run in resting if (command := _above(run, by_run)) is not None])
    hints.commands_later([pk for pk in ids if pk in runs and runs[pk].status not in _FINAL])
    return len(fresh)


def steer(bulk: Bulk, ids: Collection[str]) -> int:
    """Give each of these runs the note, in the caller's transaction; how many took it."""
    rows = Run.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("id").only(*_COLUMNS)
    unable = {*_FINAL, Status.STOPPING.value}
    able = [run.pk for run in rows if run.status not in unable and run.stop_command is None]
    now = database_now()
    Command.objects.bulk_create([_command(bulk, run, CommandKind.STEER, args=bulk.args, issued_at=now) for run in able])
    hints.commands_later(able)
    return len(able)


def _command(bulk: Bulk, run: str, kind: CommandKind, *, scope: Scope = Scope.RUN, **more: Any) -> Command:
    return Command(run_id=run, scope=scope.value, kind=kind.value, by=bulk.by, reason=bulk.reason, bulk=bulk.pk, **more)


def _locked_trees(ids: Collection[str]) -> dict[str, Run]:
    """All runs of the trees of these, locked. One may be born while we wait for the locks, so look until none is."""
    roots = set(Run.objects.filter(pk__in=ids).values_list("root", flat=True))
    rows = Run.objects.select_for_update(no_key=True).filter(root__in=roots).order_by("id").only(*_COLUMNS)
    found: dict[str, Run] = {}
    while True:
        again = {run.pk: run for run in rows.all()}
        if again.keys() <= found.keys():
            return again
        found = again


def _interrupting(runs: Iterable[Run]) -> dict[str, Command]:
    """Open interrupts with all below them, by the run that they name."""
    above = {pk for run in runs for pk in run.path.split("/")}
    wide = Command.objects.filter(
        open=True, kind=CommandKind.INTERRUPT.value, scope=Scope.SUBTREE.value, run_id__in=above
    )
    return {command.run_id: command for command in wide.order_by("-id")}


def _above(run: Run, by_run: Mapping[str, Command]) -> Command | None:
    """The interrupt that reaches this run, if one does."""
    return next((by_run[pk] for pk in run.path.split("/") if pk in by_run), None)
