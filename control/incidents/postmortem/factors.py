"""Contributing factors, proposed from evidence. Conditions, never persons: what people did is in the timeline."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from agents.spec import DEFAULT_MAX_TURNS
from control.incidents.hindsight import dollars
from control.incidents.postmortem.facts import Facts
from control.incidents.postmortem.record import Record, moment
from control.incidents.postmortem.repeats import line_of, seq_of
from control.incidents.postmortem.report import Delays, Factor, Impact, Oscillation, Repeat
from control.incidents.postmortem.teaching import Lesson
from control.incidents.postmortem.words import count, money, span, told

# A fuse that would have let the run go on to so many times of what it used held nothing.
LOOSE = 3
# So many equal answers are a pattern, so many failed attempts that nobody heard of too.
SAME, SWALLOWED = 3, 3
LATE_S = 300.0
_HIDES = re.compile(r"\|\|\s*(?:true|:|exit 0|echo\b)|2>\s*/dev/null|\bset \+e\b|except(?:\s+\w+)?:\s*pass\b")
_RAISED = re.compile(r"Traceback \(most recent call last\)|^[\w.]*(?:Error|Exception): ", re.M)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What the other rooms have found."""

    record: Record
    facts: Facts
    lessons: Sequence[Lesson]
    impact: Impact
    repeats: Sequence[Repeat]
    oscillations: Sequence[Oscillation]
    delays: Delays


def factors(found: Findings) -> list[Factor]:
    """The ones that the evidence supports, the strongest ground first."""
    looks: tuple[Callable[[Findings], Factor | None], ...] = (
        _fuses,
        _wide_alarm,
        _same_answer,
        _back_and_forth,
        _guard_off,
        _swallowed,
        _hidden_failures,
        _shared,
        _unpriced,
        _late,
        _unpaged,
        _requeued,
    )

    return [one for look in looks if (one := look(found)) is not None]


def _ended_well(found: Findings) -> bool:
    final = found.record.final
    return final is not None and final["kind"] == "run.completed" and not found.impact.wasted_calls


def _limits(found: Findings) -> Mapping[str, Decimal]:
    """The run's own fuses in force at its end."""
    given: dict[str, Any] = dict((found.record.start or {"data": {}})["data"].get("limits") or {})
    limits = {name: value for name, one in given.items() if (value := dollars((one or {}).get("value"))) is not None}
    for event in found.record.others:
        if event["kind"] == "fuse.raised":
            raised = {name: dollars(value) for name, value in event["data"]["limits"].items()}
            limits.update({name: value for name, value in raised.items() if value is not None})
    return limits


def _fuses(found: Findings) -> Factor | None:
    """Fuses of what a loop burns: money, tokens, steps. One that was near held; it is enough."""
    if _ended_well(found):
        return None
    impact, limits = found.impact, _limits(found)
    used = {
        "max_cost": impact.cost_usd or Decimal(0),
        "max_tokens": Decimal(impact.tokens_in + impact.tokens_out),
        "max_steps": Decimal(impact.tool_calls),
    }
    seqs = (found.record.start["seq"],) if found.record.start else ()
    missing = [name for name in used if name not in limits]
    if len(missing) == len(used):
        turns = limits.get("max_turns", Decimal(DEFAULT_MAX_TURNS))
        text = f"no fuse on money, tokens or steps; only its budget of {turns:f} turns (used {impact.turns})"
        return Factor(code="no_fuse", title="No cost fuse on this run", evidence=text, seqs=seqs)
    near = [name for name, limit in limits.items() if name in used and used[name] * LOOSE >= limit]
    if near:
        return None
    told_limits = ", ".join(f"{name} {limits[name]:f} (used {used[name]:f})" for name in used if name in limits)
    title = "No cost fuse on this run, and loose ones beside it" if "max_cost" in missing else "Fuses too loose"
    return Factor(code="loose_fuse", title=title, evidence=f"nothing came near: {told_limits}", seqs=seqs)


def _wide_alarm(found: Findings) -> Factor | None:
    if "max_cost" in _limits(found) or not found.facts.allowances or _ended_well(found):
        return None
    told_all = "; ".join(f"{told(one.what, 60)}: ${one.limit} per {one.per}" for one in found.facts.allowances[:3])
    return Factor(
        code="wide_alarm",
        title=f"Money was limited by the {found.facts.allowances[0].per}, not by the run",
        evidence=f"{told_all}; this run spent {money(found.impact.cost_usd)} and could not reach it",
    )


def _same_answer(found: Findings) -> Factor | None:
    worst = max(found.repeats, key=lambda one: one.wasted_calls, default=None)
    if worst is None or worst.wasted_calls < SAME:
        return None
    answers = count(worst.answers, "answer")
    return Factor(
        code="same_answer",
        title=f"The same call, {worst.times} times",
        evidence=f"{worst.call}: {answers} among {worst.times} calls; {worst.wasted_calls} of them taught nothing",
        seqs=(worst.first_seq, worst.last_seq),
    )


def _back_and_forth(found: Findings) -> Factor | None:
    worst = max(found.oscillations, key=lambda one: one.returns, default=None)
    if worst is None or worst.returns < 2:
        return None
    letters = worst.letters.split()
    shown = " ".join(letters[:12]) + (" …" if len(letters) > 12 else "")
    return Factor(
        code="oscillation",
        title="Edits went back and forth",
        evidence=f"{worst.path}: {shown}; it held an old content again {count(worst.returns, 'time')}",
        seqs=(worst.writes[0].seq, worst.writes[-1].seq),
    )


def _guard_off(found: Findings) -> Factor | None:
    own = next((one.body for one in found.facts.policies if one.own), None)
    if own is None or not found.impact.wasted_calls:
        return None
    shadowed = [one.seq for one in found.record.verdicts if one.shadow]
    if own.get("shadow") is True:
        text = f"policy {told(found.facts.policy, 40)} only looked on: {count(len(shadowed), 'verdict')} without effect"
        return Factor(code="guard_shadow", title="The guard was in shadow", evidence=text, seqs=tuple(shadowed[:3]))
    if not own.get("rules") and not own.get("ladder") and not own.get("fuses") and not own.get("stop_when"):
        text = f"policy {told(found.facts.policy, 40)} has no rules, no ladder and no fuses"
        return Factor(code="guard_off", title="The guard was off", evidence=text)
    return None


def _swallowed(found: Findings) -> Factor | None:
    """Failed attempts that were tried again until they passed, and of which nobody was told."""
    groups: dict[str, list[Any]] = {}
    for retry in found.record.retries:
        if retry.attempt:
            groups.setdefault(retry.reason, []).append(retry)
    reason, worst = max(groups.items(), key=lambda one: len(one[1]), default=("", []))
    final = found.record.final
    if len(worst) < SWALLOWED or (final is not None and final["kind"] == "run.failed"):
        return None
    waited = sum(one.wait_s for one in worst)
    return Factor(
        code="retries_swallowed",
        title="Retries swallowed the failure",
        evidence=f"{len(worst)} attempts failed with {told(reason, 40)} and were tried again; "
        f"{span(waited)} went into waiting, and no alert told of it",
        seqs=(worst[0].seq, worst[-1].seq),
    )


def _hidden_failures(found: Findings) -> Factor | None:
    """Commands that hide how they ended, and answers that hold an exception and count as success."""
    hidden = [one.tool for one in found.lessons if isinstance(one.tool.args, str) and _HIDES.search(one.tool.args)]
    raised = [one.tool for one in found.lessons if one.tool.status == "ok" and _RAISED.search(one.tool.result[-4_000:])]
    # A file that is read may well tell of exceptions: only what was run counts.
    raised = [tool for tool in raised if "command" in tool.name or "run" in tool.name or "test" in tool.name]
    both = hidden or raised
    if not both:
        return None
    what = "hid how it ended" if hidden else "answered with an exception and counted as success"
    times = f", {len(both)} times in all" if len(both) > 1 else ""
    return Factor(
        code="exception_swallowed",
        title="An exception was swallowed",
        evidence=f"{line_of(both[0], 100)} {what}{times}",
        seqs=tuple(seq_of(tool) for tool in both[:3]),
    )


def _shared(found: Findings) -> Factor | None:
    near = found.facts.neighbours
    if not near:
        return None
    overlap = [one for one in near if one.overlaps]
    if overlap:
        text = f"{count(len(overlap), 'other run')} worked in it at the same time ({told(overlap[0].agent, 40)})"
    else:
        text = f"{count(len(near), 'earlier run')} left their changes in it ({told(near[0].agent, 40)} last)"
    return Factor(code="shared_checkout", title="One checkout shared with other runs", evidence=text)


def _unpriced(found: Findings) -> Factor | None:
    if found.impact.cost_complete or _ended_well(found):
        return None
    seqs = tuple(one.seq for one in found.record.spent if one.unknown)
    text = f"{count(len(seqs), 'model call')} without a price: a fuse on money could not see them"
    return Factor(code="unpriced", title="What it cost was not known", evidence=text, seqs=seqs[:3])


def _late(found: Findings) -> Factor | None:
    detect = found.delays.detect
    if not found.impact.wasted_calls or (detect.seconds is not None and detect.seconds < LATE_S):
        return None
    if detect.seconds is None:
        text = f"{count(found.impact.wasted_calls, 'call')} taught nothing and no verdict, alert or person noticed"
    else:
        text = f"{span(detect.seconds)} from the first call that taught nothing until {detect.how} noticed"
    return Factor(code="late_detection", title="Noticed late", evidence=text)


def _unpaged(found: Findings) -> Factor | None:
    final = found.record.final
    bad = final is not None and final["kind"] in ("run.tripped", "run.lost", "run.failed", "run.interrupted")
    if not bad and found.impact.wasted_calls < SAME:
        return None
    end = found.record.ended_at
    before = [one for one in found.facts.alerts if one.kind == "delivered" and one.at <= end]
    if before:
        return None
    later = next((one for one in found.facts.alerts if one.kind == "delivered"), None)
    if later is not None:
        text = f"the first alert was delivered {span((later.at - end).total_seconds())} after the end"
    elif any(one.kind == "undelivered" for one in found.facts.alerts):
        text = "an alert was tried and not delivered"
    else:
        text = "no alert about this run was delivered to anybody"
    return Factor(code="nobody_paged", title="Nobody was paged while it ran", evidence=text)


def _requeued(found: Findings) -> Factor | None:
    again = [event for event in found.record.others if event["kind"] == "run.requeued"]
    if not again:
        return None
    gone = moment(again[0]["at"])
    text = f"{count(len(again), 'time')} handed on to another worker, first at {gone:%H:%M:%S} UTC: "
    text += told(again[0]["data"].get("why"), 80)
    return Factor(code="worker_gone", title="Its worker went away", evidence=text, seqs=(again[0]["seq"],))
