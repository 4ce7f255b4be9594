"""The loop alone: one run and its sub-agents in this process, over a real model and real tools, without a database."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.commands import Command, CommandKind
from agents.engine.books import MemoryBook
from agents.engine.local import HeldLease, MemoryInbox, MemoryLog, MemorySpawner, OneModel, SystemClock
from agents.engine.outcome import Ended
from agents.engine.runner import Ports, Running
from agents.events import Event
from agents.ids import new_id
from agents.kinds import RunWaiting
from agents.ports import ChatModel
from agents.spec import Limits, ModelSpec, RunSpec, WorkspaceSpec
from agents.tools.registry import Registry

# Gets each event with its bytes as the log holds them, of this run and of its sub-agents.
Watch = Callable[[Event, bytes], None]
# Asked for every question of every run; returns the answer and who gave it.
Respond = Callable[[str, Sequence[str]], Awaitable[tuple[str, str]]]


class NoLiveText:
    """Nobody reads along."""

    def delta(self, call: str, attempt: int, offset: int, text: str) -> None:
        pass

    def withdrawn(self, call: str, attempt: int) -> None:
        pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a lone run is made of. `workspace` is the prepared directory, `place` how it was asked for.

    `note` is what the operator should know about it; `policy_body` the policy's data, as in `RunSpec`; `environment`
    what tool processes get beside the marks of the run.
    """

    run: str = field(default_factory=new_id)
    task: str
    model: ModelSpec
    prompt: str
    tools: Registry
    workspace: str
    limits: Limits
    place: WorkspaceSpec | None = None
    note: str | None = None
    policy: str = "default"
    policy_body: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)

    def spec(self) -> RunSpec:
        return RunSpec(
            id=self.run,
            root=self.run,
            parent=None,
            path=(self.run,),
            agent="default",
            task=self.task,
            prompt=self.prompt,
            tools=self.tools.names,
            model=self.model,
            limits=self.limits,
            policy=self.policy,
            # Nobody can let a lone run go on later, unless its policy knows better.
            policy_body={"on_quota": "fail", **self.policy_body},
            workspace=self.place,
            labels=self.labels,
            dry_run=self.dry_run,
        )


class LoneRun:
    """One run, driven to its end by `drive`; `interrupt` and `steer` from the same event loop."""

    def __init__(self, setting: Setting, model: ChatModel, watch: Watch, respond: Respond) -> None:
        self.spec = setting.spec()
        self._setting = setting
        self._model = model
        self._watch = watch
        self._respond = respond
        self._clock = SystemClock()
        self._book = MemoryBook()
        self._inboxes: dict[str, MemoryInbox] = {}
        self._answering: set[asyncio.Task[None]] = set()

    async def drive(self) -> Ended:
        log = MemoryLog(self.spec.id)
        log.queue(self.spec.task, self.spec.agent)
        running = Running(self.spec, self._ports(self.spec, log), worker="alone", host=socket.gethostname(), epoch=1)
        try:
            return await running.drive(log.events[:])
        finally:
            for task in self._answering:
                task.cancel()

    def interrupt(self, *, by: str, reason: str = "") -> None:
        """Stop the run and everything below it. Idempotent."""
        self._send(self.spec.id, CommandKind.INTERRUPT, by, reason=reason)

    def steer(self, note: str, *, by: str) -> None:
        self._send(self.spec.id, CommandKind.STEER, by, args={"note": note})

    def _send(
        self, run: str, kind: CommandKind, by: str, *, reason: str = "", args: Mapping[str, Any] | None = None
    ) -> None:
        command = Command(id=new_id(), kind=kind, run=run, by=by, reason=reason or None, args=args or {})
        self._inboxes[run].send(command)

    def _follow(self, log: MemoryLog) -> None:
        """See every event of this log: those that are there already, and each new one."""
        for event, body in zip(log.events, log.bodies, strict=True):
            self._seen(event, body)
        log.on_event = lambda event: self._seen(event, log.bodies[-1])

    def _seen(self, event: Event, body: bytes) -> None:
        self._watch(event, body)
        if isinstance(event.data, RunWaiting) and event.data.reason in ("question", "approval"):
            task = asyncio.ensure_future(self._answer(event.run, event.data))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

    async def _answer(self, run: str, asked: RunWaiting) -> None:
        if asked.reason == "question":
            text, by = await self._respond(asked.text or "", asked.choices or ())
            self._send(run, CommandKind.ANSWER, by, args={"call": asked.call, "text": text})
            return
        text, by = await self._respond(f"Allow this? {asked.text}\n{asked.args}", ("approve", "deny"))
        allowed = text.strip().lower() in ("approve", "yes", "y")
        decided = {"decision": "approve"} if allowed else {"decision": "deny", "reason": text}
        self._send(run, CommandKind.ANSWER, by, args={"call": asked.call, **decided})

    def _ports(self, spec: RunSpec, log: MemoryLog) -> Ports:
        self._follow(log)
        inbox = self._inboxes[spec.id] = MemoryInbox()
        return Ports(
            sink=log,
            live=NoLiveText(),
            inbox=inbox,
            artifacts=log,
            lease=HeldLease(),
            models=OneModel(self._model, spec.model),
            tools=self._setting.tools,
            spawner=MemorySpawner(spec, self._ports),
            clock=self._clock,
            workspace=self._setting.workspace,
            environment={**self._setting.environment, "PILOTHOUSE_RUN": spec.id, "PILOTHOUSE_WORKER": self.spec.id},
            park_after_s=0.0,
            note=self._setting.note,
            ledger=self._book.of(spec),
        )
