"""The writer: one thread commits the events of all runs of this worker, whatever queued during its last commit at once.

The loop hands over drafts and gets tickets; after the commit the bytes go to the bus and the tickets are settled. What
nobody awaits yet lingers for a moment, so that a tool that takes no time goes in the same commit as its turn. A
database that is away costs time, never events or their order: the same group is tried again until it is in.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from django.db import connection

from agents.errors import Fenced
from agents.events import Draft
from control.runs import log
from control.runs.bus import EVENTS, Bus
from control.runs.hints import events_message
from control.runs.outages import AWAY

logger = logging.getLogger(__name__)

FIRST_WAIT_S = 0.05
LONGEST_WAIT_S = 1.0
# A commit takes hundreds of microseconds, whatever is in it. This takes a run from an answer over a quick tool to its
# next request. Whoever needs an event on disk awaits it, and that ends the lingering.
LINGER_S = 0.002


class Ticket:
    """The promise of one `emit`: awaiting it waits for the commit. Costs no future unless somebody awaits it."""

    __slots__ = ("_error", "_hurry", "_seq", "_waiting")

    def __init__(self, hurry: Callable[[], None]) -> None:
        self._hurry = hurry
        self._seq: int | None = None
        self._error: BaseException | None = None
        self._waiting: list[asyncio.Future[None]] = []

    def __await__(self) -> Generator[object, None, int]:
        if self._seq is None and self._error is None:
            # Each that waits has a future of its own: one that is cancelled takes nothing from the others.
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            self._hurry()
            yield from future.__await__()
        if self._error is not None:
            raise self._error
        assert self._seq is not None
        return self._seq

    def settle(self, seq: int | None, error: BaseException | None) -> None:
        """On the loop's thread."""
        self._seq, self._error = seq, error
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()


@dataclass(slots=True, kw_only=True)
class Pen:
    """The right to write one run's log at one epoch. `last_seq` is where the log stands after the last commit."""

    run: str
    root: str
    epoch: int
    last_seq: int
    fenced: bool = False
    waiting: list[tuple[tuple[Draft, ...], Ticket]] = field(default_factory=list)


class Writer:
    def __init__(self, bus: Bus, loop: asyncio.AbstractEventLoop, on_fenced: Callable[[str, int], None]) -> None:
        """`on_fenced(run, epoch)` is called on the loop when the log refuses this worker."""
        self._bus = bus
        self._loop = loop
        self._on_fenced = on_fenced
        self._lock = threading.Lock()  # guards _pens and each pen's `waiting` between loop and thread
        self._pens: list[Pen] = []
        self._wake = threading.Event()
        self._closing = False
        self._lingering: asyncio.TimerHandle | None = None  # on the loop's thread only
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self, timeout_s: float) -> bool:
        """Write what is queued and end; False if that took longer than `timeout_s`."""
        self._closing = True
        self._wake.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def write(self, pen: Pen, drafts: tuple[Draft, ...]) -> Ticket:
        """Queue drafts; order within a run is the order of calls."""
        ticket = Ticket(self._hurry)
        if pen.fenced:
            ticket.settle(None, Fenced(pen.run, pen.epoch))
            return ticket
        with self._lock:
            if not pen.waiting:
                self._pens.append(pen)
            pen.waiting.append((drafts, ticket))
        if self._lingering is None:
            self._lingering = self._loop.call_later(LINGER_S, self._hurry)
        return ticket

    def _hurry(self) -> None:
        """Wake the thread now, if something lingers."""
        if self._lingering is not None:
            self._lingering.cancel()
            self._lingering = None
            self._wake.set()

    # --- the thread -------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            while jobs := self._take():
                self._commit(jobs)
            if self._closing:
                connection.close()
                return

    def _take(self) -> "list[_Job]":
        with self._lock:
            pens, self._pens = self._pens, []
            jobs = [_Job(pen=pen, items=pen.waiting) for pen in pens]
            for pen in pens:
                pen.waiting = []
        return jobs

    def _commit(self, jobs: "list[_Job]") -> None:
        wait = FIRST_WAIT_S
        doubtful = False
        while True:
            try:
                if doubtful:
                    jobs = self._without_committed(jobs)
                self._settle(jobs, log.append([job.batch() for job in jobs]) if jobs else [])
                return
            except AWAY as error:
                logger.warning("events of %d runs wait for the database: %s", len(jobs), error)
                connection.close()
                doubtful = True
                time.sleep(wait)
                wait = min(wait * 2, LONGEST_WAIT_S)
            except Exception as error:
                if len(jobs) > 1:
                    # One of them holds what the database refuses; the others must not suffer for it.
                    for job in jobs:
                        self._commit([job])
                    return
                logger.exception("run %s: the log refused its events", jobs[0].pen.run)
                connection.close()
                self._refuse(jobs[0], error)
                return

    def _without_committed(self, jobs: "list[_Job]") -> "list[_Job]":
        """A commit whose answer was lost may have happened: nobody else writes at this epoch, so `last_seq` tells."""
        for job in jobs:
            last_seq, epoch = log.head(job.pen.run)
            if not job.written and epoch == job.pen.epoch and last_seq == job.pen.last_seq + job.count:
                bodies = log.read_after(job.pen.run, job.pen.last_seq, job.count)
                self._written(job, job.pen.last_seq + 1, last_seq, bodies)
        return [job for job in jobs if not job.written]

    def _settle(self, jobs: "Sequence[_Job]", results: Sequence[log.Appended]) -> None:
        for job, result in zip(jobs, results, strict=True):
            if result.fenced:
                job.pen.fenced = True
                self._refuse(job, Fenced(job.pen.run, job.pen.epoch))
                self._call(self._on_fenced, job.pen.run, job.pen.epoch)
            else:
                self._written(job, result.first, result.last, result.bodies)

    def _written(self, job: "_Job", first: int, last: int, bodies: Sequence[bytes]) -> None:
        pen = job.pen
        job.written = True
        pen.last_seq = last
        self._bus.publish(EVENTS, events_message(pen.root, pen.epoch, pen.run, first, last, bodies))
        seq = first - 1
        settled: list[tuple[Ticket, int]] = []
        for drafts, ticket in job.items:
            seq += len(drafts)
            settled.append((ticket, seq))
        self._call(_settle_all, settled)

    def _refuse(self, job: "_Job", error: BaseException) -> None:
        self._call(_refuse_all, [ticket for _, ticket in job.items], error)

    def _call(self, function: Callable[..., None], *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            pass  # the loop has ended: nobody waits any more


@dataclass(slots=True, kw_only=True)
class _Job:
    """What one run queued since the last commit."""

    pen: Pen
    items: list[tuple[tuple[Draft, ...], Ticket]]
    written: bool = False

    @property
    def count(self) -> int:
        return sum(len(drafts) for drafts, _ in self.items)

    def batch(self) -> log.Batch:
        drafts = [draft for group, _ in self.items for draft in group]
        return log.Batch(run=self.pen.run, root=self.pen.root, epoch=self.pen.epoch, drafts=drafts)


def _settle_all(settled: Sequence[tuple[Ticket, int]]) -> None:
    for ticket, seq in settled:
        ticket.settle(seq, None)


def _refuse_all(tickets: Sequence[Ticket], error: BaseException) -> None:
    for ticket in tickets:
        ticket.settle(None, error)
