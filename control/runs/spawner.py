"""Sub-agents: started by their parent's host, driven in the same loop, adopted after their worker died."""

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from agents.commands import CommandKind, Scope
from agents.ports import ChildEnd, SpawnRequest
from agents.spec import Status
from control.runs import inbox, spawning
from control.runs.held import Held
from control.runs.models import Run
from control.runs.outages import AWAY

if TYPE_CHECKING:
    from control.runs.host import Host

logger = logging.getLogger(__name__)

# A stopped child has TERM, a second, KILL and its own children; whoever takes longer is told as unverified.
STOP_S = 2.4
# How often the row of a child that nobody here drives is looked at: it waits for a person, or works elsewhere.
LOOK_S = 0.25


class HostSpawner:
    """Implements `ports.Spawner` for one parent run."""

    def __init__(self, host: "Host", parent: str, epoch: int) -> None:
        self._host = host
        self._parent = parent
        self._epoch = epoch

    async def spawn(self, request: SpawnRequest) -> "HostedChild":
        run = await self._host.database.patiently(spawning.spawn_child, self._parent, request, epoch=self._epoch)
        return HostedChild(self._host, run.pk, detached=request.detached)

    async def adopt(self, run: str) -> "HostedChild":
        detached = await self._host.database.patiently(_is_detached, run)
        return HostedChild(self._host, run, detached=detached)


class HostedChild:
    """Implements `ports.Child`. An attached child is driven here when it can be claimed; a detached one is watched."""

    def __init__(self, host: "Host", run: str, *, detached: bool) -> None:
        self.run = run
        self._host = host
        self._detached = detached
        # A detached child is looked at only when somebody waits for it.
        self._following: asyncio.Task[ChildEnd] | None = None
        if not detached:
            self._begin()

    async def wait(self) -> ChildEnd:
        return await asyncio.shield(self._begin())

    async def stop(self) -> ChildEnd | None:
        following = self._begin()
        held = self._host.held.get(self.run)
        if held is not None and held.running is not None:
            held.running.stop(by="parent", reason="The parent run was stopped.")
        else:
            with contextlib.suppress(inbox.NotFound):
                await self._host.database.once(
                    inbox.issue,
                    run_id=self.run,
                    kind=CommandKind.INTERRUPT,
                    by="parent",
                    scope=Scope.SUBTREE,
                    reason="The parent run was stopped.",
                )
        await asyncio.wait({following}, timeout=STOP_S)
        return following.result() if following.done() and not following.cancelled() else None

    def _begin(self) -> "asyncio.Task[ChildEnd]":
        if self._following is None:
            self._following = asyncio.create_task(self._follow(), name=f"child {self.run}")
        return self._following

    async def _follow(self) -> ChildEnd:
        """Until the child is final. Parked, requeued or handed back by a dead worker, it is taken up again here."""
        while True:
            held = None if self._detached else await self._take()
            if held is not None:
                ended = await self._host.drive(held)
                if ended.how == "final" and ended.status is not None:
                    return ChildEnd(run=self.run, status=ended.status, final=ended.final, stopped=ended.stopped or {})
            elif (end := await self._host.database.patiently(_end_of, self.run)) is not None:
                return end
            await asyncio.sleep(LOOK_S)

    async def _take(self) -> Held | None:
        try:
            return await self._host.take(self.run, adopt=True)
        except AWAY as error:
            logger.warning("child %s not claimed yet: %s", self.run, error)
            return None


def _is_detached(run: str) -> bool:
    return bool(Run.objects.values_list("detached", flat=True).get(pk=run))


def _end_of(run: str) -> ChildEnd | None:
    row = Run.objects.only("status", "final", "stopped").filter(pk=run).first()
    if row is None or not Status(row.status).final:
        return None
    return ChildEnd(run=run, status=Status(row.status), final=row.final or "", stopped=row.stopped or {})
