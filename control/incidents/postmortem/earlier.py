"""What would have stopped the run earlier: the guard of each policy walks the recorded calls, as judge does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.errors import ConfigError
from agents.policy.policies import Policy, policy_from
from agents.policy.recorded import judge_sequence
from agents.policy.sequences import ContentOf
from agents.policy.sequences import Sequence as Recorded
from control.incidents.hindsight import held_back, saved
from control.incidents.postmortem.facts import NamedPolicy
from control.incidents.postmortem.record import Chat, Record, Tool
from control.incidents.postmortem.report import Earlier, Stop
from control.incidents.postmortem.words import told

_NOTHING: dict[str, Any] = {"saved_calls": 0, "saved_model_calls": 0, "saved_tokens": 0, "saved_usd": None}
_EMPTY = Earlier(policy="", version=None, own=True, refused=0, first_refused=None, stop=None, **_NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    """The recorded sequence with the tool call that each of its lines stands for (None: a text, a note)."""

    row: dict[str, Any]
    tools: list[Tool | None]


def earlier(record: Record, policies: Sequence[NamedPolicy], content_of: ContentOf) -> list[Earlier]:
    """One row per policy, in the order given. A policy that cannot be read any more is left out."""
    walk = _walk(record, content_of)
    done: list[tuple[Mapping[str, Any], Earlier]] = []
    for named in policies:
        known = next((row for body, row in done if body == named.body), None)
        try:
            # How the run went under its own policy is in its log.
            row = _EMPTY if named.own else known or _judged(record, walk, policy_from(named.body, named.name))
        except ConfigError:
            continue
        done.append(({} if named.own else named.body, _named(row, named)))
    return [row for _, row in done]


def _named(row: Earlier, named: NamedPolicy) -> Earlier:
    names = {name: getattr(row, name) for name in Earlier.__slots__}
    return Earlier(**(names | {"policy": told(named.name, 60), "version": named.version, "own": named.own}))


def _walk(record: Record, content_of: ContentOf) -> _Walk:
    made = Recorded(content_of)
    for event in record.events:
        made.add(event)
    tools = [record.tools.get(call) if call is not None else None for call in made.asked()]
    return _Walk(row=made.row(""), tools=tools)


def _judged(record: Record, walk: _Walk, policy: Policy) -> Earlier:
    verdicts = [one for one in judge_sequence(walk.row, policy)["verdicts"] if not one.get("shadow")]
    refused = [one for one in verdicts if one.get("mode") == "refuse" or one["rung"] == "escalate"]
    last = next((one for one in verdicts if one["rung"] == "stop"), None)
    stop = _of_fuses(record, policy, _stop(record, walk, last) if last else None)
    return Earlier(
        policy=policy.name,
        version=None,
        own=False,
        refused=len(refused),
        first_refused=_stop(record, walk, refused[0]) if refused else None,
        stop=stop,
        **_saved(record, stop),
    )


def _stop(record: Record, walk: _Walk, verdict: Mapping[str, Any]) -> Stop:
    """Where the log stands at a verdict. One on a text lies at the call before it."""
    at = verdict["call"] - 1
    tool = next((one for one in reversed(walk.tools[: at + 1]) if one is not None), None)
    return Stop(
        step=tool.step if tool else 0,
        seq=tool.asked_seq if tool else 1,
        turn=tool.turn if tool else None,
        at=tool.asked if tool else record.started_at,
        rule=str(verdict["rule"]),
        explanation=told(verdict["explanation"], 300),
    )


def _of_fuses(record: Record, policy: Policy, stop: Stop | None) -> Stop | None:
    """The fuses that are not the guard's: turns, model calls and time. Whatever comes first ends the run."""
    held = held_back(
        policy.fuses, record.chats.values(), lambda chat: (chat.started - record.started_at).total_seconds()
    )
    found = [*([stop] if stop else []), *(_before(record, chat, fuse, why) for chat, fuse, why in held)]
    return min(found, key=lambda one: one.seq, default=None)


def _before(record: Record, chat: Chat, fuse: str, text: str) -> Stop:
    """A fuse that holds back a model call: nothing that follows would have been."""
    asked = [tool for tool in record.tools.values() if tool.asked_seq < chat.seq]
    return Stop(step=len(asked) + 1, seq=chat.seq, turn=chat.turn, at=chat.started, rule=fuse, explanation=text)


def _saved(record: Record, stop: Stop | None) -> dict[str, Any]:
    if stop is None:
        return _NOTHING
    spent = ((one.seq, one.tokens_in + one.tokens_out, one.usd) for one in record.spent)
    return saved(stop.seq, stop.step, steps=record.tools.values(), chats=record.chats.values(), spent=spent)
