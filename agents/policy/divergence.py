"""A recorded run and a replay of it side by side, step by step to the first thing that differs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.kinds import FINAL_KINDS

# Of how a call came out only this counts: whether the tool was asked, and whether the model read its answer.
_HELD = frozenset({"blocked", "stub", "denied", "not_started"})
RAN, OPEN = "ran", "open"
# Ends that say only that nothing more is recorded.
_CUT = frozenset({"interrupted", "lost", "failed", "tripped", "exhausted"})
RECORDING_ENDED = "recording_ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One tool call that the model asked for. `verdicts` are `(rung, rule)` of what acted on it; shadow is left out."""

    step: int
    turn: int | None
    tool: str
    args: str
    outcome: str
    verdicts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What one log tells: its steps, and how it ended (None: not yet) by what."""

    steps: tuple[Step, ...]
    end: str | None = None
    by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """Where two logs part: at this step. A side without a step has ended before it."""

    step: int
    turn: int | None
    recorded: Step | None
    now: Step | None
    why: str


@dataclass(slots=True)
class _Call:
    step: int
    turn: int | None
    tool: str
    args: str
    outcome: str = OPEN
    verdicts: list[tuple[str, str]] = field(default_factory=list)


def told(events: Iterable[Mapping[str, Any]], *, after_turn: int = 0) -> Told:
    """Fold envelopes, as plain values in their order. Steps of turns up to `after_turn` are left out."""
    calls: dict[str, _Call] = {}
    end = by = None
    for event in events:
        kind, data, turn = event["kind"], event["data"], event["turn"]
        if kind == "call.completed" and data["operation"] == "chat":
            if turn is not None and turn > after_turn and data["status"] == "ok":
                for asked in data.get("tool_calls") or ():
                    step = len(calls) + 1
                    calls[asked["call"]] = _Call(step, turn, str(asked["name"]), str(asked.get("args") or ""))
        elif kind == "call.completed" and event["call"] in calls:
            status = str(data["status"])
            calls[event["call"]].outcome = status if status in _HELD else RAN
        elif kind == "verdict.issued" and event["call"] in calls and not data.get("shadow"):
            if data.get("detector") != "fuses" or data["rung"] == "stop":  # a fuse that is nearly used stops nothing
                calls[event["call"]].verdicts.append((str(data["rung"]), str(data["rule"])))
        elif kind in FINAL_KINDS:
            end = kind.removeprefix("run.")
            by = data.get("fuse") or data.get("rule") or (data.get("error") or {}).get("reason")
    steps = tuple(
        Step(
            step=one.step,
            turn=one.turn,
            tool=one.tool,
            args=one.args,
            outcome=one.outcome,
            verdicts=tuple(one.verdicts),
        )
        for one in calls.values()
    )
    return Told(steps=steps, end=end, by=by)


def parts(recorded: Told, now: Told) -> Divergence | None:
    """The first thing that comes otherwise; None while, or if, all is the same. Pure."""
    for old, new in zip(recorded.steps, now.steps, strict=False):
        if new.outcome == OPEN and now.end is None:
            return None  # it is not there yet
        if why := _differs(old, new):
            old, new = _cause(recorded, now, old, new)
            why = _differs(old, new)
            return Divergence(step=old.step, turn=new.turn, recorded=old, now=new, why=why)
    at = min(len(recorded.steps), len(now.steps))
    old_next, new_next = _at(recorded, at), _at(now, at)
    if new_next is not None:
        why = f"the recorded run had {_ended(recorded)} here, this one goes on"
        return Divergence(step=at + 1, turn=new_next.turn, recorded=None, now=new_next, why=why)
    if now.end is None or _same_end(recorded, now, cut=old_next is None):
        return None
    why = f"this one {_ended(now)} here, the recorded run {'went on' if old_next else _ended(recorded)}"
    return Divergence(step=at + 1, turn=old_next.turn if old_next else None, recorded=old_next, now=None, why=why)


def _cause(recorded: Told, now: Told, old: Step, new: Step) -> tuple[Step, Step]:
    """A call that was not made because a later one of its turn trips the run: that one is what comes otherwise."""
    if new.outcome == "not_started" and not new.verdicts:
        for place in range(new.step, min(len(recorded.steps), len(now.steps))):
            later = now.steps[place]
            if later.turn == new.turn and any(rung == "stop" for rung, _ in later.verdicts):
                return recorded.steps[place], later
    return old, new


def same(recorded: Told, now: Told) -> int:
    """How many steps are the same, from the first on."""
    found = parts(recorded, now)
    return min(len(recorded.steps), len(now.steps)) if found is None else found.step - 1


def _differs(old: Step, new: Step) -> str:
    if (old.tool, old.args) != (new.tool, new.args):
        return f"the model asked for {new.tool} where {old.tool} is recorded"
    outcome = "ran" if old.outcome == OPEN else old.outcome
    if outcome != new.outcome and not (old.outcome == OPEN and new.outcome in _HELD):
        return f"the call {_WORDS[new.outcome]}{_by(new)}, where it {_WORDS[outcome]}{_by(old)}"
    if old.verdicts != new.verdicts:
        return f"the guard says {_spoken(new)}, where it said {_spoken(old)}"
    return ""


_WORDS = {
    "ran": "ran",
    "open": "was not answered",
    "blocked": "is refused",
    "stub": "is answered “unchanged”",
    "denied": "is denied",
    "not_started": "is not made",
}


def _by(step: Step) -> str:
    return f" by {step.verdicts[-1][1]}" if step.verdicts and step.outcome != RAN else ""


def _spoken(step: Step) -> str:
    return ", ".join(f"{rung} ({rule})" for rung, rule in step.verdicts) or "nothing"


def _at(one: Told, place: int) -> Step | None:
    return one.steps[place] if place < len(one.steps) else None


def _ended(one: Told) -> str:
    return f"{one.end or 'not ended'}{f' ({one.by})' if one.by else ''}"


def _same_end(recorded: Told, now: Told, *, cut: bool) -> bool:
    """A recording that breaks off ends the replay too, in the only way there is."""
    if cut and now.by == RECORDING_ENDED:
        return recorded.end in _CUT
    return cut and (recorded.end, recorded.by) == (now.end, now.by)
