"""A document laid out in words: the rows of every table as they are written on the page and in each file."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from control.incidents.postmortem import drafting
from control.incidents.postmortem.document import SECTIONS, STATES, Action, Document, Section
from control.incidents.postmortem.report import Delay, Earlier, Factor, Moment, Oscillation, Repeat, Report
from control.incidents.postmortem.words import clock, count, day, money, span

TURNS_SHOWN = 12
_BY_HAND = ("operator", "kill_switch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """One figure of the first screen. `bad` is the part of it that was for nothing."""

    word: str
    value: str
    bad: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One policy on this run: `stops` and `saves` in words."""

    row: Earlier
    name: str
    stops: str
    saves: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A contributing factor and whether people let it stand; `proposed` by the log, or added by somebody."""

    code: str
    title: str
    evidence: str
    seqs: tuple[int, ...]
    stands: bool
    proposed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """`proposed`: (kind, text) of action items that the evidence suggests, while people have written none."""

    title: str
    state: str
    severity: str
    owner: str
    due: str
    window: str
    sections: tuple[Section, ...]
    numbers: tuple[Number, ...]
    impact: tuple[tuple[str, str], ...]
    delays: tuple[tuple[str, str, str], ...]
    timeline: tuple[Moment, ...]
    timeline_hidden: int
    repeats: tuple[Repeat, ...]
    repeats_hidden: int
    oscillations: tuple[Oscillation, ...]
    turns: tuple[tuple[str, str, str, str, str], ...]
    factors: tuple[Chosen, ...]
    earlier: tuple[Tried, ...]
    actions: tuple[Action, ...]
    proposed: tuple[tuple[str, str], ...]

    def section(self, name: str) -> Section:
        return next(one for one in self.sections if one.name == name)


def sheet_of(document: Document) -> Sheet:
    report, written = document.report, document.written
    about = report.about
    begun = about.started_at or about.queued_at
    sections = tuple(document.section(name) for name in SECTIONS)
    return Sheet(
        title=sections[0].text,
        state=STATES.get(written.state, written.state),
        severity=document.severity,
        owner=written.owner,
        due=written.due.isoformat() if written.due else "",
        window=f"{day(begun)} – {_end(begun, about.finished_at)} UTC",
        sections=sections,
        numbers=tuple(_numbers(report)),
        impact=tuple(_impact(report)),
        delays=(
            ("Time to detect", _delay(report.delays.detect), report.delays.detect.how),
            ("Time to acknowledge", _delay(report.delays.acknowledge), report.delays.acknowledge.how),
            ("Time to stop", _delay(report.delays.stop), report.delays.stop.how),
        ),
        timeline=report.timeline,
        timeline_hidden=report.timeline_hidden,
        repeats=report.repeats,
        repeats_hidden=report.repeats_hidden,
        oscillations=report.oscillations,
        turns=tuple(_turns(report)),
        factors=tuple(_factors(report.factors, written.struck, written.added)),
        earlier=tuple(_tried(report, one) for one in report.earlier),
        actions=written.actions,
        proposed=() if written.actions else tuple(drafting.actions(report)),
    )


def _end(begun: datetime, finished: datetime) -> str:
    return clock(finished) if begun.date() == finished.date() else day(finished)


def _delay(delay: Delay) -> str:
    return span(delay.seconds) if delay.seconds is not None else "never"


def _numbers(report: Report) -> list[Number]:
    impact, delays = report.impact, report.delays
    failed = f"{count(impact.failed_attempts, 'failed attempt')} beside" if impact.failed_attempts else ""
    wasted = money(impact.wasted_usd) if impact.wasted_usd else ""
    worst = report.repeats[0] if report.repeats and report.repeats[0].wasted_calls else None
    found = [
        Number(word="Duration", value=span(impact.duration_s), note=count(impact.turns, "turn")),
        Number(word="Model calls", value=f"{impact.model_calls:,}", note=failed),
        Number(
            word="Tool calls · edits",
            value=f"{impact.tool_calls:,} / {impact.edits:,}",
            note=f"{count(impact.wasted_calls, 'call')} for nothing" if impact.wasted_calls else "",
        ),
        Number(
            word="Spent · wasted",
            value=money(impact.cost_usd),
            bad=wasted,
            note="" if impact.cost_complete else "some prices are unknown",
        ),
        Number(
            word="Detect · ack · stop",
            value=" · ".join(_delay(one) for one in (delays.detect, delays.acknowledge, delays.stop)),
        ),
    ]
    if report.milestone is not None:
        turn = f"turn {report.milestone.turn}, " if report.milestone.turn else ""
        found.append(
            Number(word="Last real progress", value=f"{turn}{clock(report.milestone.at)}", note=report.milestone.text)
        )
    if report.gap is not None:
        found.append(
            Number(word="Longest silence", value=span(report.gap.seconds), note=f"for {report.gap.waited_for}")
        )
    if worst is not None:
        found.append(Number(word="The repeated call", value=f"{worst.times} ×", note=worst.call))
    return found


def _impact(report: Report) -> list[tuple[str, str]]:
    impact = report.impact
    known = "" if impact.cost_complete else " and what has no price"
    rows = [
        ("Duration", span(impact.duration_s)),
        ("Turns", f"{impact.turns:,}"),
        ("Model calls", f"{impact.model_calls:,}"),
        ("Failed attempts", _failed(report)),
        ("Tool calls asked for", f"{impact.tool_calls:,}"),
        ("… of these run", f"{impact.tool_calls_run:,}, of which {impact.tool_calls_failed:,} failed"),
        ("… of these refused", f"{impact.tool_calls_refused:,}"),
        ("Edits", f"{impact.edits:,}"),
        ("Sub-agents", f"{impact.sub_agents:,}"),
        ("Input tokens", f"{impact.tokens_in:,} ({impact.tokens_cached:,} cached)"),
        ("Output tokens", f"{impact.tokens_out:,}"),
        ("Spent", f"{money(impact.cost_usd)}{known}"),
        ("Calls that taught nothing", f"{impact.wasted_calls:,}"),
        ("Wasted", f"{money(impact.wasted_usd)}, {impact.wasted_tokens:,} tokens"),
    ]  # fmt: skip
    if report.gap is not None:
        gap = report.gap
        rows.append(("Longest silence", f"{span(gap.seconds)} from {clock(gap.start)}, for {gap.waited_for}"))
    if report.milestone is not None:
        rows.append(("Last real progress", f"{clock(report.milestone.at)}, {report.milestone.text}"))
    return rows


def _failed(report: Report) -> str:
    number = report.impact.failed_attempts
    return f"{number:,} ({money(report.impact.failed_attempts_usd)})" if number else "none"


def _turns(report: Report) -> list[tuple[str, str, str, str, str]]:
    """Turn, input, output, its cost, cost so far: the first, the last, and even steps between them."""
    rows = report.turns
    step = max(1, -(-len(rows) // TURNS_SHOWN))
    chosen = [*rows[::step], *(rows[-1:] if (len(rows) - 1) % step else ())]
    return [
        (f"{one.turn}", f"{one.tokens_in:,}", f"{one.tokens_out:,}", money(one.usd), money(one.total_usd))
        for one in chosen
    ]


def _factors(proposed: tuple[Factor, ...], struck: frozenset[str], added: tuple[str, ...]) -> list[Chosen]:
    return [
        *(
            Chosen(
                code=one.code,
                title=one.title,
                evidence=one.evidence,
                seqs=one.seqs,
                stands=one.code not in struck,
                proposed=True,
            )
            for one in proposed
        ),
        *(Chosen(code="", title=text, evidence="", seqs=(), stands=True, proposed=False) for text in added),
    ]


def _tried(report: Report, row: Earlier) -> Tried:
    version = f" v{row.version}" if row.version else ""
    if row.own:
        word = "by hand" if report.about.exit_reason in _BY_HAND else report.about.end
        at = f"{word} · {clock(report.about.finished_at)}"
        return Tried(row=row, name=f"as it ran: {row.policy}{version}", stops=at, saves="–", why=report.about.ended)
    name = f"{row.policy}{version}"
    if row.stop is not None:
        at = f"step {row.stop.step} · {clock(row.stop.at)}"
        early = row.first_refused
        first = early is not None and early.step < row.stop.step
        stops = f"first refused at step {early.step}, stopped at {at}" if early and first else at
        return Tried(row=row, name=name, stops=stops, saves=_saves(row), why=row.stop.explanation)
    if row.first_refused is not None:
        stops = f"would refuse {count(row.refused, 'call')} from step {row.first_refused.step}"
        return Tried(row=row, name=name, stops=stops, saves="not known", why=row.first_refused.explanation)
    return Tried(row=row, name=name, stops="would not stop it", saves="–", why="")


def _saves(row: Earlier) -> str:
    if row.saved_usd is None:
        return f"{row.saved_tokens:,} tokens"
    if row.saved_usd == Decimal(0) and not row.saved_calls:
        return "nothing more"
    return money(row.saved_usd)
