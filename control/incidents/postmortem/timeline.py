"""The timeline of a run: what happened to it, who acted (by role), what the guard said, what the desk sent. All UTC."""

from collections.abc import Iterable, Sequence
from typing import Any

from control.incidents.postmortem.delays import by_person
from control.incidents.postmortem.facts import Facts
from control.incidents.postmortem.record import Event, Record, Retry, moment
from control.incidents.postmortem.repeats import line_of, seq_of
from control.incidents.postmortem.report import Milestone, Moment, MomentKind
from control.incidents.postmortem.words import count, span, told

SHOWN = 120
_RUN = frozenset(
    {"run.queued", "run.started", "run.waiting", "run.continued", "run.stopping", "run.requeued", "run.forked"}
)


def timeline(record: Record, facts: Facts, milestone: Milestone | None) -> tuple[list[Moment], int]:
    """In order of time, and how many lines were left out of its middle."""
    lines = [
        *(one for event in record.others for one in _told(event)),
        *_verdicts(record),
        *_retries(record),
        *_first_failure(record),
        *(Moment(at=one.at, kind=MomentKind.ALERT, text=told(one.text)) for one in facts.alerts),
    ]
    if milestone is not None and milestone.text != "the run answered its task":
        lines.append(Moment(at=milestone.at, seq=milestone.seq, kind=MomentKind.MILESTONE, text=milestone.text))
    lines.sort(key=lambda one: (one.at, one.seq or 0))
    if len(lines) <= SHOWN:
        return lines, 0
    # What people did, alerts and the ends of it all are the story; the rest gives way from the middle.
    kept = {at for at, one in enumerate(lines) if one.kind in (MomentKind.OPERATOR, MomentKind.ALERT)}
    kept |= {*range(30), *range(len(lines) - 30, len(lines))}
    room = [at for at in range(len(lines)) if at not in kept][: max(0, SHOWN - len(kept))]
    shown = sorted(kept | set(room))
    return [lines[at] for at in shown], len(lines) - len(shown)


def _told(event: Event) -> Iterable[Moment]:
    kind, data = event["kind"], event["data"]
    made = _run(kind, data) or _people(kind, data) or _others(kind, data)
    if made is not None:
        whose, text = made
        yield Moment(at=moment(event["at"]), seq=event["seq"], kind=whose, text=text)


Line = tuple[MomentKind, str] | None


def _run(kind: str, data: dict[str, Any]) -> Line:
    match kind:
        case "run.queued":
            text = f"the run of {told(data['agent'], 60)} was queued"
        case "run.started":
            model = (data.get("model") or {}).get("model")
            text = f"started with {told(model, 60)} under policy {told(data.get('policy'), 60)}"
        case "run.forked":
            text = f"went on from another run, after its turn {data.get('turn')}"
        case "run.waiting":
            text = f"waited for {told(data.get('for'), 20)}" + (
                f": {told(data['text'], 120)}" if data.get("text") else ""
            )
        case "run.continued":
            who = f" ({data['decision']} by {role(data.get('by'))})" if data.get("decision") else ""
            text = f"went on{who}"
        case "run.stopping":
            text = f"stopping, asked by {role(data.get('by'))}"
        case "run.requeued":
            text = f"handed on to another worker: {told(data.get('why'), 80)}"
        case _:
            text = ending(kind, data)
    return (MomentKind.RUN, text) if text else None


def ending(kind: str, data: dict[str, Any]) -> str:
    """The last event of a run as a sentence; "" for any other kind."""
    match kind:
        case "run.completed":
            return "completed with an answer"
        case "run.exhausted":
            return f"out of turns; the summary is by {'the model' if data.get('final_by') == 'model' else 'the log'}"
        case "run.interrupted":
            return _interrupted(data)
        case "run.tripped":
            what = f"fuse {told(data['fuse'], 60)}" if data.get("fuse") else f"rule {told(data.get('rule'), 60)}"
            return f"tripped by {what} at step {data.get('step')}"
        case "run.failed":
            error = data.get("error") or {}
            return f"failed: {told(error.get('reason'), 40)}, {told(error.get('message'), 160)}"
        case "run.lost":
            return "lost: its worker died and nobody went on" + (
                f" ({told(data['why'], 40)})" if data.get("why") else ""
            )
        case _:
            return ""


def _interrupted(data: dict[str, Any]) -> str:
    stopped = data.get("stopped") or {}
    seconds = stopped.get("seconds")
    took = f" in {span(float(seconds))}" if isinstance(seconds, int | float) else ""
    sure = "verified" if stopped.get("verified") else "not verified"
    why = f": {told(data['reason'], 120)}" if data.get("reason") else ""
    return f"interrupted by {role(data.get('by'))}, stopped{took}, {sure}{why}"


def _people(kind: str, data: dict[str, Any]) -> Line:
    match kind:
        case "command.received" if data.get("kind") != "steer":
            reason = f": {told(data['reason'], 120)}" if data.get("reason") else ""
            text = f"{role(data.get('by'))} asked for {told(data.get('kind'), 20)}{reason}"
        case "steer.injected":
            text = f"{role(data.get('by'))} steered: “{told(data.get('note'), 160)}”"
        case "steer.refused":
            text = f"a note came too late ({told(data.get('code'), 40)})"
        case "fuse.raised":
            limits = ", ".join(f"{told(name, 30)} to {told(value, 30)}" for name, value in data["limits"].items())
            text = f"{role(data.get('by'))} raised {limits}: {told(data.get('reason'), 120)}"
        case _:
            return None
    return MomentKind.OPERATOR, text


def _others(kind: str, data: dict[str, Any]) -> Line:
    match kind:
        case "context.compressed":
            text = f"the context was compressed from {data['before_tokens']:,} to {data['after_tokens']:,} tokens"
        case "credential.rotated":
            return MomentKind.RETRY, f"key changed after {told(data.get('reason'), 40)}"
        case "model.fell_back":
            what = f"{told(data.get('from'), 60)} to {told(data.get('to'), 60)}"
            return MomentKind.RETRY, f"fell back from {what} after {told(data.get('reason'), 40)}"
        case "child.started":
            text = "a sub-agent started"
        case "child.finished":
            text = f"a sub-agent ended: {told(data.get('status'), 20)}"
        case "server.lost":
            text = f"the tool server {told(data.get('server'), 40)} was lost: {told(data.get('why'), 80)}"
        case _:
            return None
    return MomentKind.RUN, text


def role(by: object) -> str:
    """Who acted, by role: names stay in the audit trail."""
    word = str(by or "")
    if word.startswith("token:"):
        return "a token"
    if word.startswith("run:") or word == "parent":
        return "the parent run"
    if not by_person(word):
        return f"the {word.replace('_', ' ')}" if word else "the house"
    return "an operator"


def _verdicts(record: Record) -> Iterable[Moment]:
    """One line where a rule first speaks, and one for each further rung it climbs to on the same matter."""
    seen: set[tuple[str, str, bool]] = set()
    for one in record.verdicts:
        sign = one.rule, one.rung, one.shadow
        if sign in seen:
            continue
        seen.add(sign)
        shadow = " (shadow)" if one.shadow else ""
        # Most explanations begin with the rule that speaks.
        said = told(one.explanation.removeprefix(f"{one.rule}: "), 180)
        text = f"{told(one.rule, 40)}{shadow}: {said}"
        yield Moment(at=one.at, seq=one.seq, kind=MomentKind.VERDICT, rung=one.rung, text=text)


def _retries(record: Record) -> Iterable[Moment]:
    """Attempts of one call that failed alike are one line."""
    groups: dict[tuple[str | None, str], list[Retry]] = {}
    for one in record.retries:
        groups.setdefault((one.call, one.reason), []).append(one)
    for (_, reason), group in groups.items():
        code = f" {group[0].status}" if group[0].status else ""
        sent = [one for one in group if one.attempt]
        what = f"{count(len(sent), 'attempt')} failed" if sent else "waited for a key"
        waited = span(sum(one.wait_s for one in group))
        text = f"{what}: {told(reason, 40)}{code}, then {told(group[-1].action, 20)} after {waited}"
        yield Moment(at=group[0].at, seq=group[0].seq, kind=MomentKind.RETRY, text=text)


def _first_failure(record: Record) -> Sequence[Moment]:
    tool = next((one for one in record.tools.values() if one.failed and one.ended is not None), None)
    if tool is None or tool.ended is None:
        return []
    text = f"first failing call: {line_of(tool, 100)}"
    return [Moment(at=tool.ended, seq=seq_of(tool), kind=MomentKind.MILESTONE, text=text)]
