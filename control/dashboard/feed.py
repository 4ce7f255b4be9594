"""The feed of one watched run in one process: read once, rendered once, shared by all of its viewers."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import orjson

from control.dashboard import documents, frames, side
from control.dashboard.ring import Chunk, Ring
from control.runs import log
from control.runs.dbthreads import DbThreads
from control.runs.meter import METER
from control.runs.models import Run

Format = Literal["json", "html"]
READ = 256
CHUNK_BYTES = 256 * 1024
# Side parts are made from rows: at most this often while events pour in, and now and then without any.
SIDE_EVERY_S = 0.12
SIDE_IDLE_S = 5.0
SIDE_FRAMES_PER_S = 500
# A frame and its acknowledgement cost a fifth of a millisecond, whatever is in them. So with many viewers a feed rests
# after each round, in which all of its viewers get the same: together they take no more than half a core.
FRAMES_PER_S = 2_500

logger = logging.getLogger(__name__)


def rest_s() -> float:
    """How long to rest after a frame to one or to all, for as many sockets as there are in this process."""
    return METER.sockets / FRAMES_PER_S


class Watcher(Protocol):
    """A viewer as the feed sees it."""

    format: Format

    def woken(self) -> None: ...
    def text(self, frame: bytes) -> None: ...
    def withdrawn(self, call: str, frame: bytes) -> None: ...


@dataclass(slots=True)
class Hint:
    first: int
    last: int
    bodies: list[bytes]


@dataclass(slots=True)
class Streaming:
    """The text of one attempt as far as this process has followed it; None of it is kept after the call's end."""

    attempt: int
    text: str


@dataclass(slots=True)
class Side:
    """The side parts as last sent, each with the version in which it changed."""

    version: int = 0
    parts: dict[str, tuple[int, str]] = field(default_factory=dict)


class RunFeed:
    """Pulls with a cursor of its own; hints only say when. Lives as long as somebody watches."""

    def __init__(self, run: str, root: str, head: int, threads: DbThreads) -> None:
        self.run = run
        self.root = root
        self.head = head
        self.html_head = head
        self.viewers: set[Watcher] = set()
        self.streaming: dict[str, Streaming] = {}
        self.side = Side()
        self._threads = threads
        self._rings: dict[Format, Ring] = {"json": Ring(), "html": Ring()}
        self._hints: list[Hint] = []
        self._wake = asyncio.Event()
        self._side_wake = asyncio.Event()
        self._side_wake.set()
        self._tasks = [
            asyncio.create_task(self._forever(self._advance_loop), name=f"feed {run}"),
            asyncio.create_task(self._forever(self._side_loop), name=f"side {run}"),
        ]

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    def has(self, format: Format) -> bool:
        return any(viewer.format == format for viewer in self.viewers)

    # --- being told -------------------------------------------------------------------------------------------------

    def hinted(self, message: bytes) -> None:
        """New events, with their bytes unless they are many."""
        raw = orjson.loads(message)
        bodies = [orjson.dumps(event) for event in raw.get("events") or ()]
        self._hints.append(Hint(raw["first"], raw["last"], bodies))
        self.poke()

    def poke(self) -> None:
        self._wake.set()
        self._side_wake.set()

    def poke_side(self) -> None:
        self._side_wake.set()

    def heard(self, raw: dict[str, Any]) -> None:
        """Live text: pass it on as it is, and keep the whole for whoever comes next."""
        call, attempt = str(raw["call"]), int(raw["attempt"])
        if raw["type"] == "withdrawn":
            self.streaming.pop(call, None)
            frame = frames.withdrawn(call, attempt)
            for viewer in self.viewers:
                viewer.withdrawn(call, frame)
            return
        offset, text = int(raw["offset"]), str(raw["text"])
        known = self.streaming.get(call)
        if offset == 0:
            self.streaming[call] = Streaming(attempt, text)
        elif known and known.attempt == attempt and len(known.text) == offset:
            known.text += text
        frame = frames.delta(call, attempt, offset, text)
        for viewer in self.viewers:
            viewer.text(frame)

    # --- reading ----------------------------------------------------------------------------------------------------

    async def _forever(self, work: Callable[[], Any]) -> None:
        while True:
            try:
                await work()
            except Exception:
                # A database that is away for a moment must not end the feed; the next poke or poll tries again.
                logger.exception("the feed of run %s stumbled", self.run)
                await asyncio.sleep(0.5)

    async def _advance_loop(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            hints, self._hints = self._hints, []
            lines = self._contiguous(hints)
            if lines is None:
                lines = await self._threads.once(log.read_after, self.run, self.head, READ)
                if len(lines) == READ:
                    self._wake.set()
            if lines:
                await self._take_in(lines)
                # What comes meanwhile is one piece for all of them.
                await asyncio.sleep(rest_s())

    def _contiguous(self, hints: list[Hint]) -> list[bytes] | None:
        """The hinted lines if they fit on without a gap; None if the log must be read."""
        lines: list[bytes] = []
        at = self.head
        for hint in hints:
            if hint.last <= at:
                continue
            if hint.first != at + 1 or not hint.bodies:
                return None
            lines += hint.bodies
            at = hint.last
        return lines or (None if not hints else [])

    async def _take_in(self, lines: list[bytes]) -> None:
        first = self.head + 1
        self._forget_finished(lines)
        for piece in _pieces(lines):
            self._rings["json"].add(Chunk(self.head, self.head + len(piece), b",".join(piece)))
            self.head += len(piece)
        self._wake_those_of("json")
        if self.has("html"):
            since = self.html_head
            last, data = await self._threads.once(_patches, self.run, since, lines, first)
            if last > since:
                self._rings["html"].add(Chunk(since, last, data))
                self.html_head = last
        else:
            self._rings["html"].clear()
            self.html_head = self.head
        self._wake_those_of("html")

    def _wake_those_of(self, format: Format) -> None:
        for viewer in self.viewers:
            if viewer.format == format:
                viewer.woken()

    def _forget_finished(self, lines: list[bytes]) -> None:
        if self.streaming:
            for call in [call for call in self.streaming if any(_ends(line, call) for line in lines)]:
                del self.streaming[call]

    # --- serving ----------------------------------------------------------------------------------------------------

    def further(self, format: Format, cursor: int) -> bool:
        """Whether there is something behind this cursor."""
        return cursor < (self.html_head if format == "html" else self.head)

    async def take(self, format: Format, cursor: int, events: int, size: int, force: bool) -> Chunk | None:
        """What follows a cursor: from memory, else from the log. None: nothing new. `last == cursor`: no room.

        With `force` the first piece comes however large it is.
        """
        html = format == "html"
        found = self._rings[format].take(cursor, events, size, overlap=html, force=force)
        if found is not None:
            return found
        if not self.further(format, cursor):
            return None
        if not force and (events <= 0 or size <= 0):
            return Chunk(cursor, cursor, b"")
        if html:
            last, data = await self._threads.once(_patches, self.run, cursor, [], 0)
            return Chunk(cursor, last, data)
        limit = min(READ, events, self.head - cursor)
        lines = await self._threads.once(log.read_after, self.run, cursor, limit)
        lines = next(iter(_pieces(lines, size)), [])
        return Chunk(cursor, cursor + len(lines), b",".join(lines))

    def whole_texts(self) -> list[bytes]:
        """The live texts from their beginning, for a viewer that has just come."""
        return [frames.delta(call, live.attempt, 0, live.text) for call, live in self.streaming.items()]

    # --- side parts -------------------------------------------------------------------------------------------------

    async def _side_loop(self) -> None:
        while True:
            try:
                await asyncio.wait_for(self._side_wake.wait(), SIDE_IDLE_S)
            except TimeoutError:
                pass
            self._side_wake.clear()
            if self.has("html"):
                await self._refresh_side()
                # Leading edge at once, then a rest: the last change is never lost, bursts cost one reading.
                # With a crowd the rest is longer: each reading ends in a frame for everybody.
                await asyncio.sleep(SIDE_EVERY_S + len(self.viewers) / SIDE_FRAMES_PER_S)

    async def _refresh_side(self) -> None:
        parts = await self._threads.once(_side, self.run)
        changed = [name for name, html in parts.items() if self.side.parts.get(name, (0, ""))[1] != html]
        if not changed:
            return
        self.side.version += 1
        for name in changed:
            self.side.parts[name] = (self.side.version, parts[name])
        for viewer in self.viewers:
            viewer.woken()

    def side_since(self, version: int) -> bytes:
        """Side parts that changed after a version, as patches."""
        return b",".join(frames.replace(name, html) for name, (at, html) in self.side.parts.items() if at > version)


def _pieces(lines: list[bytes], size: int = CHUNK_BYTES) -> list[list[bytes]]:
    """Lines in pieces of bounded bytes, none empty."""
    pieces: list[list[bytes]] = []
    room = 0
    for line in lines:
        if not pieces or len(line) > room or len(pieces[-1]) >= READ:
            pieces.append([])
            room = size
        pieces[-1].append(line)
        room -= len(line)
    return pieces


def _ends(line: bytes, call: str) -> bool:
    return b'"kind":"call.completed"' in line[:320] and call.encode() in line[:320]


def _patches(run: str, since: int, lines: list[bytes], first: int) -> tuple[int, bytes]:
    with documents.opened(run) as kept:
        last = kept.extend(lines, first)
        return last, frames.joined(frames.patches(kept, since))


def _side(run: str) -> dict[str, str]:
    row = Run.objects.filter(pk=run).first()
    return side.parts_of(side.context_of(row)) if row else {}
