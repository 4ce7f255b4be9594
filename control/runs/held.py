"""A run in the hands of this worker: its lease, its pen, its mailbox, and the engine that drives it."""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agents.engine.runner import Running
from agents.events import Draft
from agents.kinds import FINAL_KINDS
from control.runs import artifacts
from control.runs.dbthreads import DbThreads
from control.runs.leases import Claimed, RunLease
from control.runs.livetext import LiveTexts
from control.runs.mailboxes import Mailbox
from control.runs.outfit import Place
from control.runs.writer import Pen, Ticket, Writer

# Hundreds may wait for it at once, and each looks at all the others.
CALM_S, LOOK_S = 2.0, 0.25
_RESTS = {"run.waiting": True, "run.continued": False}


class Sink:
    """Implements `ports.EventSink` for one run."""

    __slots__ = ("_last", "_pen", "_texts", "_writer", "final", "on_rest", "resting")

    def __init__(self, writer: Writer, pen: Pen, texts: LiveTexts) -> None:
        self._writer = writer
        self._pen = pen
        self._texts = texts
        self._last: Ticket | None = None
        self.final = False
        # Told when the run begins to wait for a person or for quota, and when it works again.
        self.resting = False
        self.on_rest: Callable[[bool], None] = lambda resting: None

    def emit(self, *drafts: Draft) -> Awaitable[int]:
        resting = self.resting
        for draft in drafts:
            if draft.kind == "call.completed":
                # Its text is in the event now: a piece of live text must not come after it.
                self._texts.forget_call(self._pen.run, draft.call)
            elif draft.kind in FINAL_KINDS:
                self.final = True
            elif draft.kind in _RESTS:
                resting = _RESTS[draft.kind]
        self._last = self._writer.write(self._pen, drafts)
        if resting is not self.resting:
            self.resting = resting
            self.on_rest(resting)
        return self._last

    async def flush(self) -> None:
        """Wait until everything emitted so far is durable. Raises Fenced."""
        if self._last is not None:
            await self._last


@dataclass(slots=True, kw_only=True, eq=False)
class Held:
    """`running` and `place` are None until the run is loaded."""

    claimed: Claimed
    lease: RunLease
    mailbox: Mailbox
    sink: Sink
    running: Running | None = None
    place: Place | None = None

    @property
    def id(self) -> str:
        return self.claimed.run.pk

    @property
    def epoch(self) -> int:
        return self.claimed.epoch

    @property
    def parent(self) -> str | None:
        """The run that waits for this one; None for roots and detached children."""
        run = self.claimed.run
        return None if run.detached else run.parent

    @property
    def stopping(self) -> bool:
        return self.running is not None and self.running.control.stop is not None and not self.sink.final


async def calm(held: Mapping[str, Held]) -> None:
    """Returns once none of these is being stopped, after a while in any case. Putting workspaces away costs processes
    of git, and when hundreds are stopped together those that still run need the machine first."""
    until = time.monotonic() + CALM_S
    while time.monotonic() < until and any(one.stopping for one in held.values()):  # noqa: ASYNC110
        await asyncio.sleep(LOOK_S)


class ArtifactStore:
    """Implements `ports.Artifacts`; prompts and tool schemas come again with every run and are stored once."""

    KNOWN = 512

    def __init__(self, database: DbThreads) -> None:
        self._database = database
        self._known: OrderedDict[str, Mapping[str, Any]] = OrderedDict()

    async def put(self, content: bytes) -> Mapping[str, Any]:
        sha256 = hashlib.sha256(content).hexdigest()
        known = self._known.get(sha256)
        if known is None:
            known = self._known[sha256] = await self._database.stored(artifacts.put, content)
            if len(self._known) > self.KNOWN:
                self._known.popitem(last=False)
        return known

    async def get(self, sha256: str) -> bytes:
        return await self._database.patiently(artifacts.get, sha256)
