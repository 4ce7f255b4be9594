"""A recorded run played again: the model and the tools answer what the log says they answered, in its order.

Everything else is the loop as ever: it plans, judges, counts and stops by the policy that the run holds. So up to the
first thing that comes otherwise the two logs tell the same; from there on the recorded answers are a guess.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from agents import kinds
from agents.commands import Command, CommandKind
from agents.errors import RunFailed
from agents.events import Event
from agents.ids import new_id
from agents.messages import AssistantMessage, Message, ToolCall, Usage, to_plain
from agents.policy.guarded import GOOD
from agents.ports import ChatAnswer, ChatRequest, Edit, KeyReport, Picked, Resting, ToolContext, ToolOutput, ToolSpec
from agents.spec import CallStatus, ConcurrencyClass, ModelSpec
from agents.tools.registry import Registry

ENDED = "recording_ended"
NOT_RECORDED = "Not recorded: the run that is played again never made this call, so nobody knows its answer."
# A call that has one of these was never made, so the log holds no answer of its tool.
_NEVER = frozenset({CallStatus.BLOCKED.value, CallStatus.NOT_STARTED.value})
ContentOf = Callable[[str], Awaitable[bytes]]
Say = Callable[[Command], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """One answer of the model; `notes` are what people said and raised before the next one."""

    turn: int | None
    body: kinds.CallCompleted


class Recording:
    """What is left to be played. One per run that plays it: `done` is that run's own log as far as it goes."""

    def __init__(self, events: Iterable[Event], *, from_turn: int = 0, done: Iterable[Event] = ()) -> None:
        self._turns: deque[_Answer] = deque()
        self._summaries: deque[_Answer] = deque()
        self._results: dict[str, kinds.CallCompleted] = {}
        self._edits: dict[str, list[kinds.EditRecorded]] = {}
        self._said: dict[int, list[Command]] = {}
        # The new run's calls -> those of the log.
        self._calls: dict[str, str] = {}
        # The last answer to a call that the log holds in full.
        self._whole: dict[tuple[str, str], kinds.CallCompleted] = {}
        self.read_only: frozenset[str] = frozenset()
        self.tools: Mapping[str, Any] | None = None
        self._first = from_turn + 1
        for event in events:
            self._take(event)
        while self._turns and (self._turns[0].turn or 0) < self._first:
            self._turns.popleft()
        self._catch_up(done)

    def _take(self, event: Event) -> None:
        match event.data:
            case kinds.RunStarted() as body:
                self.read_only = frozenset(body.read_only or ())
                self.tools = body.tools
            case kinds.CallCompleted(operation="chat", status="ok") as body:
                line = self._summaries if event.turn is None else self._turns
                line.append(_Answer(turn=event.turn, body=body))
            case kinds.CallCompleted(operation="execute_tool") as body if event.call is not None:
                self._results[event.call] = body
            case kinds.EditRecorded() as body if event.call is not None:
                self._edits.setdefault(event.call, []).append(body)
            case kinds.SteerInjected() as body:
                self._keep(event.turn or 1, body.command, CommandKind.STEER, body.by, {"note": body.note})
            case kinds.FuseRaised() as body:
                last = self._turns[-1].turn if self._turns else None
                self._keep((last or 0) + 1, new_id(), CommandKind.RAISE, body.by, {"limits": dict(body.limits)})

    def _keep(self, turn: int, command: str, kind: CommandKind, by: str, args: Mapping[str, Any]) -> None:
        made = Command(id=command, kind=kind, run="", by=by, args=args)
        self._said.setdefault(turn, []).append(made)

    def _catch_up(self, done: Iterable[Event]) -> None:
        """What this run has had already, under a worker that is gone."""
        for event in done:
            body = event.data
            if not isinstance(body, kinds.CallCompleted) or body.operation != "chat" or body.status != "ok":
                continue
            line = self._summaries if event.turn is None else self._turns
            if line:
                recorded = line.popleft().body.tool_calls or ()
                for new, old in zip(body.tool_calls or (), recorded, strict=False):
                    self._calls[new["call"]] = old["call"]

    # --- what is asked of it ----------------------------------------------------------------------------------

    @property
    def early(self) -> list[Command]:
        """What people had said before the first answer."""
        return [one for turn, said in sorted(self._said.items()) if turn <= self._first for one in said]

    def said_after(self, turn: int) -> list[Command]:
        """What people said between the answer of this turn and the next."""
        return self._said.get(turn + 1, [])

    def next(self, *, summary: bool) -> tuple[int | None, kinds.CallCompleted, tuple[ToolCall, ...]]:
        """The next answer, its calls under keys of the new run. Raises RunFailed where the recording ends."""
        line = self._summaries if summary else self._turns
        if not line:
            raise RunFailed(ENDED, "The recording ends here: the run that is played again had no further answer.")
        one = line.popleft()
        calls = []
        for old in one.body.tool_calls or ():
            call = ToolCall(call=new_id(), wire_id=old["wire_id"], name=old["name"], args=old["args"] or "")
            self._calls[call.call] = old["call"]
            calls.append(call)
        return one.turn, one.body, tuple(calls)

    def result(self, call: str, tool: str, args: str) -> tuple[kinds.CallCompleted, list[kinds.EditRecorded]] | None:
        """What a call had been answered, and what it had written; None where nobody knows."""
        old = self._calls.get(call, "")
        body = self._results.get(old)
        if body is None or body.status in _NEVER:
            return None
        if body.status != CallStatus.STUB.value:
            self._whole[tool, args] = body
        elif body.heard is None and (tool, args) in self._whole:
            # The answer was as before, which is why it was not kept once more.
            body = self._whole[tool, args]
        return body, self._edits.get(old, [])


class RecordedModel:
    """Implements `ports.ChatModel`. What it costs is what it had cost; nobody pays it twice."""

    def __init__(self, recording: Recording, spec: ModelSpec, say: Say) -> None:
        self.name = spec.model
        self.provider = spec.provider
        self._recording = recording
        self._say = say

    def encode_message(self, message: Message) -> bytes:
        return orjson.dumps(to_plain(message))

    def encode_tools(self, tools: Sequence[ToolSpec]) -> bytes | None:
        return orjson.dumps([[one.name, one.description, dict(one.parameters)] for one in tools]) if tools else None

    async def ask(self, request: ChatRequest, on_text: Callable[[str], None]) -> ChatAnswer:
        turn, body, calls = self._recording.next(summary=request.no_calls)
        text = body.text or ""
        if text:
            on_text(text)
        if turn is not None:
            for command in self._recording.said_after(turn):
                self._say(command)
        return ChatAnswer(
            message=AssistantMessage(text=text, tool_calls=calls, opaque=body.opaque, origin=body.origin),
            usage=Usage(**body.usage) if body.usage else None,
            cost_usd=body.cost_usd,
            cost_source=body.cost_source or "unknown",
            finish_reason=body.finish_reason,
            ttft_ms=None,
            cut=body.finish_reason == "length",
            price_version=body.price_version,
        )


class RecordedModels:
    """Implements `ports.Models`: the one recorded model, without a key."""

    def __init__(self, recording: Recording, spec: ModelSpec, say: Say) -> None:
        self._picked = Picked(model=RecordedModel(recording, spec, say), spec=spec, credential=None)

    async def pick(self, place: int = 0, avoid: frozenset[str] = frozenset()) -> Picked | Resting:
        if place:
            raise IndexError("a recording has one model")
        return self._picked

    async def report(self, report: KeyReport) -> None:
        pass

    async def settled(self, within_s: float) -> None:
        pass


class RecordedTool:
    """Implements `ports.Tool`: does nothing, and answers what the tool of this name had answered to this very call."""

    def __init__(self, spec: ToolSpec, recording: Recording, content_of: ContentOf) -> None:
        self._spec = spec
        self._recording = recording
        self._content_of = content_of

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        key = orjson.dumps(args, option=orjson.OPT_SORT_KEYS).decode()
        found = self._recording.result(context.call, self._spec.name, key)
        if found is None:
            return ToolOutput(text=NOT_RECORDED, is_error=True, status=CallStatus.NOT_STARTED.value)
        body, edits = found
        return ToolOutput(
            text=body.result or "",
            is_error=body.status not in GOOD,
            edits=tuple([await self._edit(one) for one in edits]),
            status=CallStatus.OK.value if body.status == CallStatus.STUB.value else body.status,
            heard=body.heard,
        )

    async def _edit(self, body: kinds.EditRecorded) -> Edit:
        content = None
        if body.artifact is not None:
            try:
                content = await self._content_of(str(body.artifact["sha256"]))
            except LookupError:
                pass  # retention has dropped it
        return Edit(
            path=body.path,
            before_sha256=body.before_sha256,
            sha256=body.sha256,
            size=body.bytes,
            state=body.state,
            content=content,
        )


def recorded_tools(recording: Recording, schemas: bytes | None, content_of: ContentOf) -> Registry:
    """The tools as the recorded run named them to its model, those of its servers included. `schemas` None: retention
    has dropped them; the calls then meet no tool, which shows as the first thing that comes otherwise."""
    named = orjson.loads(schemas) if schemas else []
    return Registry(RecordedTool(_spec(one, recording), recording, content_of) for one in named)


def _spec(named: Mapping[str, Any], recording: Recording) -> ToolSpec:
    reads = named["name"] in recording.read_only
    return ToolSpec(
        name=named["name"],
        description=named.get("description") or "",
        parameters=named.get("parameters") or {"type": "object"},
        concurrency=ConcurrencyClass.SAFE if reads else ConcurrencyClass.UNKNOWN,
    )
