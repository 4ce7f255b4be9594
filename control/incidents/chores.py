"""The desk's own chores: taking in the logs, looking around, reminding, and sending alerts."""

from control.incidents import intake, notices
from control.incidents.backtest import crew as crew  # it registers its chores
from control.incidents.deliveries import CHORE, Sender
from control.runs.chores import chore, do_soon
from control.runs.clock import database_now


@chore("incidents", every_s=0.5)
def take_in() -> None:
    """What is new in the logs; at once again after a full hand."""
    if intake.take_in() == intake.RUNS_AT_ONCE:
        do_soon("incidents")


@chore("incidents-around", every_s=5.0)
def look_around() -> None:
    """What no event tells, and who must be told once more."""
    intake.look_around()
    notices.remind(database_now())


_sender: Sender | None = None


# They speak with other machines; a desk that waits for one still sweeps.
@chore(CHORE, every_s=0.5, apart=True)
def send() -> None:
    """What is due on the routes."""
    global _sender
    _sender = _sender or Sender()
    if _sender.turn():
        do_soon(CHORE)
