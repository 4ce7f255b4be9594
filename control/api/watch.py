"""Follow one run's log to its end: woken by the bus, and by a short poll in case a hint is lost."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agents.spec import Status
from control.runs import log
from control.runs.bus import EVENTS, RECONNECTED, bus
from control.runs.models import Run

POLL_S = 0.2
PAGE = 500


def follow(run: str, emit: Callable[[bytes], None], flush: Callable[[], None]) -> Status:
    """Give every event of the log to `emit`, in order, from the first on; returns the final status."""
    after = 0
    with _wakes(run) as woken:
        while True:
            woken.clear()
            # The status is read before the log: when it is final, the log read after it is complete.
            status = Status(Run.objects.values_list("status", flat=True).get(pk=run))
            while bodies := log.read_after(run, after, PAGE):
                for body in bodies:
                    emit(body)
                flush()
                after += len(bodies)
            if status.final:
                return status
            woken.wait(POLL_S)


@contextmanager
def _wakes(run: str) -> Iterator[threading.Event]:
    """An event that is set whenever the bus tells of this run. A thread of its own, for the bus lives on a loop."""
    woken = threading.Event()
    name = run.encode()

    def deliver(topic: str, message: bytes) -> None:
        if topic == RECONNECTED or name in message:
            woken.set()

    loop = asyncio.new_event_loop()
    ended = asyncio.Event()

    async def listen() -> None:
        subscription = await bus().subscribe([EVENTS], deliver)
        try:
            await ended.wait()
        finally:
            subscription.close()

    thread = threading.Thread(target=loop.run_until_complete, args=(listen(),), name="watch", daemon=True)
    thread.start()
    try:
        yield woken
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(2.0)
