"""The fold from a run's log to what the loop needs: messages, turn, counts and calls without an answer.

The live loop feeds it the same bodies that it logs, so a resumed run sees exactly what a running one saw.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from agents import kinds
from agents.kinds import Body
from agents.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from agents.policy.fuses import Used
from agents.policy.steering import append_note, note_text


@dataclass(slots=True, kw_only=True)
class OpenCall:
    """A tool call of the latest answer: asked for, perhaps started, perhaps answered. `child` is a run it started.

    `altered`: the arguments in the log are not those that the model gave (a secret in them is hidden).
    `decision`: a person's, until the call starts: it is good for one start.
    """

    asked: ToolCall
    started: bool = False
    result: ToolMessage | None = None
    child: str | None = None
    altered: bool = False
    decision: kinds.RunContinued | None = None


@dataclass(slots=True, kw_only=True)
class Transcript:
    messages: list[Message] = field(default_factory=list)
    turn: int = 0
    turn_open: bool = False
    steps: int = 0
    tokens: int = 0
    cost: Decimal | None = None
    started_at: datetime | None = None
    started_before: bool = False
    batch: dict[str, OpenCall] = field(default_factory=dict)
    open_chats: dict[str, kinds.CallStarted] = field(default_factory=dict)
    wire_ids: set[str] = field(default_factory=set)
    commands: set[str] = field(default_factory=set)
    injected: set[str] = field(default_factory=set)
    stopping: bool = False
    last_answer: str = ""
    answered: bool = False
    cut_in_a_row: int = 0

    def apply(self, body: Body, *, turn: int | None, call: str | None, at: datetime) -> None:
        """Fold one event in. Unknown kinds and fields are passed over."""
        handler = _HANDLERS.get(body.kind)
        if handler is not None:
            handler(self, body, turn, call, at)

    def used(self, now: datetime) -> Used:
        seconds = (now - self.started_at).total_seconds() if self.started_at else 0.0
        return Used(turns=self.turn, steps=self.steps, tokens=self.tokens, cost=self.cost, seconds=seconds)

    def unanswered(self) -> list[OpenCall]:
        """Tool calls of the latest answer that have no result yet, in the order asked."""
        return [open_call for open_call in self.batch.values() if open_call.result is None]

    def unique_wire_id(self, wire_id: str) -> str:
        """The id as given, or with a number behind it if this history already has one like it."""
        wanted = wire_id or "call"
        candidate, n = wanted, 1
        while candidate in self.wire_ids:
            n += 1
            candidate = f"{wanted}_{n}"
        self.wire_ids.add(candidate)
        return candidate

    # --- handlers -------------------------------------------------------------------------------------------

    def _queued(self, body: kinds.RunQueued, turn: int | None, call: str | None, at: datetime) -> None:
        self.messages.append(UserMessage(text=body.task))

    def _started(self, body: kinds.RunStarted, turn: int | None, call: str | None, at: datetime) -> None:
        self.started_before = True
        if self.started_at is None:
            self.started_at = at

    def _stopping(self, body: kinds.RunStopping, turn: int | None, call: str | None, at: datetime) -> None:
        self.stopping = True

    def _turn_started(self, body: kinds.TurnStarted, turn: int | None, call: str | None, at: datetime) -> None:
        self.turn = turn or self.turn + 1
        self.turn_open = True
        self.answered = False

    def _turn_completed(self, body: kinds.TurnCompleted, turn: int | None, call: str | None, at: datetime) -> None:
        self.turn_open = False

    def _call_started(self, body: kinds.CallStarted, turn: int | None, call: str | None, at: datetime) -> None:
        if call is None:
            return
        if body.operation == "chat":
            self.open_chats[call] = body
        elif call in self.batch:
            self.batch[call].started = True
            self.batch[call].decision = None

    def _call_retried(self, body: kinds.CallRetried, turn: int | None, call: str | None, at: datetime) -> None:
        self._spend(body.usage, body.cost_usd)

    def _call_completed(self, body: kinds.CallCompleted, turn: int | None, call: str | None, at: datetime) -> None:
        if call is None:
            return
        if body.operation == "chat":
            self.open_chats.pop(call, None)
            self._spend(body.usage, body.cost_usd)
            if body.status == "ok" and turn is not None:
                self._answer(body)
        elif call in self.batch and self.batch[call].result is None:
            open_call = self.batch[call]
            asked = open_call.asked
            open_call.result = ToolMessage(
                call=call, wire_id=asked.wire_id, name=asked.name, text=body.result or "(no output)"
            )
            if not self.unanswered():
                self.messages.extend(done.result for done in self.batch.values() if done.result)

    def _answer(self, body: kinds.CallCompleted) -> None:
        calls = tuple(ToolCall(**{k: c[k] for k in ("call", "wire_id", "name", "args")}) for c in body.tool_calls or ())
        text = body.text or ""
        self.messages.append(AssistantMessage(text=text, tool_calls=calls, opaque=body.opaque, origin=body.origin))
        self.wire_ids.update(c.wire_id for c in calls)
        altered = body.altered or {}
        self.batch = {c.call: OpenCall(asked=c, altered=c.call in altered) for c in calls}
        self.steps += len(calls)
        self.answered = True
        self.last_answer = text
        self.cut_in_a_row = self.cut_in_a_row + 1 if body.finish_reason == "length" and calls else 0

    def _injected(self, body: kinds.SteerInjected, turn: int | None, call: str | None, at: datetime) -> None:
        self.injected.add(body.command)
        self._say(body.note, body.after_call)

    def _hinted(self, body: kinds.HintInjected, turn: int | None, call: str | None, at: datetime) -> None:
        if isinstance(self.messages[-1], ToolMessage):
            self.messages[-1] = replace(self.messages[-1], text=f"{self.messages[-1].text}\n\n{body.text}")

    def _say(self, note: str, after_call: str | None) -> None:
        last = self.messages[-1] if self.messages else None
        if isinstance(last, ToolMessage) and after_call is not None:
            self.messages[-1] = replace(last, text=append_note(last.text, note))
        elif isinstance(last, UserMessage):
            self.messages[-1] = UserMessage(text=append_note(last.text, note))
        else:
            self.messages.append(UserMessage(text=note_text(note)))
            self.answered = False

    def _refused(self, body: kinds.SteerRefused, turn: int | None, call: str | None, at: datetime) -> None:
        self.injected.add(body.command)

    def _received(self, body: kinds.CommandReceived, turn: int | None, call: str | None, at: datetime) -> None:
        self.commands.add(body.command)

    def _continued(self, body: kinds.RunContinued, turn: int | None, call: str | None, at: datetime) -> None:
        if call in self.batch and body.decision and not body.problem:
            self.batch[call].decision = body

    def _child(self, body: kinds.ChildStarted, turn: int | None, call: str | None, at: datetime) -> None:
        if call in self.batch:
            self.batch[call].child = body.run

    def _spend(self, usage: Any, cost_usd: str | None) -> None:
        if usage:
            self.tokens += sum(usage.get(k, 0) for k in ("input", "output", "cache_read", "cache_write"))
        if cost_usd is not None:
            self.cost = (self.cost or Decimal(0)) + Decimal(cost_usd)


_HANDLERS: dict[str, Any] = {
    "run.queued": Transcript._queued,
    "run.started": Transcript._started,
    "run.stopping": Transcript._stopping,
    "run.continued": Transcript._continued,
    "turn.started": Transcript._turn_started,
    "turn.completed": Transcript._turn_completed,
    "call.started": Transcript._call_started,
    "call.retried": Transcript._call_retried,
    "call.completed": Transcript._call_completed,
    "steer.injected": Transcript._injected,
    "steer.refused": Transcript._refused,
    "hint.injected": Transcript._hinted,
    "command.received": Transcript._received,
    "child.started": Transcript._child,
}
