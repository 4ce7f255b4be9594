"""Commands as durable rows: issued, idempotent, ordered against the end of the run that they name.

Every verb locks the rows of the runs it reaches before it looks at them, so a command either comes before a run's
final event, and is then answered by the run or refused at its end, or after it, and is then refused here.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from agents import commands as words
from agents.commands import CommandKind, CommandState, Scope
from agents.spec import FINAL
from control.runs import hints, receipts, unheld, verbs
from control.runs.clock import database_now
from control.runs.models import Command, Receipt, Run
from control.runs.refusals import NotFound, RunFinished

__all__ = ["Delivery", "Issued", "NotFound", "RunFinished", "issue", "open_for", "to_word", "withdraw"]

_FINAL = frozenset(status.value for status in FINAL)
_SETTLED = [CommandState.DONE.value, CommandState.REFUSED.value, CommandState.WITHDRAWN.value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """What came of a verb. Unchanged ones say why: `already_interrupting`, `already_finished`, `not_waiting`, ..."""

    command: Command | None
    changed: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One command for one run that it reaches."""

    run: str
    command: words.Command


def issue(
    *,
    run_id: str,
    kind: CommandKind,
    by: str,
    scope: Scope = Scope.RUN,
    reason: str | None = None,
    args: Mapping[str, Any] | None = None,
    bulk: str | None = None,
) -> Issued:
    """Issue one command. Raises NotFound and, for verbs other than interrupt, RunFinished.

    The hint goes out after commit in any case: pressing again signals again, also when nothing changed.
    """
    with transaction.atomic():
        runs = _locked(run_id, scope)
        target = runs[0]
        asked = Command(
            run_id=run_id, scope=scope.value, kind=kind.value, by=by, reason=reason, args=dict(args or {}), bulk=bulk
        )
        if kind is CommandKind.INTERRUPT:
            return _interrupt(asked, runs)
        if target.status in _FINAL:
            raise RunFinished(run_id)
        held_back = verbs.unneeded(asked, target)
        if held_back is not None:
            hints.command_later(run_id)
            return Issued(command=held_back.command, changed=False, reason=held_back.reason)
        _insert(asked)
        if verbs.wakes(asked, target):
            unheld.requeue(target, why=f"{kind.value} by {by}")
        return Issued(command=asked, changed=True)


def _locked(run_id: str, scope: Scope) -> list[Run]:
    """The runs that a command reaches, locked, the named one first.

    A spawn holds its parent's lock while it inserts the child: once all known runs are locked none can come any
    more, but one may have come while we waited. So look again until nothing new shows.
    """
    named = Run.objects.filter(pk=run_id).only("root").first()
    if named is None:
        raise NotFound(run_id)
    found: list[Run] = []
    known: set[str] = set()
    while True:
        if scope is Scope.RUN:
            rows = list(Run.objects.select_for_update(no_key=True).filter(pk=run_id))
        else:
            rows = list(Run.objects.select_for_update(no_key=True).filter(root=named.root).order_by("id"))
        found = _below(rows, run_id)
        if {run.pk for run in rows} <= known or scope is Scope.RUN:
            return found
        known = {run.pk for run in rows}


def _below(rows: Sequence[Run], run_id: str) -> list[Run]:
    named = next(run for run in rows if run.pk == run_id)
    return [named, *(run for run in rows if run.path.startswith(named.path + "/"))]


def _insert(command: Command) -> None:
    command.issued_at = database_now()
    command.save(force_insert=True)
    hints.command_later(command.run_id)


# --- interrupt -------------------------------------------------------------------------------------------------------


def _interrupt(asked: Command, runs: Sequence[Run]) -> Issued:
    active = [run for run in runs if run.status not in _FINAL]
    if not active:
        return Issued(command=None, changed=False, reason="already_finished")
    earlier = _interrupting(asked, runs[0])
    command = earlier or asked
    if earlier is None:
        _insert(asked)
        Run.objects.filter(pk=asked.run_id).update(stop_command=asked.pk)
    else:
        hints.command_later(asked.run_id)
    for run in active:
        if unheld.is_unheld(run):
            unheld.interrupt(run, command)
    return Issued(
        command=Command.objects.get(pk=command.pk),
        changed=earlier is None,
        reason=None if earlier is None else "already_interrupting",
    )


def _interrupting(asked: Command, target: Run) -> Command | None:
    """An open interrupt that reaches all that this one would: on the run, or on an ancestor for its whole subtree."""
    found = Command.objects.filter(open=True, kind=CommandKind.INTERRUPT.value, run_id__in=target.path.split("/"))
    for command in found.order_by("id"):
        wide = command.scope == Scope.SUBTREE.value
        if wide or (command.run_id == target.pk and asked.scope == Scope.RUN.value):
            return command
    return None


# --- withdraw --------------------------------------------------------------------------------------------------------


def withdraw(command_id: str, by: str) -> Issued:
    """Take back a note that no model has read. Raises NotFound.

    Where no worker holds the run the note is withdrawn at once; else the holder is asked, and the note's own
    receipt tells whether it came in time.
    """
    with transaction.atomic():
        known = Command.objects.filter(pk=command_id).first()
        if known is None:
            raise NotFound(command_id)
        run = _locked(known.run_id, Scope.RUN)[0]
        note = Command.objects.select_for_update(no_key=True).get(pk=command_id)
        if note.kind != CommandKind.STEER.value:
            return Issued(command=note, changed=False, reason="not_withdrawable")
        if not note.open:
            return Issued(command=note, changed=False, reason=f"already_{note.state}")
        if unheld.is_unheld(run):
            receipts.withdraw(note, run.pk, database_now())
            return Issued(command=note, changed=True)
        asking = Command.objects.filter(run_id=run.pk, kind=CommandKind.WITHDRAW.value, open=True)
        if any(other.args.get("command") == note.pk for other in asking):
            hints.command_later(run.pk)
            return Issued(command=note, changed=False, reason="already_withdrawing")
        _insert(Command(run_id=run.pk, kind=CommandKind.WITHDRAW.value, by=by, args={"command": note.pk}))
        return Issued(command=note, changed=True, reason="requested")


# --- for the worker's reader ---------------------------------------------------------------------------------------


def open_for(run_ids: Collection[str]) -> list[Delivery]:
    """Open commands that reach these runs and are not settled there, in order of issue.

    A command that was delivered and not done is told again: the worker that took it may have died since.
    """
    paths = dict(Run.objects.filter(pk__in=list(run_ids)).values_list("id", "path"))
    above: dict[str, list[str]] = {}
    for run, path in paths.items():
        for ancestor in path.split("/"):
            above.setdefault(ancestor, []).append(run)
    found = list(Command.objects.filter(open=True, run_id__in=list(above)).order_by("id"))
    if not found:
        return []
    settled = set(
        Receipt.objects.filter(command_id__in=[c.pk for c in found], state__in=_SETTLED).values_list(
            "command_id", "run_id"
        )
    )
    return [
        Delivery(run=run, command=to_word(command))
        for command in found
        for run in above[command.run_id]
        if (run == command.run_id or command.scope == Scope.SUBTREE.value) and (command.pk, run) not in settled
    ]


def to_word(row: Command) -> words.Command:
    """A row as the loop knows commands."""
    return words.Command(
        id=row.pk,
        kind=CommandKind(row.kind),
        run=row.run_id,
        by=row.by,
        scope=Scope(row.scope),
        reason=row.reason,
        args=row.args,
        issued_at=row.issued_at,
    )
