"""The host: one asyncio loop that claims runs, drives hundreds of them side by side, and gives each one back."""

import asyncio
import contextlib
import functools
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, ParamSpec

from django.conf import settings

from agents import kinds
from agents.engine.local import SystemClock
from agents.engine.outcome import Ended
from agents.engine.runner import Ports, Running
from agents.errors import ConfigError, Fenced
from agents.events import draft
from control import logs
from control.runs import dispatch, inbox, leases, outfit, publishing, reclaim, roster, tasks
from control.runs.bus import Bus
from control.runs.dbthreads import DbThreads
from control.runs.guardian import Guardian
from control.runs.handover import Handover, Stage
from control.runs.held import ArtifactStore, Held, Sink, calm
from control.runs.leases import Claimed, RunLease, WorkerLease
from control.runs.livetext import LiveTexts
from control.runs.mailboxes import CommandReader
from control.runs.models_pool import REPORT_WAIT_S
from control.runs.notebook import AgentNotebook
from control.runs.renewal import Renewal
from control.runs.slots import Slots
from control.runs.spawner import HostSpawner
from control.runs.writer import Pen, Writer

logger = logging.getLogger(__name__)
P = ParamSpec("P")

WATCH_S = 0.5
# A full worker keeps a message this long before it puts it back for others.
FULL_WAIT_S = 1.0


class Host:
    """Start with `serve`, in the loop that shall drive the runs; `offer` from any thread; `drain` on that loop."""

    def __init__(self, worker: str, bus: Bus, capacity: int) -> None:
        self.worker = worker
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
        self._slots = Slots(capacity)
        self._claiming = asyncio.Lock()  # one claim at a time: they would only wait for each other in the database
        self._busy = 0  # runs from before their claim until they are given back
        self._idle = asyncio.Event()
        self._idle.set()
        self._handover = Handover(self.held, self._idle, self._requeue)
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
            tasks.take_with(tasks.publish)  # what was on its way to us is for others
            watch.cancel()
            renewal.stop()
            self._commands.close()
            await asyncio.to_thread(self._writer.close, 1.0)
            self._guardian.close(1.0)
            self.database.close()

    async def drain(self, within_s: float = 0.0) -> None:
        """Take nothing more and hand back what runs: at call borders within that time, or cut off. Asked again: now."""
        if self.draining:
            self._handover.hurry()
            return
        self.draining = True
        self._slots.close()
        self._do(self.database.once(roster.seen, self.worker, runs=len(self.held), draining=True))
        await self._handover.run(within_s)
        self._drained.set()

    @property
    def cutting(self) -> bool:
        """Whether what runs is being cut off."""
        return self._handover.stage is Stage.CUTTING

    def _do(self, chore: Coroutine[Any, Any, None]) -> None:
        """On the side; what fails there is done by others or at the next turn."""

        async def tried() -> None:
            try:
                await chore
            except Exception as error:
                logger.warning("left to others: %s", error)

        self._chores.add(task := self.loop.create_task(tried()))
        task.add_done_callback(self._chores.discard)

    # --- taking runs ------------------------------------------------------------------------------------------

    def offer(self, run_id: str) -> None:
        """From any thread: there is work, this run or a better one. Blocks for a moment while this worker has no room
        or no lease, so that others take the messages; then the word goes back to them too."""
        # A worker that slept past its lease takes nothing until it is renewed: `_watch` would fence it at once.
        if self._slots.take(self._lease.held, FULL_WAIT_S):
            asyncio.run_coroutine_threadsafe(self._fill_slot(), self.loop)
        else:
            tasks.publish(run_id)

    async def _fill_slot(self) -> None:
        """Drive whatever is next in the line, run after run, until there is nothing for this worker."""
        try:
            while not self._slots.over() and (held := await self._next()) is not None:
                held.sink.on_rest = functools.partial(self._rests, held)
                await self.drive(held)
                if held.sink.resting:
                    self._slots.back()
        except Exception:
            logger.exception("a run could not be taken or given back; the sweeper will find it")
        finally:
            self._slots.give()

    def _rests(self, held: Held, resting: bool) -> None:
        """A run that begins to wait for a person leaves its slot to the next one."""
        if not resting:
            self._slots.back()
            return
        self._slots.give()
        self._do(self._fill_after(held))

    async def _fill_after(self, held: Held) -> None:
        with contextlib.suppress(Fenced):
            await held.sink.flush()
        if self._slots.take(self._lease.held):
            await self._fill_slot()

    async def _next(self) -> Held | None:
        asked_at = self.loop.time()
        async with self._claiming:
            # Hundreds ask together after as many runs have ended: one look at an empty line is enough for all of them.
            return None if dispatch.was_empty(asked_at) else await self._claimed(dispatch.claim_next, self.worker)

    async def take(self, run_id: str, *, adopt: bool = False) -> Held | None:
        """Claim this run for this worker; None if somebody else has it or it is not to be had. Then `drive` it."""
        return await self._claimed(leases.claim, run_id, self.worker, adopt=adopt)

    async def _claimed(self, claim: Callable[P, Claimed | None], *args: P.args, **kwargs: P.kwargs) -> Held | None:
        if self.draining or not self._lease.held():
            return None
        self._enter()
        try:
            claimed = await self.database.once(claim, *args, **kwargs)
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
            with logs.of_run(held.id, held.epoch):
                logger.info("taken")
                ended = await self._run(held)
                held.mailbox.close()
                self._texts.forget(held.id)
                await self._let_go(held, ended)
                logger.info("given back: %s", ended.how)
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
            models = outfit.models(kit, self.database, held.mailbox.put)
            ledger = outfit.ledger(kit, self.database, self._clock, worker=self.worker, epoch=held.epoch)
            held.running = self._running(held, kit, {"models": models, "ledger": ledger})
            if held.lease.lost or self.draining:
                return Ended(how="fenced" if held.lease.lost else "drained")
            ended = await held.running.drive(kit.events)
            await ledger.close()
            await models.settled(REPORT_WAIT_S)
            return ended
        except ConfigError as error:
            return await _fail(held.sink, error.kind, error.message)
        except Exception as error:
            logger.exception("run %s: the host failed", held.id)
            return await _fail(held.sink, "internal", f"{type(error).__name__}: {error}")

    def _running(self, held: Held, kit: outfit.Outfit, parts: Mapping[str, Any]) -> Running:
        marks = {"PILOTHOUSE_RUN": held.id, "PILOTHOUSE_WORKER": self.worker}
        ports = Ports(
            **parts,
            sink=held.sink,
            live=self._texts.of(held.id),
            inbox=held.mailbox,
            artifacts=self._artifacts,
            lease=held.lease,
            tools=outfit.tools(kit, AgentNotebook(self.database, kit.spec.agent), self._artifacts),
            servers=outfit.servers(kit.spec, kit.place, marks),
            spawner=HostSpawner(self, held.id, held.epoch),
            clock=self._clock,
            workspace=kit.place.path,
            environment=outfit.environment(kit.spec, marks),
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
                    await calm(self.held)
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
            self._do(self._disown(run, epoch))
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


async def _fail(sink: Sink, reason: str, message: str) -> Ended:
    """End a run that could not be driven at all."""
    body = kinds.RunFailedEvent(error={"reason": reason, "message": message})
    with contextlib.suppress(Fenced):
        await sink.emit(draft(body, at=SystemClock().now()))
    return Ended(how="final")
