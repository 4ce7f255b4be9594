"""Which calls taught the run something, and which only cost: judged by the guard's own identity and answers.

A call taught something if its meaning with this answer was new since the last new state of the world, or if it brought
such a state. Two equal calls of one batch were asked before either was answered: neither repeats the other.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from agents.policy.answers import read_answer
from agents.policy.asked import NO_HINTS, Asked, Hints
from agents.policy.identity import act_of
from agents.policy.policies import Policy
from control.incidents.postmortem.record import Record, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """One tool call. `key`: what makes it the same call; `answer`: equal for equal meaning, "" if it never ran.
    `new_state`: it brought a file to a content that this had never had. `waited`: it heard that something still runs.
    `usd`, `tokens`: its part of what its turn has cost."""

    tool: Tool
    key: str
    answer: str
    taught: bool
    new_state: bool
    waited: bool
    usd: Decimal | None
    tokens: int

    @property
    def wasted(self) -> bool:
        return not self.taught and not self.waited and (self.tool.ran or self.tool.status == "blocked")


def lessons(record: Record, policy: Policy) -> list[Lesson]:
    """Every tool call of the run, in the order of asking."""
    read_only = set((record.start or {"data": {}})["data"].get("read_only") or ())
    shares = _shares(record)
    known: set[tuple[str, str]] = set()
    asked_now: list[tuple[str, str]] = []
    states: dict[str, set[str]] = {}
    found: list[Lesson] = []
    turn: Any = None
    for tool in record.tools.values():
        if tool.asked_seq != turn:
            known.update(asked_now)
            asked_now, turn = [], tool.asked_seq
        key = _key(tool, policy, Hints(read_only=True) if tool.name in read_only else NO_HINTS)
        answer = read_answer(tool.result, tool.failed) if tool.ran else None
        same = answer.same if answer is not None else ""
        new_state = _is_new_state(tool, states)
        if new_state:
            known.clear()
            asked_now.clear()
        fresh = tool.ran and tool.status != "stub" and (key, same) not in known
        taught = new_state if tool.writes else fresh
        asked_now.append((key, same))
        usd, tokens = shares[tool.asked_seq]
        found.append(
            Lesson(
                tool=tool,
                key=key,
                answer=same,
                taught=taught,
                new_state=new_state,
                waited=answer is not None and answer.pending,
                usd=usd,
                tokens=tokens,
            )
        )
    return found


def _key(tool: Tool, policy: Policy, hints: Hints) -> str:
    asked = Asked(call=tool.step, batch=tool.asked_seq, tool=tool.name, args=tool.args, hints=hints)
    return act_of(asked, policy.identity).key


def _is_new_state(tool: Tool, states: dict[str, set[str]]) -> bool:
    new = False
    for write in tool.writes:
        held = states.setdefault(write.path, set())
        if write.before is not None:
            held.add(write.before)
        after = write.after or "gone"
        new = new or after not in held
        held.add(after)
    return new


def _shares(record: Record) -> dict[int, tuple[Decimal | None, int]]:
    """By the answer that asked: the part of each of its calls in the turn's money and tokens, failed attempts too."""
    asked: dict[int, list[Tool]] = {}
    for tool in record.tools.values():
        asked.setdefault(tool.asked_seq, []).append(tool)
    usd: dict[int | None, Decimal | None] = {}
    tokens: dict[int | None, int] = {}
    for one in record.spent:
        tokens[one.turn] = tokens.get(one.turn, 0) + one.tokens_in + one.tokens_out
        if one.usd is not None:
            usd[one.turn] = (usd.get(one.turn) or Decimal(0)) + one.usd
    made: dict[int, tuple[Decimal | None, int]] = {}
    for seq, calls in asked.items():
        turn = calls[0].turn
        whole = usd.get(turn)
        made[seq] = (None if whole is None else whole / len(calls), tokens.get(turn, 0) // len(calls))
    return made
