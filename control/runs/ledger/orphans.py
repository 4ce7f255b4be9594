"""Reservations whose worker is gone: settled by what the log tells of their calls, else by all that they hold.

A reservation has no end of its own: a call may take long. It is an orphan when its run is not held any more at the
epoch at which it was made, for then its worker can neither settle it nor write what it came to.
"""

import logging
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q

from agents import kinds
from agents.events import Event, decode
from agents.policy.accounts import NOTHING, Amounts, spent_of
from control.runs.chores import chore
from control.runs.clock import database_now
from control.runs.ledger import book
from control.runs.models import Event as EventRow
from control.runs.models import Reservation, Run

logger = logging.getLogger(__name__)

# A worker that has just ended a run settles its last call itself.
GRACE_S = 5.0
_CHATS = ("call.started", "call.retried", "call.completed")


@chore("settle-orphans", every_s=1.0)
def settle_orphans() -> None:
    """Whatever is open and nobody's."""
    for row in orphans(database_now()):
        try:
            settle(row)
        except Exception:
            logger.exception("reservation %s of run %s could not be settled; trying again", row.pk, row.run_id)


def orphans(now: datetime) -> list[Reservation]:
    over = Q(lease_until=None, last_activity_at__lt=now - timedelta(seconds=GRACE_S))
    lost = Run.objects.filter(Q(pk=OuterRef("run_id")), over | ~Q(epoch=OuterRef("epoch")))
    known = Run.objects.filter(pk=OuterRef("run_id"))
    return list(Reservation.objects.filter(Exists(lost) | ~Exists(known), settled_at=None).order_by("pk"))


def settle_before(run: str, epoch: int) -> None:
    """What former workers of a run have left, before its new one asks for more."""
    for row in Reservation.objects.filter(run_id=run, settled_at=None, epoch__lt=epoch):
        settle(row)


def settle(row: Reservation) -> bool:
    """False if it was settled meanwhile."""
    held = Amounts(usd=row.usd, tokens=row.tokens, calls=row.calls)
    told = _told(row, held)
    return book.settle(row.pk, held if told is None else told, "held" if told is None else "log")


def _told(row: Reservation, held: Amounts) -> Amounts | None:
    """What the log says that the calls came to; None if it does not know of all of them."""
    rows = EventRow.objects.filter(run_id=row.run_id, kind__in=_CHATS).order_by("seq")
    if row.call is not None:
        ended = [event for body in rows.filter(call=row.call).values_list("body", flat=True) if (event := _end(body))]
        found = next((event for event in ended if _attempt(event) == row.attempt), None)
        # The last attempt of a call ends with it.
        last = ended[-1] if ended and isinstance(ended[-1].data, kinds.CallCompleted) else None
        found = found or last
        return None if found is None else _spent(found, held)
    sum_, open_ = NOTHING, set[str]()
    for event in map(decode, rows.filter(at__gte=row.at).values_list("body", flat=True)):
        data = event.data
        if isinstance(data, kinds.CallStarted) and data.operation == "chat":
            open_.add(str(event.call))
        elif isinstance(data, kinds.CallRetried) or (
            isinstance(data, kinds.CallCompleted) and data.operation == "chat"
        ):
            if isinstance(data, kinds.CallCompleted):
                open_.discard(str(event.call))
            if data.cost_source == "unknown" and data.usage is None:
                return None
            sum_ += _spent(event, NOTHING)
    return None if open_ else sum_


def _end(body: str) -> Event | None:
    event = decode(body)
    data = event.data
    ends = isinstance(data, kinds.CallRetried) or (isinstance(data, kinds.CallCompleted) and data.operation == "chat")
    return event if ends else None


def _attempt(event: Event) -> int | None:
    return event.data.attempt if isinstance(event.data, kinds.CallRetried) else None


def _spent(event: Event, held: Amounts) -> Amounts:
    data = event.data
    assert isinstance(data, kinds.CallRetried | kinds.CallCompleted)
    return spent_of(data.usage, data.cost_usd, data.cost_source, held)
