"""The first draft of each section, written from the report alone; people take it over from there."""

from collections.abc import Callable, Mapping
from decimal import Decimal

from control.incidents.postmortem.report import Earlier, Report
from control.incidents.postmortem.words import clock, count, day, money, span

CIRCLES = 3
_GRAVEST = ("critical", "error", "warning", "info")


def text(report: Report, section: str) -> str:
    """The proposed text of a section; "" where the log has nothing to say."""
    return _DRAFTS[section](report)


def severity(report: Report) -> str:
    """A proposal in the desk's words: that of the gravest incident about the run, else what its end suggests."""
    known = {one.severity for one in report.incidents}
    if known:
        return next((word for word in _GRAVEST if word in known), "info")
    match report.about.end:
        case "lost" | "failed":
            return "error"
        case "tripped" | "interrupted" | "exhausted":
            return "warning"
        case _:
            return "warning" if report.impact.wasted_calls >= CIRCLES else "info"


def in_circles(report: Report) -> bool:
    return report.impact.wasted_calls >= CIRCLES and bool(report.repeats)


def soonest(report: Report) -> Earlier | None:
    """The policy that would have stopped it first."""
    stops = [one for one in report.earlier if one.stop is not None]
    return min(stops, key=lambda one: one.stop.seq if one.stop else 0, default=None)


def _title(report: Report) -> str:
    about = report.about
    if in_circles(report):
        return f"{about.agent} went in circles on {report.repeats[0].call}"
    ends = {"completed": "did its task", "exhausted": "ran out of turns", "interrupted": "was stopped"}
    what = ends.get(about.end, about.end if about.end == "failed" else f"was {about.end}")
    return f"{about.agent} {what}"


def _summary(report: Report) -> str:
    about, impact = report.about, report.impact
    said = [
        f"A run of {about.agent} ({about.model or 'no model'}, policy {about.policy}) went on for "
        f"{span(impact.duration_s)}, from {day(about.started_at or about.queued_at)} UTC, made "
        f"{count(impact.model_calls, 'model call')} and {count(impact.tool_calls, 'tool call')} and spent "
        f"{money(impact.cost_usd)}{'' if impact.cost_complete else ' that is known'}."
    ]
    if in_circles(report):
        worst = report.repeats[0]
        said.append(
            f"It repeated itself: {worst.call} {worst.times} times, with {count(worst.answers, 'distinct answer')}. "
            f"{count(impact.wasted_calls, 'call')} taught it nothing, for {money(impact.wasted_usd)}."
        )
    if report.oscillations:
        file = report.oscillations[0]
        said.append(f"{file.path} went back {count(file.returns, 'time')} to a content that it had held.")
    if report.milestone is not None and about.end != "completed":
        turn = f" in turn {report.milestone.turn}" if report.milestone.turn else ""
        said.append(f"It last got somewhere at {clock(report.milestone.at)}{turn}: {report.milestone.text}.")
    said.append(f"It {'was ' if about.ended.startswith(('interrupted', 'tripped')) else ''}{about.ended}.")
    return " ".join(said)


def _trigger(report: Report) -> str:
    begin = report.delays.detect.start
    if in_circles(report) and begin is not None:
        worst = report.repeats[0]
        return f"From {clock(begin)} on the run asked for what it knew already, most of all {worst.call}."
    if report.about.end in ("failed", "lost"):
        return f"The run {report.about.ended}."
    return ""


def _detection(report: Report) -> str:
    detect, ack = report.delays.detect, report.delays.acknowledge
    if detect.seconds is None:
        return "Nobody and nothing noticed before the run ended." if in_circles(report) else ""
    after = (
        f"{span(detect.seconds)} after the first call that taught nothing" if in_circles(report) else "during the run"
    )
    said = f"Noticed {after}, by {detect.how}."
    if ack.seconds is not None:
        said += f" A person acted {span(ack.seconds)} later ({ack.how})."
    return said


def _resolution(report: Report) -> str:
    if report.about.end == "completed":
        return "The run ended by itself."
    stop = report.delays.stop
    said = f"The run {'was ' if report.about.end in ('interrupted', 'tripped') else ''}{report.about.ended}."
    if stop.seconds is not None:
        said += f" The stop took {span(stop.seconds)} ({stop.how})."
    return said + " Its branch stays unpushed until a person has looked at it."


def _well(report: Report) -> str:
    lines = []
    if report.delays.stop.seconds is not None and "not verified" not in report.delays.stop.how:
        lines.append(f"- Stopped in {span(report.delays.stop.seconds)}, {report.delays.stop.how}.")
    if report.about.end == "tripped":
        lines.append("- The run failed closed: a fuse ended it, not a bill.")
    if report.impact.tool_calls_refused:
        refused = report.impact.tool_calls_refused
        lines.append(f"- {count(refused, 'call')} {'was' if refused == 1 else 'were'} refused before anything ran.")
    return "\n".join(lines)


def _badly(report: Report) -> str:
    lines = []
    if in_circles(report):
        calls, usd = count(report.impact.tool_calls, "call"), money(report.impact.wasted_usd)
        lines.append(f"- {report.impact.wasted_calls} of {calls} taught nothing ({usd}).")
    lines += [
        f"- {one.title}: {one.evidence}."
        for one in report.factors
        if one.code in ("late_detection", "nobody_paged", "guard_shadow", "guard_off")
    ]
    return "\n".join(lines)


def _lucky(report: Report) -> str:
    cost, seconds = report.impact.cost_usd, report.impact.duration_s
    if not in_circles(report) or not cost or seconds < 1:
        return ""
    last = [one.usd for one in report.turns[-10:]]
    first = [one.usd for one in report.turns[:10]]
    grown = ""
    if len(report.turns) >= 20 and any(first):
        times = sum(last, Decimal(0)) / sum(first, Decimal(0))
        grown = f", and a turn cost {times:.1f} times what it had cost at the start" if times > 1 else ""
    kept = "Only its fuse" if report.about.end == "tripped" else "Nothing but its end"
    return f"- It spent {money(cost / int(seconds) * 60)} a minute{grown}. {kept} kept it from going on."


# What a factor asks for, by its code.
_ASKS: Mapping[str, tuple[str, str]] = {
    "no_fuse": ("prevent", "Give {agent} fuses on money, tokens and steps."),
    "loose_fuse": ("prevent", "Tighten the fuses of {agent} to what its healthy runs use."),
    "wide_alarm": ("prevent", "Limit money by the run, beside the limit of the whole."),
    "shared_checkout": ("prevent", "Give each run of {agent} a worktree of its own."),
    "exception_swallowed": ("mitigate", "Let commands fail loudly: an answer with an exception is no success."),
    "unpriced": ("mitigate", "Give {model} a price, so that fuses on money see it."),
    "late_detection": ("detect", "Hear of a loop while it goes on: send the rule “repeats” to an alert route."),
    "nobody_paged": ("detect", "Hear of a loop while it goes on: send the rule “repeats” to an alert route."),
}


def actions(report: Report) -> list[tuple[str, str]]:
    """(kind, text) of what the evidence suggests to do; people take it over or not."""
    about, found = report.about, []
    first = soonest(report)
    if first is not None and first.stop is not None and in_circles(report):
        version = f" v{first.version}" if first.version else ""
        spared = f" and would have spared {money(first.saved_usd)}" if first.saved_usd else ""
        text = f"Put {about.agent} under {first.policy}{version}: it stops this log at step {first.stop.step}{spared}. "
        found.append(("prevent", text + "Backtest it on healthy runs first."))
    asked = (_ASKS[one.code] for one in report.factors if one.code in _ASKS)
    found += [(kind, text.format(agent=about.agent, model=about.model or "the model")) for kind, text in asked]
    if about.end == "tripped" or first is not None:
        found.append(("prevent", f"Keep the run as a regression test: manage.py export_test {about.run}."))
    return list(dict.fromkeys(found))


def _links(report: Report) -> str:
    return ""


_DRAFTS: Mapping[str, Callable[[Report], str]] = {
    "title": _title,
    "summary": _summary,
    "trigger": _trigger,
    "detection": _detection,
    "resolution": _resolution,
    "well": _well,
    "badly": _badly,
    "lucky": _lucky,
    "links": _links,
}
