"""The host: one asyncio loop that claims runs, drives hundreds of them side by side, and gives each one back."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.conf import settings

from agents import kinds
from agents.engine.local import SystemClock
from agents.engine.outcome import Ended
from agents.engine.runner import Ports, Running
from agents.errors import ConfigError, Fenced
from agents.events import draft
from agents.ports import Resting
from control.runs import inbox, leases, outfit, publishing, reclaim, tasks
from control.runs.bus import Bus
from control.runs.dbthreads import DbThreads
from control.runs.guardian import Guardian
from control.runs.held import ArtifactStore, Held, Sink
from control.runs.leases import Claimed, RunLease, WorkerLease
from control.runs.livetext import LiveTexts
from control.runs.mailboxes import CommandReader
from control.runs.models_pool import REPORT_WAIT_S, PooledModels
from control.runs.notebook import AgentNotebook
from control.runs.renewal import Renewal
from control.runs.spawner import HostSpawner
from control.runs.writer import Pen, Writer

logger = logging.getLogger(__name__)

WATCH_S = 0.5
# A warm shutdown is over within five seconds; what has not ended by then is ended by the guardian.
DRAIN_S = 3.5
DRAIN_REST_S = 0.8
# A full worker keeps a message this long before it puts it back for others.
FULL_WAIT_S = 1.0


class Host:
    """Start with `serve`, in the loop that shall drive the runs; `offer` from any thread; `drain` on that loop."""

    def __init__(self, worker: str, bus: Bus, capacity: int) -> None:
        self.worker = worker
        self.capacity = capacity
        self.draining = False
        self.database = DbThreads()
        self.held: dict[str, Held] = {}
        self._bus = bus
        self._lease = WorkerLease()
        self._guardian = Guardian(worker)
        self._artifacts = ArtifactStore(self.database)
        self._clock = SystemClock()
        self._texts = LiveTexts(bus)
        self._commands = CommandReader(bus, self.database, settings.COMMAND_POLL_SECONDS)
        self._room = threading.Condition()  # guards _taken between the loop and the threads that offer
        self._taken = 0
        self._busy = 0  # runs from before their claim until they are given back
        self._idle = asyncio.Event()
        self._drained = asyncio.Event()
        self._unknown: dict[str, int] = {}
        self._chores: set[asyncio.Task[None]] = set()

    # --- life -------------------------------------------------------------------------------------------------

    async def serve(self, ready: "asyncio.Event | None" = None) -> None:
        """Drive what is offered until `drain`; returns when every run has ended or been given back."""
        self.loop = asyncio.get_running_loop()
        self._writer = Writer(self._bus, self.loop, self._on_fenced)
        self._writer.start()
        self._guardian.ensure()
        renewal = Renewal(self.worker, self._lease, lambda: (len(self.held), self.draining), self._tell_held)
        renewal.start()
        await self._commands.start()
        watch = asyncio.create_task(self._watch(), name="lease watch")
        tasks.take_with(self.offer)
        if ready is not None:
            ready.set()
        try:
            await self._drained.wait()
        finally:
            tasks.take_with(None)
            watch.cancel()
            renewal.stop()
            self._commands.close()
            await asyncio.to_thread(self._writer.close, 1.0)
            self._guardian.close(1.0)
            self.database.close()

    async def drain(self) -> None:
        """Take nothing more and hand back what runs. Children first: their parents' end must not stop them for good."""
        if self.draining:
            return
        self.draining = True
        with self._room:
            self._room.notify_all()
        for held in sorted(self.held.values(), key=lambda one: -len(one.mailbox.path)):
            if held.running is not None:
                held.running.drain()
        if self._busy:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), DRAIN_S)
        if self.held:
            logger.warning("%d runs did not end in time; they are handed back as they are", len(self.held))
            rest = [self._requeue(held, "shutdown") for held in self.held.values()]
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.gather(*rest, return_exceptions=True), DRAIN_REST_S)
        self._drained.set()

    # --- taking runs ------------------------------------------------------------------------------------------

    def offer(self, run_id: str) -> None:
        """From any thread: take the run if it is there to be taken. Blocks for a moment while this worker is full, so
        that others take the messages; then the run goes back to them too."""
        with self._room:
            self._room.wait_for(lambda: self._taken < self.capacity or self.draining, FULL_WAIT_S)
            if self._taken >= self.capacity or self.draining:
                tasks.publish(run_id)
                return
            self._taken += 1
        asyncio.run_coroutine_threadsafe(self._take_offered(run_id), self.loop)

    async def _take_offered(self, run_id: str) -> None:
        try:
            held = await self.take(run_id)
            if held is not None:
                await self.drive(held)
        except Exception:
            logger.exception("run %s could not be taken or given back; the sweeper will find it", run_id)
        finally:
            with self._room:
                self._taken -= 1
                self._room.notify()

    async def take(self, run_id: str, *, adopt: bool = False) -> Held | None:
        """Claim a run for this worker; None if somebody else has it or it is not to be had. Then `drive` it."""
        if self.draining:
            return None
        self._enter()
        try:
            claimed = await self.database.once(leases.claim, run_id, self.worker, adopt=adopt)
        except BaseException:
            self._leave()
            raise
        if claimed is None:
            self._leave()
            return None
        return self._hold(claimed)

    def _hold(self, claimed: Claimed) -> Held:
        run = claimed.run
        pen = Pen(run=run.pk, root=run.root, epoch=claimed.epoch, last_seq=run.last_seq)
        held = self.held[run.pk] = Held(
            claimed=claimed,
            lease=RunLease(self._lease),
            mailbox=self._commands.open(run.pk, run.path.split("/")),
            sink=Sink(self._writer, pen, self._texts),
        )
        return held

    def _enter(self) -> None:
        self._busy += 1
        self._idle.clear()

    def _leave(self) -> None:
        self._busy -= 1
        if not self._busy:
            self._idle.set()

    async def drive(self, held: Held) -> Ended:
        """Drive a run that was taken, and give it back. Never raises for what happens inside the run."""
        try:
            ended = await self._run(held)
            held.mailbox.close()
            self._texts.forget(held.id)
            await self._let_go(held, ended)
            return ended
        finally:
            held.mailbox.close()
            if self.held.get(held.id) is held:
                del self.held[held.id]
            self._leave()

    async def _run(self, held: Held) -> Ended:
        try:
            kit = await self.database.patiently(outfit.load, held.claimed)
            held.place = kit.place
            for delivery in kit.commands:
                held.mailbox.put(delivery.command)
            models = PooledModels(kit.spec, self.database)
            held.running = self._running(held, *await _models(kit, models))
            if held.lease.lost:
                return Ended(how="fenced")
            if self.draining:
                return Ended(how="drained")
            ended = await held.running.drive(kit.events)
            await models.settled(REPORT_WAIT_S)
            return ended
        except ConfigError as error:
            return await _fail(held.sink, error.kind, error.message)
        except Exception as error:
            logger.exception("run %s: the host failed", held.id)
            return await _fail(held.sink, "internal", f"{type(error).__name__}: {error}")

    def _running(self, held: Held, kit: outfit.Outfit, models: Mapping[str, Any]) -> Running:
        marks = {"PILOTHOUSE_RUN": held.id, "PILOTHOUSE_WORKER": self.worker}
        ports = Ports(
            **models,
            sink=held.sink,
            live=self._texts.of(held.id),
            inbox=held.mailbox,
            artifacts=self._artifacts,
            lease=held.lease,
            tools=outfit.registry(kit.spec, AgentNotebook(self.database, kit.spec.agent)),
            servers=outfit.servers(kit.spec, kit.place, marks),
            spawner=HostSpawner(self, held.id, held.epoch),
            clock=self._clock,
            workspace=kit.place.path,
            environment=marks,
            park_after_s=settings.PARK_AFTER_SECONDS,
            note=kit.place.note,
        )
        return Running(kit.spec, ports, worker=self.worker, host=leases.this_host(), epoch=held.epoch)

    # --- giving runs back -------------------------------------------------------------------------------------

    async def _let_go(self, held: Held, ended: Ended) -> None:
        with contextlib.suppress(Fenced):
            await held.sink.flush()
        match ended.how:
            case "final":
                if held.place is not None and held.place.own:
                    await self.database.once(outfit.close, held.claimed.run)
            case "parked":
                await self._park(held)
            case "drained":
                await self._requeue(held, "shutdown" if self.draining else "parent")
            case _:
                # Our lease may have lapsed with nobody there to take the run: its tools have ended, so hand it on.
                await self.database.patiently(reclaim.give_up, held.id, held.epoch)

    async def _park(self, held: Held) -> None:
        if not await self.database.patiently(leases.park, held.id, held.epoch):
            return
        # An answer may have come between the decision to park and the lease's end; then nobody else would read it.
        if await self.database.patiently(inbox.open_for, [held.id]):
            await self._requeue(held, "answered")

    async def _requeue(self, held: Held, why: str) -> None:
        """Back into the queue, unless another owner was faster; the attempt is given back. An attached child waits
        there for its parent's host."""
        work = self.database.patiently(leases.requeue, held.id, held.epoch, why, count_attempt=False)
        if await work and held.parent is None:
            await self.database.once(publishing.publish_later, held.id)

    # --- leases -----------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """A worker that slept past its leases notices here, by the clock, before it does anything else for its runs."""
        while True:
            await asyncio.sleep(min(WATCH_S, settings.LEASE_SECONDS / 10))
            if not self._lease.held():
                for held in list(self.held.values()):
                    self._fence(held)
            if not self.draining:
                self._guardian.ensure()

    def _tell_held(self, held: Mapping[str, int], since: float) -> None:
        """From the renewal thread: what the database says we hold."""
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._compare, held, since)

    def _compare(self, still: Mapping[str, int], since: float) -> None:
        for held in list(self.held.values()):
            if held.claimed.since < since and still.get(held.id) != held.epoch and not held.sink.final:
                self._fence(held)
        # The answer to a claim may have been lost with its connection: then we renew a run that nobody drives.
        unknown = {run: epoch for run, epoch in still.items() if run not in self.held}
        for run, epoch in unknown.items() & self._unknown.items():
            self._chores.add(task := self.loop.create_task(self._disown(run, epoch)))
            task.add_done_callback(self._chores.discard)
        self._unknown = unknown

    async def _disown(self, run: str, epoch: int) -> None:
        if await self.database.once(leases.requeue, run, epoch, "claim_lost"):
            await self.database.once(publishing.publish_later, run)

    def _on_fenced(self, run: str, epoch: int) -> None:
        held = self.held.get(run)
        if held is not None and held.epoch == epoch:
            self._fence(held)

    def _fence(self, held: Held) -> None:
        """This worker may act for the run no more. Its attached children go back, for its next holder to adopt."""
        if held.lease.lost:
            return
        held.lease.lost = True
        logger.warning("run %s: the lease at epoch %d is lost", held.id, held.epoch)
        for other in self.held.values():
            if other.parent == held.id and other.running is not None:
                other.running.drain()
        if held.running is not None:
            held.running.fenced()


async def _models(kit: outfit.Outfit, models: PooledModels) -> tuple[outfit.Outfit, dict[str, Any]]:
    """What the engine takes: the pool itself, or the one model that a run without rotation keeps."""
    if "models" in Ports.__dataclass_fields__:
        return kit, {"models": models}
    picked = await models.pick()
    if isinstance(picked, Resting):
        raise ConfigError("rate_limit", f"No credential may be used now: {picked.why}")
    return replace(kit, spec=replace(kit.spec, model=picked.spec)), {"model": picked.model}


async def _fail(sink: Sink, reason: str, message: str) -> Ended:
    """End a run that could not be driven at all."""
    body = kinds.RunFailedEvent(error={"reason": reason, "message": message})
    with contextlib.suppress(Fenced):
        await sink.emit(draft(body, at=SystemClock().now()))
    return Ended(how="final")
