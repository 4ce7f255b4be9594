"""Bulks: one wish about many runs, done in pieces that survive whoever does them.

The request writes the wish and begins; what it does not get done in a moment the desk goes on with, and takes up again
what a process left that died midway. Each piece is one transaction that also moves the cursor: nothing is done twice.
"""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import transaction

from agents.commands import CommandKind
from agents.ids import new_id
from control.runs import bulk_progress, hints, inbox_many, many
from control.runs.chores import chore, do_soon
from control.runs.clock import database_now
from control.runs.models import Block, Bulk, Command
from control.runs.outages import AWAY
from control.runs.selection import Selection

logger = logging.getLogger(__name__)

# Runs asked in one transaction: few enough that the first ones stop while the others are being asked.
PIECE = 100
# A request works for so long before it answers, and the desk before it looks after its other chores.
MOMENT_S = 0.25
# A start that was under way when the block came is in the table after this, and is found by a last look.
LAST_LOOK = timedelta(seconds=1)
# After this a bulk is told as it stands: whatever is still out of reach is told as such.
GIVE_UP = timedelta(hours=1)
_WORK = {CommandKind.INTERRUPT.value: inbox_many.interrupt, CommandKind.STEER.value: inbox_many.steer}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is wanted of which runs. `decide` writes it down, `begin` starts on it after that has committed."""

    kind: CommandKind
    chosen: Selection
    by: str
    reason: str | None
    args: Mapping[str, Any] = field(default_factory=dict)
    block: bool = False
    bulk: str = field(default_factory=new_id)

    def decide(self) -> dict[str, Any]:
        """What will be done, and the block, in the caller's transaction. No run is touched yet. Raises BadSelection."""
        self.chosen.refuse_empty()
        now = database_now()
        eligible = many.eligible(self.chosen, self.kind).count()
        held = self._block() if self.block else None
        if eligible:
            Bulk.objects.create(
                pk=self.bulk,
                kind=self.kind.value,
                filter=self.chosen.as_json(),
                args=dict(self.args),
                by=self.by,
                reason=self.reason,
                block=held,
                issued_at=now,
                eligible=eligible,
            )
        nothing = "nothing_to_stop" if self.kind is CommandKind.INTERRUPT else "nobody_to_tell"
        return {
            "bulk": self.bulk if eligible else None,
            "changed": bool(eligible or held),
            "reason": None if eligible else nothing,
            "eligible": eligible,
            "not_eligible": many.left_out(self.chosen, self.kind),
            "block": held,
        }

    def begin(self) -> None:
        """The first moment's work; the desk does the rest. What is stopping already is signalled again."""
        if not work(self.bulk) and self.kind is CommandKind.INTERRUPT:
            with transaction.atomic():
                hints.commands_later(list(many.active(self.chosen).values_list("pk", flat=True)[:1000]))

    def carry_out(self) -> None:
        """All of it now, for a caller with time; ends early only if somebody cancels it."""
        self.begin()
        while Bulk.objects.filter(pk=self.bulk, asked_at=None, cancelled_at=None).exists():
            if not work(self.bulk):
                time.sleep(MOMENT_S)

    def _block(self) -> str:
        row = Block.objects.create(
            filter=self.chosen.as_json(), reason=self.reason or "", by=self.by, created_at=database_now()
        )
        return row.pk


def work(bulk: str) -> int:
    """Ask further runs for a moment; how many were asked."""
    until = time.monotonic() + MOMENT_S
    total, more = 0, True
    while more:
        asked, more = _piece(bulk)
        total += asked
        more = more and time.monotonic() < until
    return total


def _piece(bulk_id: str) -> tuple[int, bool]:
    """Ask the next runs; how many, and whether there may be more. The lock on the bulk orders all who work on it."""
    with transaction.atomic():
        bulk = Bulk.objects.select_for_update(no_key=True).filter(pk=bulk_id, asked_at=None, cancelled_at=None).first()
        if bulk is None:
            return 0, False
        # Looks afresh each time: the filter counts as things stand now.
        there = many.active(Selection.of(**{"all": True, **bulk.filter})).filter(pk__gt=bulk.cursor).order_by("pk")
        ids = list(there.values_list("pk", flat=True)[:PIECE])
        asked = _WORK[bulk.kind](bulk, ids) if ids else 0
        changes: dict[str, Any] = {"asked": bulk.asked + asked, "cursor": ids[-1] if ids else bulk.cursor}
        last = len(ids) < PIECE
        if last:
            now = database_now()
            done = bulk.block is None or now - bulk.issued_at >= LAST_LOOK
            changes |= {"asked_at": now} if done else {"cursor": ""}
        Bulk.objects.filter(pk=bulk.pk).update(**changes)
        return asked, not last


def cancel(bulk_id: str, *, by: str, reason: str) -> tuple[bool, str | None]:
    """Ask no further runs. `(changed, why not)`; those that were asked already go on stopping."""
    there = Bulk.objects.filter(pk=bulk_id)
    if there.filter(asked_at=None, cancelled_at=None).update(
        cancelled_at=database_now(), cancelled_by=by, cancel_reason=reason
    ):
        return True, None
    return False, "already_cancelled" if there.filter(asked_at=None).exists() else "all_asked"


@chore("bulks", every_s=0.25, urgent=True)
def go_on() -> None:
    """Work on what is not asked yet, oldest first, and write down how the others came out."""
    for bulk in Bulk.objects.filter(finished_at=None).order_by("issued_at"):
        try:
            _go_on_with(bulk)
        except AWAY:
            raise
        except Exception:
            # The others must not wait for it.
            logger.exception("bulk %s could not be gone on with; trying again", bulk.pk)


def _go_on_with(bulk: Bulk) -> None:
    if bulk.asked_at is None and bulk.cancelled_at is None:
        if work(bulk.pk):
            do_soon("bulks")
        return
    now = database_now()
    late = now - bulk.issued_at > GIVE_UP
    if not late and Command.objects.filter(bulk=bulk.pk, open=True).exists():
        return
    figures = bulk_progress.figures(bulk, now)
    if figures["finished"] or late:
        Bulk.objects.filter(pk=bulk.pk, finished_at=None).update(finished_at=now, figures=figures)
