"""What one running tool call may use: its workspace, a thread, a person's answer, a sub-agent."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from agents import kinds
from agents.engine.control import Halt, RunControl
from agents.engine.journal import Journal
from agents.engine.threads import POOL
from agents.errors import ToolError
from agents.policy.redaction import make_safe
from agents.ports import Answer, CancelToken, Child, ChildEnd, Lease, Spawner, SpawnRequest, StopReport

# A thread that watches its cancel token ends well within this; a deaf one must delay nothing.
LISTENING_S = 0.1
# A worker with more deaf threads than this starts no further ones.
MAX_DEAF = 64


class Token:
    """Turns once from False to True; read from threads."""

    __slots__ = ("cancelled",)

    def __init__(self) -> None:
        self.cancelled = False


class CallContext:
    """One per call; implements `ports.ToolContext`."""

    def __init__(
        self,
        *,
        run: str,
        call: str,
        turn: int | None,
        workspace: str,
        dry_run: bool,
        lease: Lease,
        environment: Mapping[str, str],
        journal: Journal,
        control: RunControl,
        spawner: Spawner,
        adopt: str | None = None,
    ) -> None:
        self.run = run
        self.call = call
        self.workspace = workspace
        self.dry_run = dry_run
        self.lease = lease
        self._token = Token()
        self.cancel: CancelToken = self._token
        self.environment: Mapping[str, str] = {**environment, "PILOTHOUSE_CALL": call}
        self.deaf = 0
        self.has_child = False
        self._turn = turn
        self._journal = journal
        self._control = control
        self._spawner = spawner
        self._adopt = adopt

    async def ask(self, question: str, choices: Sequence[str] | None) -> Answer:
        answer = await self._control.ask(self.call, make_safe(question).text, choices, self._turn)
        return replace(answer, text=make_safe(answer.text).text)

    async def spawn(self, request: SpawnRequest) -> Child:
        if self._adopt is not None:
            self.has_child = True
            return TrackedChild(await self._spawner.adopt(self._adopt), self)
        self._heed()
        made = asyncio.ensure_future(self._spawner.spawn(request))
        cancel: asyncio.CancelledError | None = None
        # Seen through: a child that is made while its parent is cancelled would be nobody's.
        while not made.done():
            try:
                await asyncio.wait({made})
            except asyncio.CancelledError as error:
                cancel = error
        child = made.result()
        self.has_child = not request.detached
        durable = self._journal.write(kinds.ChildStarted(run=child.run), turn=self._turn, call=self.call)
        try:
            if cancel is not None:
                raise cancel
            await durable
        except asyncio.CancelledError:
            if self.stopping and not request.detached:
                self.child_stopped(await child.stop())
            raise
        return TrackedChild(child, self)

    def waiting(self) -> AbstractContextManager[None]:
        """Around the wait for a child: it goes on with the run's next holder as if nothing had been."""
        return self._control.rest()

    def child_ended(self, end: ChildEnd) -> None:
        self._journal.write(kinds.ChildFinished(run=end.run, status=end.status.value), turn=self._turn, call=self.call)

    def child_stopped(self, end: ChildEnd | None) -> None:
        """Count a child that ended because this run stops; its own sockets and processes count in its own report."""
        tally = self._control.tally
        tally.children += 1
        if end is None or not end.stopped.get("verified", True):
            tally.unverified_children += 1
        if end is not None:
            tally.children += int(end.stopped.get("children", 0))
            tally.abandoned += end.stopped.get("abandoned", ())
            self.child_ended(end)

    @property
    def stopping(self) -> bool:
        """Whether the run stops for good, so that its children stop with it (a drained run's children go on)."""
        return self._control.halt in (Halt.STOP, Halt.TRIP)

    async def in_thread(self, work: Callable[[], Any]) -> Any:
        self._heed()
        if POOL.deaf >= MAX_DEAF:
            raise ToolError(
                f"Not run: {POOL.deaf} calls that were given up still run in threads of this worker, which cannot be "
                "ended. Nothing more is started in one until some of them end; restart the worker if none does.",
                kind="too_many_deaf",
            )
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future = POOL.submit(work, ended)
        try:
            await ended
            return future.result()
        except asyncio.CancelledError:
            self._token.cancelled = True
            if not await _ends_within(future, LISTENING_S):
                POOL.deaf += 1
                future.add_done_callback(_one_less)
                self.left_behind(future)
            elif not future.cancelled() and future.exception() is None:
                # It was done all the same, and what is done is told; should the tool want more, it is cancelled again.
                if (task := asyncio.current_task()) is not None:
                    asyncio.get_running_loop().call_soon(task.cancel)
                return future.result()
            raise

    def _heed(self) -> None:
        """Nothing more is begun for a call that is cancelled."""
        if self._token.cancelled:
            raise asyncio.CancelledError

    def left_behind(self, work: "asyncio.Future[Any]") -> None:
        """It does not end: it stays listed until it does, and what it comes to then is only noted."""
        abandoned = self._control.tally.abandoned
        self.deaf += 1
        if self.call not in abandoned:
            abandoned.append(self.call)

        def late(ended: "asyncio.Future[Any]") -> None:
            self.deaf -= 1
            if not self.deaf and self.call in abandoned:
                abandoned.remove(self.call)
            status = "ok" if not ended.cancelled() and ended.exception() is None else "error"
            self._journal.write(kinds.CallLate(call=self.call, status=status), call=self.call)

        work.add_done_callback(late)

    def processes_ended(self, report: StopReport) -> None:
        self._control.tally.processes += report.processes
        self._control.tally.left += report.left


def _one_less(_: "asyncio.Future[Any]") -> None:
    POOL.deaf -= 1


class TrackedChild:
    """A child whose end is logged by its parent, however the wait for it ends."""

    def __init__(self, child: Child, context: CallContext) -> None:
        self.run = child.run
        self._child = child
        self._context = context

    async def wait(self) -> ChildEnd:
        try:
            with self._context.waiting():
                end = await self._child.wait()
        except asyncio.CancelledError:
            if self._context.stopping:
                self._context.child_stopped(await self._child.stop())
            raise
        self._context.child_ended(end)
        return end

    async def stop(self) -> ChildEnd | None:
        return await self._child.stop()


async def _ends_within(future: "asyncio.Future[Any]", seconds: float) -> bool:
    """Whether it ends in time; a further cancel meanwhile is let through by the caller's own `raise`."""
    done, _ = await asyncio.wait({future}, timeout=seconds)
    if done and not future.cancelled():
        future.exception()  # retrieved: a late failure is no news
    return bool(done)
