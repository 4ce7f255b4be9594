"""The receiving end of the control lane inside one run: stop, notes, answers, pause, raised fuses."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from agents import kinds
from agents.commands import Command, CommandKind
from agents.engine.journal import Journal
from agents.errors import LoopIncident
from agents.events import stamp
from agents.policy.redaction import make_safe
from agents.ports import Answer, Clock, Inbox
from agents.spec import LIMIT_NAMES, Limit, Limits


class Halt(StrEnum):
    """Why the loop was cancelled from outside."""

    STOP = "stop"
    TRIP = "trip"
    DRAIN = "drain"
    PARK = "park"
    FENCED = "fenced"


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequest:
    by: str
    reason: str
    command: str | None
    at: float


@dataclass(slots=True, kw_only=True)
class StopTally:
    """What a stop ended, counted as it happens; it becomes `stopped` of `run.interrupted`."""

    sockets: int = 0
    processes: int = 0
    left: int = 0
    children: int = 0
    unverified_children: int = 0
    abandoned: list[str] = field(default_factory=list)
    overdue: bool = False

    def report(self, seconds: float) -> dict[str, Any]:
        why = []
        if self.left:
            why.append(f"{self.left} processes outlived SIGKILL")
        if self.unverified_children:
            why.append(f"{self.unverified_children} sub-agents could not be verified")
        if self.abandoned:
            why.append(f"{len(self.abandoned)} calls run on and cannot be ended")
        if self.overdue:
            why.append("a tool did not end within the grace")
        out: dict[str, Any] = {
            "sockets": self.sockets,
            "processes": self.processes,
            "children": self.children,
            "abandoned": list(self.abandoned),
            "seconds": round(seconds, 3),
            "verified": not why,
        }
        if why:
            out["why"] = "; ".join(why)
        return out


class RunControl:
    """One per run. `accept` acts on a command at once; the loop asks for notes and holds at its borders."""

    def __init__(self, journal: Journal, inbox: Inbox, clock: Clock, limits: Limits, park_after_s: float) -> None:
        self._journal = journal
        self._inbox = inbox
        self._clock = clock
        self._park_after_s = park_after_s
        self._notes: deque[Command] = deque()
        self._answers: dict[str, Command] = {}
        self._asking: dict[str, asyncio.Future[Command]] = {}
        self._paused_at: str | None = None
        self._unpaused = asyncio.Event()
        self._task: asyncio.Task[Any] | None = None
        self._leaving = False
        self._work = 0  # calls under way that are worth finishing here, less those of them that only wait
        self.limits = limits
        self.halt: Halt | None = None
        self.stop: StopRequest | None = None
        self.incident: LoopIncident | None = None
        self.tally = StopTally()
        # Called when a limit was raised while the run is driven here.
        self.on_raise: list[Callable[[], None]] = []

    def take_over(self) -> None:
        """Before a run goes on that a former worker held: a pause that took effect there is over when a person says
        so, and a limit that was raised stays raised. Their commands are done and do not come again."""
        if self._journal.transcript.paused:
            self._paused_at = "after_batch"
        self._lift({name: Decimal(value) for name, value in self._journal.transcript.raised.items()})

    def govern(self, task: asyncio.Task[Any]) -> None:
        """Name the task that a halt cancels; a halt that came earlier cancels it now."""
        self._task = task
        if self.halt is not None:
            task.cancel()

    async def listen(self) -> None:
        while True:
            self.accept(await self._inbox.receive())

    async def drain_inbox(self) -> None:
        """Take in everything that is waiting in the source of truth; called before the run may finish."""
        for command in await self._inbox.drain():
            self.accept(command)
        if self.halt is not None:
            await asyncio.sleep(0)  # a halt just taken in takes effect here, before anything else is begun

    def accept(self, command: Command) -> None:
        """Act on one command. Told twice (a former worker took it in already) it is not logged twice."""
        transcript = self._journal.transcript
        if command.id in transcript.injected or any(note.id == command.id for note in self._notes):
            return
        if command.id not in transcript.commands:
            self._journal.write(
                kinds.CommandReceived(
                    command=command.id, command_kind=command.kind.value, by=command.by, reason=command.reason
                )
            )
        match command.kind:
            case CommandKind.INTERRUPT:
                self.request_stop(by=command.by, reason=command.reason or "", command=command.id)
            case CommandKind.STEER:
                self._notes.append(command)
            case CommandKind.WITHDRAW:
                self._notes = deque(n for n in self._notes if n.id != command.args.get("command"))
            case CommandKind.ANSWER:
                self._answer(command)
            case CommandKind.PAUSE:
                self._paused_at = str(command.args.get("when", "after_batch"))
                self._unpaused.clear()
            case CommandKind.UNPAUSE:
                self._paused_at = None
                self._unpaused.set()
            case CommandKind.RAISE:
                self._raise(command)
            case CommandKind.FORK | CommandKind.LIFT | CommandKind.DRAIN:
                pass  # addressed to the desk or to a worker, never to a running loop

    def request_stop(self, *, by: str, reason: str, command: str | None) -> None:
        """Stop for good: `run.stopping` is written first, then everything in flight is cancelled. Idempotent."""
        if self.stop is not None or self.halt is not None:
            return
        self.stop = StopRequest(by=by, reason=reason, command=command, at=self._clock.monotonic())
        if not self._journal.transcript.stopping:
            self._journal.write(kinds.RunStopping(command=command, by=by))
        self.cancel(Halt.STOP)

    def trip(self, incident: LoopIncident) -> None:
        """End the run `tripped` although it is in the middle of something, which is ended as by a stop."""
        if self.halt is None:
            self.incident = incident
            self.cancel(Halt.TRIP)

    def cancel(self, halt: Halt) -> None:
        """Cancel the loop once; the first reason wins, except that a fence always does."""
        if self.halt is not None:
            if halt is Halt.FENCED:
                self.halt = halt
            return
        self.halt = halt
        if self._task is not None:
            self._task.cancel()

    # --- handing over -----------------------------------------------------------------------------------------

    def leave(self, *, at_border: bool) -> None:
        """Give the run back: now, or at the next border between calls, or when it only waits for something."""
        self._leaving = True
        if not at_border:
            self.cancel(Halt.DRAIN)
        self._leave_if_idle()

    def _leave_if_idle(self) -> None:
        if self._leaving and self._work <= 0:
            self.cancel(Halt.DRAIN)

    async def border(self) -> None:
        """Where a run may change hands without a loss: the last call is written down, the next one has not begun.

        Not before calls whose arguments the log holds with a marker in place of a secret: only here are they whole.
        """
        if self._leaving and not any(one.altered for one in self._journal.transcript.unanswered()):
            self.cancel(Halt.DRAIN)
            await asyncio.sleep(0)

    @contextmanager
    def work(self, *, alone: bool = True) -> Iterator[None]:
        """Around a call that is worth finishing before the run is given back, with the writing of its result. One that
        is not `alone` may leave calls behind that only wait: then no border comes, and the run leaves when it ends."""
        self._work += 1
        try:
            yield
        finally:
            self._work -= 1
            if not alone:
                self._leave_if_idle()

    @contextmanager
    def rest(self) -> Iterator[None]:
        """Around a wait within such a call that is not worth waiting for."""
        self._work -= 1
        self._leave_if_idle()
        try:
            yield
        finally:
            self._work += 1

    # --- notes ------------------------------------------------------------------------------------------------

    def take_notes(self) -> Sequence[Command]:
        """The notes that wait, in order of issue; they are the caller's to inject or refuse."""
        taken = list(self._notes)
        self._notes.clear()
        return taken

    # --- questions --------------------------------------------------------------------------------------------

    async def ask(self, call: str, question: str, choices: Sequence[str] | None, turn: int | None) -> Answer:
        """Wait for a person. Parks the run when the wait grows long."""
        asked = kinds.RunWaiting(
            reason="question", call=call, text=question, choices=list(choices) if choices else None
        )
        answer = await self.answer_to(asked, call, turn)
        self._journal.write(kinds.RunContinued(), turn=turn, call=call)
        return Answer(text=str(answer.args.get("text", "")), by=answer.by)

    async def answer_to(self, asked: kinds.RunWaiting, call: str, turn: int | None) -> Command:
        """Wait for the command that answers; the caller writes `run.continued`."""
        self._journal.write(asked, turn=turn, call=call)
        answer = self._answers.pop(call, None)
        if answer is None:
            future: asyncio.Future[Command] = asyncio.get_running_loop().create_future()
            self._asking[call] = future
            try:
                answer = await self._or_park(future, future.done)
            finally:
                self._asking.pop(call, None)
        return answer

    def _answer(self, command: Command) -> None:
        call = str(command.args.get("call", ""))
        future = self._asking.get(call)
        if future is not None and not future.done():
            future.set_result(command)
        elif future is None:
            self._answers[call] = command

    # --- pause ------------------------------------------------------------------------------------------------

    async def hold(self, border: str, turn: int | None) -> None:
        """Hold at a border (`after_batch`, `before_call`) for as long as a pause asks for that border."""
        if self._paused_at is None or (self._paused_at != border and border != "before_call"):
            return
        self._journal.write(kinds.RunWaiting(reason="pause"), turn=turn)
        while self._paused_at is not None:
            await self._or_park(asyncio.ensure_future(self._unpaused.wait()), self._unpaused.is_set)
        self._journal.write(kinds.RunContinued(), turn=turn)

    # --- quota ------------------------------------------------------------------------------------------------

    async def rest_until(self, until: datetime | None, why: str, turn: int | None) -> None:
        """Wait for money or for a key that rests: until then, or until an operator lets the run go on. Parks it when
        that is long."""
        told = None if until is None else stamp(until)
        self._journal.write(kinds.RunWaiting(reason="quota", until=told, text=make_safe(why).text), turn=turn)
        self._unpaused.clear()
        left = None if until is None else max((until - self._clock.now()).total_seconds(), 0.0)
        parks = self._park_after_s > 0 and (left is None or left > self._park_after_s)
        limit = self._park_after_s if parks else left
        unpaused = asyncio.ensure_future(self._unpaused.wait())
        waits = {unpaused} if limit is None else {unpaused, asyncio.ensure_future(self._clock.sleep(limit))}
        try:
            with self.rest():
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if parks and not unpaused.done() and not self._unpaused.is_set():
                self.cancel(Halt.PARK)
                await asyncio.sleep(0)
        finally:
            for wait in waits:
                wait.cancel()
        self._journal.write(kinds.RunContinued(), turn=turn)

    async def _or_park(self, waited: "asyncio.Future[Any]", came: Callable[[], bool]) -> Any:
        """Await a person; after `park_after_s` give the run back, to be resumed by what the person does.

        `came` tells at once whether the person has acted, which `waited` may learn a moment later; and what `waited`
        has learned holds, also if it was taken back since.
        """
        try:
            with self.rest():
                await asyncio.wait({waited}, timeout=self._park_after_s if self._park_after_s > 0 else None)
            if not waited.done() and not came():
                self.cancel(Halt.PARK)
                await asyncio.sleep(0)
            return await waited
        finally:
            waited.cancel()  # a wait of ours must not outlive the run

    # --- fuses ------------------------------------------------------------------------------------------------

    def _raise(self, command: Command) -> None:
        wanted = command.args.get("limits", {})
        try:
            raised = {name: Decimal(str(wanted[name])) for name in LIMIT_NAMES if wanted.get(name) is not None}
        except (ArithmeticError, AttributeError, TypeError):
            return  # whoever took the command in should have refused it; no reason to end the run
        self._lift(raised)
        for heeds in self.on_raise:
            heeds()
        self._journal.write(
            kinds.FuseRaised(
                limits={name: str(value) for name, value in raised.items()},
                by=command.by,
                reason=command.reason or "",
            )
        )

    def _lift(self, raised: Mapping[str, Decimal]) -> None:
        found = {name: Limit(value=value, source="raised") for name, value in raised.items() if name in LIMIT_NAMES}
        self.limits = replace(self.limits, **found)
