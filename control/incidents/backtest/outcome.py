"""What policies would have done to one recorded run: a pure fold over its log, and the guard's walk over its calls.

The calls are judged as `python -m agents judge` does. What the model would have done after a refusal nobody knows: the
walk goes on with what it did do, so a block is counted, and only a stop saves what came after it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

import orjson

from agents.policy.policies import Policy
from agents.policy.recorded import judge_sequence
from agents.policy.sequences import ContentOf
from agents.policy.sequences import Sequence as Recorded
from agents.verdicts import Rung
from control.incidents.hindsight import dollars, held_back, saved

# What the fold asks for. The others, half of a log, are not even read.
KINDS = (
    "run.started",
    "call.started",
    "call.retried",
    "call.completed",
    "edit.recorded",
    "steer.injected",
    "context.compressed",
)
OBSERVED, BLOCKED, STOPPED = "observed", "blocked", "stopped"
_PARTS = ("input", "output", "cache_read", "cache_write")
_NEVER_RAN = frozenset({"blocked", "denied", "not_started"})
_LONGEST = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Where the run would have ended. `step` counts tool calls from 1: the one that would not have been made."""

    step: int
    seq: int
    turn: int | None
    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`rule` is that of the worst verdict, `outcome` its word. `saved_usd` None: nothing is known of its cost."""

    outcome: str
    rule: str
    why: str = ""
    observed: int = 0
    blocked: int = 0
    stubbed: int = 0
    first_block_step: int | None = None
    stop: Stop | None = None
    saved_calls: int = 0
    saved_model_calls: int = 0
    saved_tokens: int = 0
    saved_usd: Decimal | None = None


@dataclass(slots=True)
class _Chat:
    seq: int
    at: str
    turn: int | None
    done_seq: int | None = None


@dataclass(slots=True)
class _Step:
    step: int
    seq: int
    turn: int | None
    ran: bool = False


@dataclass(slots=True)
class Story:
    """One log, read once: the sequence that is judged, and where money and calls lie in it."""

    sequence: Recorded
    chats: dict[str, _Chat] = field(default_factory=dict)
    steps: dict[str, _Step] = field(default_factory=dict)
    # seq, tokens, dollars (None: not known).
    spent: list[tuple[int, int, Decimal | None]] = field(default_factory=list)
    started: str | None = None

    @classmethod
    def of(cls, bodies: Iterable[bytes | str], content_of: ContentOf) -> "Story":
        made = cls(Recorded(content_of))
        for body in bodies:
            made.add(orjson.loads(body))
        return made

    def add(self, event: Mapping[str, Any]) -> None:
        self.sequence.add(event)
        data, call = event["data"], event["call"]
        match event["kind"]:
            case "run.started":
                self.started = self.started or event["at"]
            case "call.started" if data["operation"] == "chat":
                self.chats.setdefault(call, _Chat(event["seq"], event["at"], event["turn"]))
            case "call.retried":
                self._spend(event["seq"], data)
            case "call.completed" if data["operation"] == "chat":
                self._answered(event, data)
            case "call.completed" if call in self.steps:
                self.steps[call].ran = data.get("status") not in _NEVER_RAN
                if data.get("usage") or data.get("cost_usd"):
                    self._spend(event["seq"], data)

    def _answered(self, event: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        self._spend(event["seq"], data)
        chat = self.chats.setdefault(event["call"], _Chat(event["seq"], event["at"], event["turn"]))
        chat.done_seq = event["seq"]
        for asked in data.get("tool_calls") or ():
            self.steps[asked["call"]] = _Step(len(self.steps) + 1, event["seq"], event["turn"])

    def _spend(self, seq: int, data: Mapping[str, Any]) -> None:
        usage = data.get("usage") or {}
        tokens = sum(usage.get(part) or 0 for part in _PARTS)
        self.spent.append((seq, tokens, dollars(data.get("cost_usd"))))


def outcomes(story: Story, policies: Sequence[Policy]) -> list[Outcome | None]:
    """One per policy, in their order; None where a policy would have been silent."""
    row: dict[str, Any] | None = None
    found: list[Outcome | None] = []
    for policy in policies:
        verdicts: list[Mapping[str, Any]] = []
        if policy.rules or policy.ladder or _fuses_of_guard(policy):
            row = row or story.sequence.row("")
            verdicts = [one for one in judge_sequence(row, policy)["verdicts"] if not one.get("shadow")]
        found.append(_outcome(story, policy, verdicts))
    return found


def _fuses_of_guard(policy: Policy) -> bool:
    fuses = policy.fuses
    return any(
        limit is not None
        for limit in (
            fuses.max_steps,
            fuses.max_tokens,
            fuses.max_cost,
            fuses.max_identical_calls,
            fuses.max_oscillations,
            fuses.max_failures_in_a_row,
        )
    )


def _outcome(story: Story, policy: Policy, verdicts: Sequence[Mapping[str, Any]]) -> Outcome | None:
    steps = [story.steps.get(call) if call else None for call in story.sequence.asked()]
    last = next((one for one in verdicts if one["rung"] == Rung.STOP), None)
    stop = _earliest(story, policy, _stop(steps, last) if last else None)
    if stop is not None:
        # Another fuse may have ended it before the guard's last words.
        verdicts = [one for one in verdicts if _step_of(steps, one) < stop.step]
    held = [one for one in verdicts if one.get("mode") == "refuse" or one["rung"] == Rung.ESCALATE]
    stubbed = [one for one in verdicts if one.get("mode") == "stub"]
    blocks = sorted((*held, *stubbed), key=lambda one: int(one["call"]))
    others = len(verdicts) - len(blocks)
    if stop is None and not verdicts:
        return None
    worst = stop or (blocks[0] if blocks else verdicts[0])
    rule, why = (worst.rule, worst.why) if isinstance(worst, Stop) else (worst["rule"], worst["explanation"])
    return Outcome(
        outcome=STOPPED if stop else BLOCKED if blocks else OBSERVED,
        rule=str(rule),
        why=str(why)[:_LONGEST],
        observed=others,
        blocked=len(held),
        stubbed=len(stubbed),
        first_block_step=_step_of(steps, blocks[0]) if blocks else None,
        stop=stop,
        **(
            saved(stop.seq, stop.step, steps=story.steps.values(), chats=story.chats.values(), spent=story.spent)
            if stop
            else {}
        ),
    )


def _step_of(steps: Sequence[_Step | None], verdict: Mapping[str, Any]) -> int:
    return _place(steps, verdict)[0]


def _place(steps: Sequence[_Step | None], verdict: Mapping[str, Any]) -> tuple[int, _Step | None]:
    """The tool call that a verdict is on; one on a text between calls holds back the next."""
    at = verdict["call"] - 1
    if (own := steps[at]) is not None:
        return own.step, own
    before = next((one for one in reversed(steps[:at]) if one is not None), None)
    return (before.step if before else 0) + 1, before


def _stop(steps: Sequence[_Step | None], verdict: Mapping[str, Any]) -> Stop:
    step, found = _place(steps, verdict)
    return Stop(
        step=step,
        seq=found.seq if found else 1,
        turn=found.turn if found else None,
        rule=str(verdict["rule"]),
        why=str(verdict["explanation"])[:_LONGEST],
    )


def _earliest(story: Story, policy: Policy, stop: Stop | None) -> Stop | None:
    """The fuses that are not the guard's count too: turns, model calls and time. Whatever comes first ends the run."""
    found, into = [stop] if stop else [], None
    if story.started is not None:
        began = datetime.fromisoformat(story.started)

        def into(chat: _Chat) -> float:
            return (datetime.fromisoformat(chat.at) - began).total_seconds()

    found += [
        _before(story, chat, fuse, why) for chat, fuse, why in held_back(policy.fuses, story.chats.values(), into)
    ]
    return min(found, key=lambda one: one.seq, default=None)


def _before(story: Story, chat: _Chat, fuse: str, why: str) -> Stop:
    """A fuse that holds back a model call: nothing that follows would have been."""
    asked = sum(step.seq < chat.seq for step in story.steps.values())
    return Stop(step=asked + 1, seq=chat.seq, turn=chat.turn, rule=fuse, why=why)
