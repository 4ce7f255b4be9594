"""A run without a database: its log, inbox and sub-agents live in this process."""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agents.commands import Command
from agents.engine.runner import Ports, Running
from agents.errors import Fenced, SpawnRefused
from agents.events import Draft, Event, decode, draft, encode
from agents.ids import new_id
from agents.kinds import FINAL_KINDS, RunQueued
from agents.policy.accounts import tree_limit
from agents.policy.limits import of_parent
from agents.ports import ChatModel, Child, ChildEnd, KeyReport, Picked, Resting, SpawnRequest
from agents.spec import MAX_CHILDREN_PER_TREE, MAX_DEPTH, ModelSpec, RunSpec


class SystemClock:
    """The machine's own time."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class OneModel:
    """`ports.Models` of a run that has one model and one key, which belongs to no pool."""

    def __init__(self, model: ChatModel, spec: ModelSpec | None = None) -> None:
        self._spec = spec or ModelSpec(model=model.name, base_url="http://127.0.0.1/v1", provider=model.provider)
        self._model = model

    async def pick(self, place: int = 0, avoid: frozenset[str] = frozenset()) -> Picked | Resting:
        if place:
            raise IndexError("there is one model")
        return Picked(model=self._model, spec=self._spec, credential=None)

    async def report(self, report: KeyReport) -> None:
        pass


class MemoryLog:
    """EventSink and Artifacts of one run. Encodes and decodes as the real log does; fences when told to."""

    def __init__(self, run: str, root: str | None = None, on_event: Callable[[Event], None] | None = None) -> None:
        self.run = run
        self.root = root or run
        self.events: list[Event] = []
        self.bodies: list[bytes] = []
        self.contents: dict[str, bytes] = {}
        self.fenced = False
        self.on_event = on_event
        self._waiters: list[tuple[Callable[[Event], bool], asyncio.Future[Event]]] = []

    def emit(self, *drafts: Draft) -> Awaitable[int]:
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        if self.fenced:
            done.set_exception(Fenced(self.run, 0))
            done.exception()
            return done
        for item in drafts:
            self._append(item)
        done.set_result(len(self.events))
        return done

    def _append(self, item: Draft) -> None:
        over = any(e.kind in FINAL_KINDS for e in self.events[-8:])
        if over and item.kind != "call.late":
            raise AssertionError(f"{item.kind} after the final event")
        body = encode(item, run=self.run, root=self.root, seq=len(self.events) + 1, ts=item.at)
        event = decode(body)
        self.bodies.append(body)
        self.events.append(event)
        if self.on_event:
            self.on_event(event)
        for matches, waiter in list(self._waiters):
            if not waiter.done() and matches(event):
                waiter.set_result(event)

    async def put(self, content: bytes) -> Mapping[str, Any]:
        sha256 = hashlib.sha256(content).hexdigest()
        self.contents[sha256] = content
        return {"sha256": sha256, "bytes": len(content)}

    async def get(self, sha256: str) -> bytes:
        return self.contents[sha256]

    def queue(self, task: str, agent: str = "default") -> None:
        """The first event of any run."""
        self._append(draft(RunQueued(agent=agent, task=task, labels={}), at=datetime.now(UTC)))

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    def of(self, kind: str) -> list[Any]:
        """The bodies of all events of one kind."""
        return [event.data for event in self.events if event.kind == kind]

    async def until(self, kind: str, where: Callable[[Any], bool] = lambda _: True, timeout: float = 10) -> Event:
        """The first event of that kind, past or future, whose body matches."""
        for event in self.events:
            if event.kind == kind and where(event.data):
                return event
        waiter: asyncio.Future[Event] = asyncio.get_running_loop().create_future()
        self._waiters.append((lambda e: e.kind == kind and where(e.data), waiter))
        return await asyncio.wait_for(waiter, timeout)


class MemoryInbox:
    """Commands for one run; `send` from a test or from the command line."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Command] = asyncio.Queue()

    def send(self, command: Command) -> None:
        self._queue.put_nowait(command)

    async def receive(self) -> Command:
        return await self._queue.get()

    async def drain(self) -> Sequence[Command]:
        waiting = []
        while not self._queue.empty():
            waiting.append(self._queue.get_nowait())
        return waiting


class MemoryChild:
    """A child run driven in this process; `end` is set when it has ended."""

    def __init__(self, running: Running, log: MemoryLog) -> None:
        self.run = running.spec.id
        self.running = running
        self.log = log
        self.end: ChildEnd | None = None
        self._task = asyncio.create_task(running.drive(log.events[:]))

    async def wait(self) -> ChildEnd:
        return self._ended(await asyncio.shield(self._task))

    async def stop(self) -> ChildEnd | None:
        self.running.stop(by="parent", reason="the parent was stopped")
        return self._ended(await self._task)

    def _ended(self, ended: Any) -> ChildEnd:
        self.end = ChildEnd(run=self.run, status=ended.status, final=ended.final, stopped=ended.stopped or {})
        return self.end


class MemorySpawner:
    """Drives children with the parent's own parts; `make` builds their ports from their spec and log."""

    def __init__(self, parent: RunSpec, make: Callable[[RunSpec, MemoryLog], Ports]) -> None:
        self._parent = parent
        self._make = make
        self.children: list[MemoryChild] = []

    async def spawn(self, request: SpawnRequest) -> Child:
        policy = self._parent.policy_body
        if self._parent.depth >= tree_limit([policy], "max_depth", MAX_DEPTH):
            raise SpawnRefused("too_deep", "Sub-agents may not start further ones at this depth. Do the work yourself.")
        if len(self.children) >= tree_limit([policy], "max_children", MAX_CHILDREN_PER_TREE):
            raise SpawnRefused("too_many", f"{len(self.children)} sub-agents were started. Do the rest yourself.")
        child_id = new_id()
        spec = RunSpec(
            id=child_id,
            root=self._parent.root,
            parent=self._parent.id,
            path=(*self._parent.path, child_id),
            agent=request.agent or self._parent.agent,
            task=request.task,
            prompt=self._parent.prompt,
            tools=self._parent.tools,
            model=self._parent.model,
            limits=of_parent(self._parent.limits),
            policy=self._parent.policy,
            policy_body=self._parent.policy_body,
        )
        log = MemoryLog(child_id, spec.root)
        log.queue(request.task, spec.agent)
        running = Running(spec, self._make(spec, log), worker="memory", host="memory", epoch=1)
        child = MemoryChild(running, log)
        self.children.append(child)
        return child

    async def adopt(self, run: str) -> Child:
        raise SpawnRefused("unknown_child", f"There is no run {run} in memory.")


class NoSpawner:
    """For runs that may not delegate."""

    async def spawn(self, request: SpawnRequest) -> Child:
        raise SpawnRefused("no_children", "Sub-agents are not available here. Do the work yourself.")

    async def adopt(self, run: str) -> Child:
        raise SpawnRefused("no_children", f"Sub-agent {run} cannot be taken over here.")


class HeldLease:
    """A lease that holds until a test lets it go."""

    def __init__(self) -> None:
        self.value = True

    def held(self) -> bool:
        return self.value
