"""Receipts: how far each command has come in each run it reaches, and when a command as a whole is done.

A command stays open until every active run it reaches has done or refused it. What a run never took in before it
ended is refused with `run_finished`: nothing is lost in silence. What is here decides; `settling` reads and writes.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from agents.commands import CommandKind, CommandState
from agents.spec import FINAL, Status
from control.runs.models import Command, Receipt

FINAL_WORDS = [status.value for status in FINAL]
SETTLED = frozenset({CommandState.DONE.value, CommandState.REFUSED.value, CommandState.WITHDRAWN.value})
_RANK = {"requested": 0, "delivered": 1, "stopping": 2, "done": 3, "refused": 3, "withdrawn": 3}


def fresh(command: str, run: str) -> Receipt:
    """A receipt that nothing has come to yet; not saved."""
    return Receipt(command_id=command, run_id=run, state=CommandState.REQUESTED.value)


def forward(receipt: Receipt, state: str, ts: datetime, *, code: str | None = None, turn: int | None = None) -> None:
    """One receipt forward, never back. The time of a state is the first time it was reached."""
    if state == "delivered" and receipt.delivered_at is None:
        receipt.delivered_at = ts
    if state == "stopping" and receipt.stopping_at is None:
        receipt.stopping_at = ts
    if _RANK[state] > _RANK[receipt.state]:
        receipt.state = state
        if _RANK[state] == _RANK["done"]:
            receipt.done_at, receipt.code, receipt.turn = ts, code, turn


def at_end(command: Command, status: str) -> tuple[str, str | None]:
    """What an unsettled command comes to in a run that ends with this status: state and code."""
    if command.kind == CommandKind.INTERRUPT.value and status == Status.INTERRUPTED.value:
        return "done", None
    return "refused", "run_finished"


def outcome(command: Command, receipts: Mapping[str, Receipt], active: Sequence[str]) -> tuple[str, bool]:
    """State of a command, and whether it is still open, from its receipts and the active runs that it reaches."""
    states = {receipt.state for receipt in receipts.values()}
    if any(_open_in(receipts.get(run)) for run in active):
        state = max(states - SETTLED, key=lambda s: _RANK[s], default=CommandState.REQUESTED.value)
        if states & SETTLED and state == CommandState.REQUESTED.value:
            state = CommandState.DELIVERED.value
        return state, True
    if not command.open and command.state in SETTLED:
        return command.state, False
    return next((s for s in ("done", "withdrawn", "refused") if s in states), CommandState.DONE.value), False


def _open_in(receipt: Receipt | None) -> bool:
    return receipt is None or receipt.state not in SETTLED


def withdraw(note: Command, run: str, ts: datetime) -> None:
    """Close a locked note that nobody has taken in."""
    receipt = Receipt.objects.filter(command_id=note.pk, run_id=run).first()
    known = receipt is not None
    receipt = receipt or fresh(note.pk, run)
    forward(receipt, "withdrawn", ts, code="withdrawn")
    receipt.save(force_insert=not known)
    note.state, note.open = CommandState.WITHDRAWN.value, False
    note.save(update_fields=["state", "open"])
