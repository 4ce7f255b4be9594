"""Shipped doubles: a log, an inbox, a clock, a model and a spawner that live in memory and do what the real ones do."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from agents.engine.local import HeldLease, MemoryInbox, MemoryLog, MemorySpawner, NoSpawner, OneModel
from agents.engine.runner import Ports, Running
from agents.errors import ModelError
from agents.ids import new_id
from agents.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, Usage, UserMessage
from agents.policy.credentials import KeyState, Report, Rest, after, choose, revived
from agents.ports import ChatAnswer, ChatRequest, KeyReport, Picked, Resting, ToolSpec
from agents.spec import Limits, ModelSpec, RunSpec
from agents.tools.registry import Registry


class FakeClock:
    """Time that moves only when somebody sleeps; `sleeps` records every wait asked for."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._passed = 0.0
        self.sleeps: list[float] = []

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._passed

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        self._passed += seconds

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.advance(seconds)
        await asyncio.sleep(0)


@dataclass(slots=True)
class MemoryLive:
    """Live text as a reader would have put it together."""

    texts: dict[tuple[str, int], str] = field(default_factory=dict)
    gone: list[tuple[str, int]] = field(default_factory=list)

    def delta(self, call: str, attempt: int, offset: int, text: str) -> None:
        before = self.texts.get((call, attempt), "")
        if len(before) == offset:
            self.texts[call, attempt] = before + text

    def withdrawn(self, call: str, attempt: int) -> None:
        self.texts.pop((call, attempt), None)
        self.gone.append((call, attempt))


Script = Callable[[Sequence[Any]], "str | ModelError | AssistantMessage | Awaitable[Any]"]


def asks(*calls: tuple[str, Mapping[str, Any] | str], text: str = "") -> AssistantMessage:
    """An answer that asks for tools: `asks(("read_file", {"path": "a"}))`; a string goes out as raw arguments."""
    return AssistantMessage(
        text=text,
        tool_calls=tuple(
            ToolCall(
                call=new_id(), wire_id=f"w{n}", name=name, args=a if isinstance(a, str) else orjson.dumps(a).decode()
            )
            for n, (name, a) in enumerate(calls)
        ),
    )


class ScriptedModel:
    """A model without a wire: a list of answers, or a function from the messages to an answer.

    Strings are text, AssistantMessages as `asks` makes them, ModelErrors are raised, awaitables awaited first.
    `requests` keeps the decoded messages of every request.
    """

    name = "scripted"
    provider = "scripted"

    def __init__(self, script: Sequence[Any] | Script, usage: Usage | None = None) -> None:
        self._script = script
        self._usage = usage or Usage(input=10, output=5)
        self.requests: list[list[dict[str, Any]]] = []

    def encode_message(self, message: Message) -> bytes:
        match message:
            case SystemMessage(text=text):
                return orjson.dumps({"role": "system", "content": text})
            case UserMessage(text=text):
                return orjson.dumps({"role": "user", "content": text})
            case ToolMessage(wire_id=wire_id, text=text):
                return orjson.dumps({"role": "tool", "tool_call_id": wire_id, "content": text})
            case AssistantMessage(text=text, tool_calls=calls):
                asked = [{"id": c.wire_id, "name": c.name, "args": c.args} for c in calls]
                return orjson.dumps({"role": "assistant", "content": text, "tool_calls": asked})

    def encode_tools(self, tools: Sequence[ToolSpec]) -> bytes | None:
        return orjson.dumps([tool.name for tool in tools]) if tools else None

    async def ask(self, request: ChatRequest, on_text: Callable[[str], None]) -> ChatAnswer:
        messages = [orjson.loads(part) for part in request.parts]
        self.requests.append(messages)
        step = self._script(messages) if callable(self._script) else self._script[len(self.requests) - 1]
        if isinstance(step, Awaitable):
            step = await step
        if isinstance(step, ModelError):
            raise step
        if isinstance(step, ChatAnswer):
            return step
        message = AssistantMessage(text=step) if isinstance(step, str) else step
        if message.text:
            on_text(message.text)
        await asyncio.sleep(0)
        return ChatAnswer(
            message=message,
            usage=self._usage,
            cost_usd="0.001",
            cost_source="reported",
            finish_reason="stop",
            ttft_ms=1.0,
        )


class MemoryModels:
    """`ports.Models` over a pool of keys in memory, as the real one judges them.

    `places`: for each model of the run in order, the labels of its keys with the ChatModel to use. `reports` keeps what
    was told.
    """

    def __init__(self, *places: Mapping[str, Any], clock: Any, specs: Sequence[ModelSpec] = ()) -> None:
        self._places = places
        self._clock = clock
        self._states = {label: KeyState(label=label) for place in places for label in place}
        self.specs = tuple(specs) or tuple(
            ModelSpec(model=next(iter(place.values())).name, base_url=f"http://127.0.0.1:{n + 1}/v1")
            for n, place in enumerate(places)
        )
        self.reports: list[KeyReport] = []

    async def pick(self, place: int = 0, avoid: frozenset[str] = frozenset()) -> Picked | Resting:
        models = self._places[place]
        now = self._clock.now()
        got = choose([self._states[label] for label in models], now, avoid, 0.0)
        if isinstance(got, Rest):
            return Resting(until=got.until, why=got.why)
        return Picked(model=models[got], spec=replace(self.specs[place], credential=got), credential=got)

    async def report(self, report: KeyReport) -> None:
        self.reports.append(report)
        if report.credential is not None:
            told = Report(reason=report.reason, cooldown_s=report.cooldown_s)
            self._states[report.credential] = after(self._states[report.credential], told, self._clock.now())

    def revive(self, label: str) -> None:
        """As an operator does after paying the bill."""
        self._states[label] = revived(self._states[label])


def memory_spec(task: str = "do it", *, limits: Limits | None = None, **changes: Any) -> RunSpec:
    """A frozen run for tests."""
    run = new_id()
    values: dict[str, Any] = {
        "id": run,
        "root": run,
        "parent": None,
        "path": (run,),
        "agent": "default",
        "task": task,
        "prompt": "You are a test agent.",
        "tools": (),
        "model": ModelSpec(model="scripted", base_url="http://127.0.0.1:9/v1"),
        "limits": limits or Limits(),
    }
    return RunSpec(**{**values, **changes})


@dataclass(slots=True)
class MemoryRun:
    """A whole run in memory: `await run.drive()`, then look at `run.log`."""

    spec: RunSpec
    log: MemoryLog
    inbox: MemoryInbox
    live: MemoryLive
    clock: Any
    lease: HeldLease
    running: Running
    models: Any

    async def drive(self) -> Any:
        return await self.running.drive(self.log.events[:])


def memory_run(
    model: Any,
    *,
    tools: Sequence[Any] = (),
    workspace: str = "/nonexistent",
    task: str = "do it",
    clock: Any = None,
    limits: Limits | None = None,
    log: MemoryLog | None = None,
    spec: RunSpec | None = None,
    spawner: Any = None,
    park_after_s: float = 600.0,
    epoch: int = 1,
    servers: Any = None,
    ledger: Any = None,
) -> MemoryRun:
    """Wire a run from doubles; give `log` and `spec` of an earlier run to resume it."""
    spec = spec or memory_spec(task, limits=limits)
    if log is None:
        log = MemoryLog(spec.id)
        log.queue(spec.task)
    inbox, live, lease, clock = MemoryInbox(), MemoryLive(), HeldLease(), clock or FakeClock()
    ports = Ports(
        sink=log,
        live=live,
        inbox=inbox,
        artifacts=log,
        lease=lease,
        models=model if hasattr(model, "pick") else OneModel(model, spec.model),
        tools=Registry(tools),
        spawner=spawner or NoSpawner(),
        clock=clock,
        workspace=workspace,
        environment={"PILOTHOUSE_RUN": spec.id},
        park_after_s=park_after_s,
        servers=servers,
        ledger=ledger,
    )
    running = Running(spec, ports, worker="memory", host="memory", epoch=epoch)
    return MemoryRun(
        spec=spec, log=log, inbox=inbox, live=live, clock=clock, lease=lease, running=running, models=ports.models
    )


__all__ = [
    "FakeClock",
    "HeldLease",
    "MemoryInbox",
    "MemoryLive",
    "MemoryLog",
    "MemoryModels",
    "MemoryRun",
    "MemorySpawner",
    "NoSpawner",
    "ScriptedModel",
    "asks",
    "memory_run",
    "memory_spec",
]  # fmt: skip
