"""Receipts: how far each command has come in each run it reaches, and when a command as a whole is done.

A command stays open until every active run it reaches has done or refused it. What a run never took in before it
ended is refused with `run_finished`: nothing is lost in silence.
"""

from collections.abc import Sequence
from datetime import datetime

from agents.commands import CommandKind, CommandState, Scope
from agents.spec import FINAL, Status
from control.runs.fold import ReceiptStep
from control.runs.models import Command, Receipt, Run

_FINAL = [status.value for status in FINAL]
_SETTLED = [CommandState.DONE.value, CommandState.REFUSED.value, CommandState.WITHDRAWN.value]
_RANK = {"requested": 0, "delivered": 1, "stopping": 2, "done": 3, "refused": 3, "withdrawn": 3}


def is_bulk(command: str) -> bool:
    """Whether this command is part of a kill switch."""
    return Command.objects.filter(pk=command).exclude(bulk=None).exists()


def record(run: str, steps: Sequence[ReceiptStep]) -> list[str]:
    """Write these steps of one run, in order; a receipt never goes back. The commands to review afterwards."""
    touched: dict[str, None] = {}
    for step in steps:
        touched[step.command] = None
        if step.state == "withdraw":
            touched[_withdraw(run, step)] = None
        else:
            advance(step.command, run, step.state, step.ts, code=step.code, turn=step.turn)
    return list(touched)


def review_all(commands: Sequence[str]) -> None:
    """Set the state of these commands from all their receipts.

    Two runs of one tree may settle the same command at once: the lock lets the second see what the first one wrote.
    """
    for command in Command.objects.select_for_update(no_key=True).filter(pk__in=commands).order_by("id"):
        review(command)


def advance(
    command: str, run: str, state: str, ts: datetime, *, code: str | None = None, turn: int | None = None
) -> None:
    """One receipt forward. The time of a state is the first time it was reached."""
    receipt = Receipt.objects.filter(command_id=command, run_id=run).first()
    if receipt is None:
        receipt = Receipt(command_id=command, run_id=run, state=CommandState.REQUESTED.value)
        fresh = True
    else:
        fresh = False
    if state == "delivered" and receipt.delivered_at is None:
        receipt.delivered_at = ts
    if state == "stopping" and receipt.stopping_at is None:
        receipt.stopping_at = ts
    if _RANK[state] > _RANK[receipt.state]:
        receipt.state = state
        if _RANK[state] == _RANK["done"]:
            receipt.done_at, receipt.code, receipt.turn = ts, code, turn
    receipt.save(force_insert=fresh)


def _withdraw(run: str, step: ReceiptStep) -> str:
    """The run took in a withdrawal: the note goes, unless the model has read it. The note's id."""
    args = Command.objects.filter(pk=step.command).values_list("args", flat=True).first() or {}
    note = str(args.get("command", ""))
    advance(step.command, run, "delivered", step.ts)
    if not Command.objects.filter(pk=note, run_id=run).exists():
        advance(step.command, run, "refused", step.ts, code="unknown_command")
    elif Receipt.objects.filter(command_id=note, run_id=run, state__in=_SETTLED).exists():
        advance(step.command, run, "refused", step.ts, code="too_late")
    else:
        advance(note, run, "withdrawn", step.ts, code="withdrawn")
        advance(step.command, run, "done", step.ts)
    return note


def reached(command: Command, *, active: bool = False) -> list[Run]:
    """The runs that a command reaches, the named one first; only those that are not final with `active`."""
    named = Run.objects.filter(pk=command.run_id).only("id", "root", "path", "status").first()
    if named is None:
        return []
    if command.scope == Scope.RUN.value:
        runs = [named]
    else:
        tree = Run.objects.filter(root=named.root).only("id", "root", "path", "status").order_by("id")
        runs = [run for run in tree if run.pk == named.pk or run.path.startswith(named.path + "/")]
    return [run for run in runs if run.status not in _FINAL] if active else runs


def review(command: Command) -> None:
    """Set the state of a locked command from its receipts, and close it when nothing is left to wait for."""
    receipts = {r.run_id: r for r in Receipt.objects.filter(command_id=command.pk)}
    states = {receipt.state for receipt in receipts.values()}
    waiting = [run for run in reached(command, active=True) if _open_in(receipts.get(run.pk))]
    if waiting:
        state = max(states - set(_SETTLED), key=lambda s: _RANK[s], default=CommandState.REQUESTED.value)
        if states & set(_SETTLED) and state == CommandState.REQUESTED.value:
            state = CommandState.DELIVERED.value
    elif not command.open and command.state in _SETTLED:
        return
    else:
        state = next((s for s in ("done", "withdrawn", "refused") if s in states), CommandState.DONE.value)
    command.state = state
    command.open = bool(waiting)
    command.save(update_fields=["state", "open"])


def _open_in(receipt: Receipt | None) -> bool:
    return receipt is None or receipt.state not in _SETTLED


def open_commands_reaching(run: str, path: str) -> list[Command]:
    """Open commands that reach this run, locked, in order of issue."""
    ids = path.split("/")
    found = Command.objects.select_for_update(no_key=True).filter(open=True, run_id__in=ids).order_by("id")
    return [command for command in found if command.run_id == run or command.scope == Scope.SUBTREE.value]


def settle_at_end(run: str, status: str, ts: datetime) -> None:
    """The run has ended: an interrupt that it obeyed is done, everything else that it still owed is refused."""
    path = Run.objects.values_list("path", flat=True).get(pk=run)
    for command in open_commands_reaching(run, path):
        settle_one(command, run, status, ts)


def settle_one(command: Command, run: str, status: str, ts: datetime) -> None:
    """Settle one locked command in a run that has ended with this status."""
    settled = Receipt.objects.filter(command_id=command.pk, run_id=run, state__in=_SETTLED).exists()
    if not settled and command.kind == CommandKind.INTERRUPT.value and status == Status.INTERRUPTED.value:
        advance(command.pk, run, "done", ts)
    elif not settled:
        advance(command.pk, run, "refused", ts, code="run_finished")
    review(command)
