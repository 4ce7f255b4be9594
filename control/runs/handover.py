"""Leaving: a worker takes nothing more, gives its runs back at their next border between calls, and cuts off what has
not come to one by the deadline."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum

from control.runs.held import Held

logger = logging.getLogger(__name__)

# What was cut off has this long to end its tools; what has not ended by then is ended by the guardian.
CUT_S = 3.5
REST_S = 0.8


class Stage(StrEnum):
    WORKING = "working"
    AT_BORDERS = "at borders"
    CUTTING = "cutting"


class Handover:
    """One per worker, on its loop. `held` are the runs that it drives, `idle` is set while there are none."""

    def __init__(
        self, held: Mapping[str, Held], idle: asyncio.Event, requeue: Callable[[Held, str], Awaitable[None]]
    ) -> None:
        self._held = held
        self._idle = idle
        self._requeue = requeue
        self._hurry = asyncio.Event()
        self.stage = Stage.WORKING

    def hurry(self) -> None:
        """Cut off now what has not come to a border yet."""
        self.stage = Stage.CUTTING
        self._hurry.set()

    async def run(self, within_s: float) -> None:
        """Returns when every run is given back. With 0 seconds everything is cut off at once."""
        if within_s > 0:
            self.stage = Stage.AT_BORDERS
            self._tell(at_border=True)
            await self._until_idle(within_s)
        self.stage = Stage.CUTTING
        if not self._idle.is_set():
            self._tell(at_border=False)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), CUT_S)
        if self._held:
            logger.warning("%d runs did not end in time; they are handed back as they are", len(self._held))
            rest = [self._requeue(held, "shutdown") for held in self._held.values()]
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.gather(*rest, return_exceptions=True), REST_S)

    def _tell(self, *, at_border: bool) -> None:
        # Children first: their parents' end must not stop them for good.
        for held in sorted(self._held.values(), key=lambda one: -len(one.mailbox.path)):
            if held.running is not None:
                held.running.drain(at_border=at_border)

    async def _until_idle(self, within_s: float) -> None:
        waits = [asyncio.ensure_future(self._idle.wait()), asyncio.ensure_future(self._hurry.wait())]
        try:
            await asyncio.wait(waits, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
