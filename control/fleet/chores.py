"""The desk's chore of the fleet: starting what schedules say is due."""

from control.fleet import scheduling
from control.runs.chores import chore


@chore("schedules", every_s=2.0)
def start_due() -> None:
    """Each time of each schedule once, whichever desk gets there first."""
    scheduling.turn()
