"""A postmortem as a pure fold: the log and a few facts beside it in, the report out. No database, no clock."""

from typing import Any

from agents.errors import ConfigError
from agents.policy.policies import UNGUARDED, Policy, policy_from
from control.incidents.postmortem.burn import impact, turns
from control.incidents.postmortem.delays import delays, gap, milestone
from control.incidents.postmortem.earlier import earlier
from control.incidents.postmortem.factors import Findings, factors
from control.incidents.postmortem.facts import Facts
from control.incidents.postmortem.lanes import lanes
from control.incidents.postmortem.record import Record, moment
from control.incidents.postmortem.repeats import repeats
from control.incidents.postmortem.report import About, Report
from control.incidents.postmortem.teaching import lessons
from control.incidents.postmortem.timeline import ending, timeline
from control.incidents.postmortem.words import block, told
from control.incidents.postmortem.writes import oscillations, states_of


class NotFinished(Exception):
    """The log has no last event yet: there is nothing to look back on."""


def report_of(facts: Facts) -> Report:
    """Raises NotFinished."""
    record = Record.of(facts.bodies)
    if record.final is None:
        raise NotFinished
    learnt = lessons(record, _own_policy(facts))
    sums = impact(record, learnt)
    again, hidden = repeats(learnt, states_of(record.writes))
    back = oscillations(record.writes, facts.content_of)
    step = milestone(record, learnt)
    waits = delays(record, learnt, facts)
    lines, left_out = timeline(record, facts, step)
    found = Findings(
        record=record, facts=facts, lessons=learnt, impact=sums, repeats=again, oscillations=back, delays=waits
    )
    return Report(
        about=_about(facts, record),
        impact=sums,
        milestone=step,
        gap=gap(record),
        delays=waits,
        repeats=tuple(again),
        repeats_hidden=hidden,
        oscillations=tuple(back),
        turns=tuple(turns(record)),
        factors=tuple(factors(found)),
        earlier=tuple(earlier(record, facts.policies, facts.content_of)),
        timeline=tuple(lines),
        timeline_hidden=left_out,
        incidents=tuple(facts.incidents),
        lanes=tuple(lanes(record, learnt, again, lines)),
    )


def _own_policy(facts: Facts) -> Policy:
    """For its identity rules: what makes a call the same call is the run's own policy to say."""
    own = next((one for one in facts.policies if one.own), None)
    try:
        return UNGUARDED if own is None else policy_from(own.body, own.name)
    except ConfigError:
        return UNGUARDED


def _about(facts: Facts, record: Record) -> About:
    start: dict[str, Any] = dict(record.start["data"]) if record.start is not None else {}
    final = record.final
    assert final is not None
    return About(
        run=facts.run,
        agent=told(facts.agent, 100),
        task=block(facts.task, 4_000),
        project=told(facts.project, 100),
        status=facts.status,
        exit_reason=told(facts.exit_reason, 100) if facts.exit_reason else None,
        end=final["kind"].removeprefix("run."),
        ended=ending(final["kind"], final["data"]),
        policy=told(facts.policy, 100),
        model=told((start.get("model") or {}).get("model"), 100),
        queued_at=moment(record.events[0]["at"]),
        started_at=moment(record.start["at"]) if record.start is not None else None,
        finished_at=record.ended_at,
        last_seq=record.events[-1]["seq"],
    )
