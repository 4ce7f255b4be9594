"""Mailboxes: the worker's end of the command lane. One query a poll for all its runs; a hint makes it poll now.

Each command is handed to each run once. The database may tell a command again (it stays open until it is done);
what was handed out already is left out here, and a new holder of the run, with a new mailbox, gets it again.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Sequence

import orjson

from agents.commands import Command
from control.runs import inbox
from control.runs.bus import COMMANDS, Bus, Subscription
from control.runs.dbthreads import DbThreads

logger = logging.getLogger(__name__)


class Mailbox:
    """Implements `ports.Inbox` for one run."""

    def __init__(self, reader: "CommandReader", run: str, path: Sequence[str]) -> None:
        self.run = run
        self.path = tuple(path)
        self._reader = reader
        self._handed: set[str] = set()
        self._waiting: deque[Command] = deque()
        self._arrived = asyncio.Event()

    def put(self, command: Command) -> None:
        if command.id in self._handed:
            return
        self._handed.add(command.id)
        self._waiting.append(command)
        self._arrived.set()

    async def receive(self) -> Command:
        while not self._waiting:
            self._arrived.clear()
            await self._arrived.wait()
        return self._waiting.popleft()

    async def drain(self) -> Sequence[Command]:
        await self._reader.fetch([self])
        drained = list(self._waiting)
        self._waiting.clear()
        return drained

    def close(self) -> None:
        self._reader.forget(self)


class CommandReader:
    """Reads for all mailboxes of this worker, on its loop."""

    def __init__(self, bus: Bus, database: DbThreads, poll_s: float) -> None:
        self._bus = bus
        self._database = database
        self._poll_s = poll_s
        self._boxes: dict[str, Mailbox] = {}
        # How many of our runs have this run on their path: a hint that names any other is not for us.
        self._paths: Counter[str] = Counter()
        self._hinted = asyncio.Event()
        self._named: set[str] = set()
        self._all = False
        self._subscription: Subscription | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._subscription = await self._bus.subscribe([COMMANDS], self._on_hint)
        self._task = asyncio.create_task(self._poll_for_ever(), name="command reader")

    def close(self) -> None:
        if self._subscription is not None:
            self._subscription.close()
        if self._task is not None:
            self._task.cancel()

    def open(self, run: str, path: Sequence[str]) -> Mailbox:
        box = self._boxes[run] = Mailbox(self, run, path)
        self._paths.update(box.path)
        return box

    def forget(self, box: Mailbox) -> None:
        if self._boxes.get(box.run) is box:
            del self._boxes[box.run]
            self._paths.subtract(box.path)
            self._paths += Counter()  # drops what is down to zero

    async def fetch(self, boxes: Sequence[Mailbox]) -> None:
        """Put into these mailboxes whatever the database has for them now; waits while the database is away."""
        by_run = {box.run: box for box in boxes}
        for delivery in await self._database.patiently(inbox.open_for, list(by_run)):
            by_run[delivery.run].put(delivery.command)

    def _on_hint(self, topic: str, message: bytes) -> None:
        if topic == COMMANDS:
            try:
                hint = orjson.loads(message)
                named = [run for run in hint.get("runs") or [hint["run"]] if run in self._paths]
            except (ValueError, KeyError, TypeError, AttributeError):
                return
            if not named:
                return
            self._named.update(named)
        else:
            self._all = True  # hints may have been missed
        self._hinted.set()

    def _due(self) -> list[Mailbox]:
        """Those that were hinted at, or all of them at the turn of a poll."""
        every, named = self._all, self._named
        self._all, self._named = False, set()
        self._hinted.clear()
        return [box for box in self._boxes.values() if every or not named.isdisjoint(box.path)]

    async def _poll_for_ever(self) -> None:
        loop = asyncio.get_running_loop()
        poll_at = loop.time() + self._poll_s
        while True:
            try:
                await asyncio.wait_for(self._hinted.wait(), max(0.0, poll_at - loop.time()))
            except TimeoutError:
                pass
            if loop.time() >= poll_at:  # also when hints come all the time
                self._all = True
                poll_at = loop.time() + self._poll_s
            boxes = self._due()
            if not boxes:
                continue
            try:
                await self.fetch(boxes)
            except Exception:
                # The lane must not die of one bad answer: a run that cannot be stopped is the worst there is.
                logger.exception("commands could not be read; trying again")
                self._all = True
                await asyncio.sleep(self._poll_s)
