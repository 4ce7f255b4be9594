"""The fold from a run's log to what the loop needs: messages, turn, counts and calls without an answer.

The live loop feeds it the same bodies that it logs, so a resumed run sees exactly what a running one saw.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from agents import kinds
from agents.commands import CommandKind
from agents.kinds import Body
from agents.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage, from_plain
from agents.policy import compression, shortening
from agents.policy.fuses import Used
from agents.policy.guarded import GuardedLog
from agents.policy.policies import UNGUARDED
from agents.policy.steering import append_note, note_text
from agents.verdicts import Rung


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
    """`seqs` runs beside `messages`: the event that last changed each. `rewrites` counts how often older ones changed.

    `artifacts` has for a call where the whole of its result is kept.
    """

    messages: list[Message] = field(default_factory=list)
    seqs: list[int] = field(default_factory=list)
    seq: int = 0
    rewrites: int = 0
    artifacts: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    turn: int = 0
    turn_open: bool = False
    steps: int = 0
    tokens: int = 0
    cost: Decimal | None = None
    started_at: datetime | None = None
    started_before: bool = False
    # Time in which nobody worked on it: it waited, or no worker had it.
    idle_s: float = 0.0
    idle_since: datetime | None = None
    last_at: datetime | None = None
    batch: dict[str, OpenCall] = field(default_factory=dict)
    open_chats: dict[str, kinds.CallStarted] = field(default_factory=dict)
    wire_ids: set[str] = field(default_factory=set)
    # Where to go on counting for an id that the model gives again and again.
    repeats: dict[str, int] = field(default_factory=dict)
    commands: set[str] = field(default_factory=set)
    injected: set[str] = field(default_factory=set)
    stopping: bool = False
    paused: bool = False
    raised: dict[str, str] = field(default_factory=dict)
    last_answer: str = ""
    answered: bool = False
    cut_in_a_row: int = 0
    # Fuses of which most is used, as told.
    warned: set[str] = field(default_factory=set)
    guarded: GuardedLog = field(default_factory=lambda: GuardedLog(UNGUARDED))

    def apply(self, body: Body, *, turn: int | None, call: str | None, at: datetime, seq: int | None = None) -> None:
        """Fold one event in; without a `seq` it is the next one. Unknown kinds and fields are passed over."""
        self.seq = self.seq + 1 if seq is None else seq
        handler = _HANDLERS.get(body.kind)
        if handler is not None:
            handler(self, body, turn, call, at)
        self.guarded.apply(body, turn=turn, call=call, seq=self.seq)
        self.last_at = at

    def used(self, now: datetime) -> Used:
        seconds = (now - self.started_at).total_seconds() if self.started_at else 0.0
        idle = self.idle_s + ((now - self.idle_since).total_seconds() if self.idle_since else 0.0)
        return Used(
            turns=self.turn,
            steps=self.steps,
            tokens=self.tokens,
            cost=self.cost,
            seconds=seconds,
            working=max(seconds - idle, 0.0),
        )

    def unanswered(self) -> list[OpenCall]:
        """Tool calls of the latest answer that have no result yet, in the order asked."""
        return [open_call for open_call in self.batch.values() if open_call.result is None]

    def unique_wire_id(self, wire_id: str) -> str:
        """The id as given, made legal, with a number behind it if this history already has one like it."""
        wanted = _NO_ID.sub("_", wire_id)[:_MAX_ID] or "call"
        candidate, n = wanted, self.repeats.get(wanted, 1)
        while candidate in self.wire_ids:
            n += 1
            candidate = f"{wanted[: _MAX_ID - len(str(n)) - 1]}_{n}"
        self.repeats[wanted] = n
        self.wire_ids.add(candidate)
        return candidate

    # --- handlers -------------------------------------------------------------------------------------------

    def _queued(self, body: kinds.RunQueued, turn: int | None, call: str | None, at: datetime) -> None:
        self._add(UserMessage(text=body.task))

    def _forked(self, body: kinds.RunForked, turn: int | None, call: str | None, at: datetime) -> None:
        """Another run's history takes the place of the task; what it has used is not counted here."""
        self.messages, self.seqs = [], []
        self._add(*(from_plain(one) for one in body.messages))
        self.rewrites += 1
        self.wire_ids.update(c.wire_id for m in self.messages if isinstance(m, AssistantMessage) for c in m.tool_calls)
        if body.note is not None:
            self._say(body.note, None)

    def _started(self, body: kinds.RunStarted, turn: int | None, call: str | None, at: datetime) -> None:
        self.started_before = True
        if self.started_at is None:
            self.started_at = at
        elif self.idle_since is None and self.last_at is not None:
            self.idle_s += (at - self.last_at).total_seconds()  # from the last sign of the former worker

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
            if body.artifact:
                self.artifacts[call] = body.artifact
            if not self.unanswered():
                self._add(*(done.result for done in self.batch.values() if done.result))

    def _answer(self, body: kinds.CallCompleted) -> None:
        calls = tuple(ToolCall(**{k: c[k] for k in ("call", "wire_id", "name", "args")}) for c in body.tool_calls or ())
        text = body.text or ""
        self._add(AssistantMessage(text=text, tool_calls=calls, opaque=body.opaque, origin=body.origin))
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
            self._put_last(replace(self.messages[-1], text=f"{self.messages[-1].text}\n\n{body.text}"))

    def _say(self, note: str, after_call: str | None) -> None:
        last = self.messages[-1] if self.messages else None
        if (isinstance(last, ToolMessage) and after_call is not None) or isinstance(last, UserMessage):
            self._put_last(replace(last, text=append_note(last.text, note)))
        else:
            self._add(UserMessage(text=note_text(note)))
            self.answered = False

    def _compressed(self, body: kinds.ContextCompressed, turn: int | None, call: str | None, at: datetime) -> None:
        self.rewrites += 1
        if body.stubs:
            self.messages = shortening.shortened(self.messages, body.stubs)
            return
        edge = compression.safe_edge(self.messages, compression.index_of(self.seqs, body.to_seq))
        new = compression.compressed(self.messages, to_index=edge, summary=body.summary)
        if len(new) != len(self.messages) or new[0] is not self.messages[0]:
            self.messages, self.seqs = new, [self.seqs[edge - 1], *self.seqs[edge:]]

    def _add(self, *messages: Message) -> None:
        self.messages.extend(messages)
        self.seqs.extend([self.seq] * len(messages))

    def _put_last(self, message: Message) -> None:
        self.messages[-1] = message
        self.seqs[-1] = self.seq

    def _refused(self, body: kinds.SteerRefused, turn: int | None, call: str | None, at: datetime) -> None:
        self.injected.add(body.command)

    def _received(self, body: kinds.CommandReceived, turn: int | None, call: str | None, at: datetime) -> None:
        self.commands.add(body.command)
        if body.command_kind == CommandKind.UNPAUSE:
            self.paused = False

    def _waiting(self, body: kinds.RunWaiting, turn: int | None, call: str | None, at: datetime) -> None:
        self.paused = body.reason == "pause"
        self.idle_since = self.idle_since or at

    def _continued(self, body: kinds.RunContinued, turn: int | None, call: str | None, at: datetime) -> None:
        self.paused = False
        if self.idle_since is not None:
            self.idle_s += (at - self.idle_since).total_seconds()
            self.idle_since = None
        if call in self.batch and body.decision and not body.problem:
            self.batch[call].decision = body

    def _raised(self, body: kinds.FuseRaised, turn: int | None, call: str | None, at: datetime) -> None:
        self.raised.update(body.limits)

    def _verdict(self, body: kinds.VerdictIssued, turn: int | None, call: str | None, at: datetime) -> None:
        if body.detector == "fuses" and body.rung == Rung.OBSERVE.value:
            self.warned.add(body.rule)

    def _child(self, body: kinds.ChildStarted, turn: int | None, call: str | None, at: datetime) -> None:
        if call in self.batch:
            self.batch[call].child = body.run

    def _spend(self, usage: Any, cost_usd: str | None) -> None:
        if usage:
            self.tokens += sum(usage.get(k, 0) for k in ("input", "output", "cache_read", "cache_write"))
        if cost_usd is not None:
            self.cost = (self.cost or Decimal(0)) + Decimal(cost_usd)


# Legal everywhere but for dots and colons, which one family of models wants back as it gave them.
_NO_ID = re.compile(r"[^a-zA-Z0-9_.:-]+")
_MAX_ID = 40

_HANDLERS: dict[str, Any] = {
    "run.queued": Transcript._queued,
    "run.forked": Transcript._forked,
    "run.started": Transcript._started,
    "run.stopping": Transcript._stopping,
    "run.waiting": Transcript._waiting,
    "run.continued": Transcript._continued,
    "turn.started": Transcript._turn_started,
    "turn.completed": Transcript._turn_completed,
    "call.started": Transcript._call_started,
    "call.retried": Transcript._call_retried,
    "call.completed": Transcript._call_completed,
    "steer.injected": Transcript._injected,
    "steer.refused": Transcript._refused,
    "hint.injected": Transcript._hinted,
    "context.compressed": Transcript._compressed,
    "command.received": Transcript._received,
    "child.started": Transcript._child,
    "fuse.raised": Transcript._raised,
    "verdict.issued": Transcript._verdict,
}
