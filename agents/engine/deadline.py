"""The clocks of a run: when its time is up it trips at once, in the middle of whatever it does."""

import asyncio

from agents.engine.control import RunControl
from agents.engine.transcript import Transcript
from agents.errors import LoopIncident
from agents.policy import fuses
from agents.ports import Clock

# A run that waits does not use up its working time: it is looked at again, not all the time.
_LOOK_S = 1.0


class Deadline:
    """Looks at the clocks when the first may have run out. `arm` once, and again when a limit has changed."""

    def __init__(self, control: RunControl, transcript: Transcript, clock: Clock, working_limit: float | None) -> None:
        self._control = control
        self._transcript = transcript
        self._clock = clock
        self._working_limit = working_limit
        self._handle: asyncio.TimerHandle | None = None

    def check(self) -> None:
        """Raises LoopIncident when the time is up."""
        incident = self._incident()
        if incident is not None:
            raise incident

    def arm(self) -> None:
        self.disarm()
        left = fuses.time_left(self._control.limits, self._working_limit, self._used())
        if left is not None:
            self._handle = asyncio.get_running_loop().call_later(max(left, 0.0), self._ring)

    def disarm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _ring(self) -> None:
        incident = self._incident()
        if incident is not None:
            self._control.trip(incident)
            return
        left = fuses.time_left(self._control.limits, self._working_limit, self._used())
        if left is not None:
            self._handle = asyncio.get_running_loop().call_later(max(left, _LOOK_S), self._ring)

    def _incident(self) -> LoopIncident | None:
        trip = fuses.out_of_time(self._control.limits, self._working_limit, self._used())
        return LoopIncident(trip.verdict(self._transcript.steps), fuse=True) if trip is not None else None

    def _used(self) -> fuses.Used:
        return self._transcript.used(self._clock.now())
