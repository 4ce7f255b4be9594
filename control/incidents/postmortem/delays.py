"""When a run last got somewhere, where it was silent longest, and how long it took to notice, to act and to stop."""

from collections.abc import Sequence
from datetime import datetime

from control.incidents.postmortem.facts import Alert, Facts
from control.incidents.postmortem.record import Event, Record, moment
from control.incidents.postmortem.repeats import line_of, seq_of
from control.incidents.postmortem.report import Delay, Delays, Gap, Milestone
from control.incidents.postmortem.teaching import Lesson
from control.incidents.postmortem.words import told

# What a person asks for; the log has them all as `command.received`.
_NOTICED = frozenset({"interrupt", "steer", "pause", "raise"})
NOBODY = ("parent", "kill_switch", "shutdown", "policy", "system", "")


def by_person(by: object) -> bool:
    """Whether a command came from outside the machinery; a token acts for people too."""
    return str(by) not in NOBODY and not str(by).startswith("run:")


def milestone(record: Record, lessons: Sequence[Lesson]) -> Milestone | None:
    """The last thing that got the run further: its answer, else the last new state or successful new answer."""
    final = record.final
    if final is not None and final["kind"] == "run.completed":
        return Milestone(at=moment(final["at"]), seq=final["seq"], turn=final["turn"], text="the run answered its task")
    good = [one for one in lessons if one.taught and (one.new_state or not one.tool.failed)]
    for one in reversed(good or [one for one in lessons if one.taught]):
        tool = one.tool
        if one.new_state:
            text = f"last new state of {told(tool.writes[-1].path, 80)}"
        else:
            text = f"last new answer: {line_of(tool, 80)}"
        return Milestone(at=tool.ended or tool.asked, seq=seq_of(tool), turn=tool.turn, text=text)
    return None


def gap(record: Record) -> Gap | None:
    """The longest time between two events that follow each other."""
    longest, found = -1.0, None
    before: Event | None = None
    at_before: datetime | None = None
    for event in record.events:
        if event["kind"] == "call.late":
            continue
        at = moment(event["at"])
        if before is not None and at_before is not None and (at - at_before).total_seconds() > longest:
            longest, found = (at - at_before).total_seconds(), (before, event, at_before, at)
        before, at_before = event, at
    if found is None:
        return None
    one, other, start, end = found
    return Gap(seconds=longest, start=start, end=end, seq=other["seq"], waited_for=_waited_for(record, one, other))


def _waited_for(record: Record, before: Event, after: Event) -> str:
    kind, data = after["kind"], after["data"]
    match before["kind"]:
        case "run.waiting":
            return f"a person ({before['data'].get('for')})" if before["data"].get("for") != "quota" else "quota"
        case "run.queued":
            return "a worker"
        case "run.stopping":
            return "the stop"
        case "call.retried":
            return f"the next try after {told(before['data'].get('error', {}).get('reason'), 40)}"
        case _:
            pass
    if kind == "run.requeued":
        return "a worker that was gone"
    if kind in ("call.completed", "call.retried") and (
        data.get("operation") == "chat" or after["call"] in record.chats
    ):
        return "the model"
    if kind in ("call.completed", "edit.recorded") and (tool := record.tools.get(after["call"] or "")) is not None:
        return line_of(tool, 80)
    if kind.startswith("child."):
        return "a sub-agent"
    return "the loop"


def delays(record: Record, lessons: Sequence[Lesson], facts: Facts) -> Delays:
    onset = next((one.tool.asked for one in lessons if one.wasted), None)
    detect = _detect(record, onset, facts)
    return Delays(detect=detect, acknowledge=_acknowledge(record, detect, facts), stop=_stop(record, facts))


def _detect(record: Record, onset: datetime | None, facts: Facts) -> Delay:
    seen: list[tuple[datetime, str]] = [
        *((one.at, f"the guard ({one.rung}: {told(one.rule, 40)})") for one in record.verdicts[:1]),
        *((one.at, "the desk opened an incident") for one in facts.alerts if one.kind == "opened"),
        *((at, f"a person ({word})") for at, word in _acts(record)),
    ]
    start = onset or record.started_at
    if not seen:
        return Delay(seconds=None, how="nobody and nothing noticed before the end", start=start)
    at, how = min(seen)
    return Delay(seconds=max(0.0, (at - start).total_seconds()), how=how, start=start, end=at)


def _acknowledge(record: Record, detect: Delay, facts: Facts) -> Delay:
    if detect.end is None:
        return Delay(seconds=None, how="there was nothing to acknowledge")
    seen = [
        *((one.at, f"the incident was {one.kind}") for one in _people(facts.alerts)),
        *((at, f"an operator's {word}") for at, word in _acts(record)),
    ]
    seen = [one for one in seen if one[0] >= detect.end]
    if not seen:
        return Delay(seconds=None, how="no person acted", start=detect.end)
    at, how = min(seen)
    return Delay(seconds=(at - detect.end).total_seconds(), how=how, start=detect.end, end=at)


def _people(alerts: Sequence[Alert]) -> list[Alert]:
    return [one for one in alerts if one.by_person and one.kind in ("acknowledged", "resolved")]


def _acts(record: Record) -> list[tuple[datetime, str]]:
    found = []
    for event in record.others:
        data = event["data"]
        kind = data.get("kind") if event["kind"] == "command.received" else None
        kind = "steer" if event["kind"] == "steer.injected" else kind
        if kind in _NOTICED and by_person(data.get("by")):
            found.append((moment(event["at"]), str(kind)))
    return found


def _stop(record: Record, facts: Facts) -> Delay:
    final, end = record.final, record.ended_at
    if final is None or final["kind"] not in ("run.interrupted", "run.tripped"):
        return Delay(seconds=None, how="nobody stopped it; it ended by itself", end=end)
    if final["kind"] == "run.tripped":
        spoken = [one for one in record.verdicts if one.rung == "stop" and not one.shadow]
        start = spoken[-1].at if spoken else end
        return Delay(seconds=(end - start).total_seconds(), how="from the guard's verdict", start=start, end=end)
    asked = [event for event in record.others if event["kind"] in ("command.received", "run.stopping")]
    orders = [event for event in asked if event["data"].get("kind") == "interrupt"] or asked
    start = facts.stop_requested_at or (moment(orders[-1]["at"]) if orders else end)
    stopped = final["data"].get("stopped") or {}
    how = "from the request, verified" if stopped.get("verified") else "from the request, not verified"
    return Delay(seconds=max(0.0, (end - start).total_seconds()), how=how, start=start, end=end)
