"""A postmortem as Markdown: a document that a team can file as it is. Text from agents cannot become markup in it."""

import re
from collections.abc import Iterable, Sequence

from control.incidents.postmortem.document import Document
from control.incidents.postmortem.report import Opened, Oscillation
from control.incidents.postmortem.sheet import Chosen, Sheet, sheet_of
from control.incidents.postmortem.words import clock, count, money, told

# What has a meaning inside a line; the rest has one only at its beginning.
_INLINE = re.compile(r"([\\`*\[\]<>|~])")
# Within a word it has none.
_UNDER = re.compile(r"(?<![^\W_])_+|_+(?![^\W_])")
_BEGIN = re.compile(r"^(\s*)(?:([#+=-])|(\d+)([.)])(?=\s|$))", re.M)
_TICKS = re.compile("`+")
_HEADING = re.compile(r"^(\s*)#", re.M)


def markdown(document: Document) -> str:
    """The whole document. Secrets are hidden by the caller (`exports`), in the text as it leaves."""
    sheet = sheet_of(document)
    parts: list[str] = [f"# {line(sheet.title)}", _head(document, sheet)]
    parts += _written(sheet, "summary")
    parts += ["## Impact", table(("", "number"), ((word, line(value)) for word, value in sheet.impact))]
    parts += _timeline(document, sheet)
    parts += _written(sheet, "trigger")
    parts += _detection(sheet)
    parts += _factors(document, sheet)
    parts += _repeats(document, sheet)
    parts += [one for file in sheet.oscillations for one in _edits(file)]
    parts += _turns(sheet)
    parts += _earlier(sheet)
    for name in ("resolution", "well", "badly", "lucky"):
        parts += _written(sheet, name)
    parts += _actions(sheet)
    parts += _links(document, sheet)
    about = document.report.about
    parts.append(
        f"*Written from the log of run {about.run} up to event {about.last_seq}. All times are UTC. People appear by "
        "role. Secrets were hidden again when this file was made.*"
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def line(text: str) -> str:
    """Text of one line that stays text."""
    safe = _INLINE.sub(r"\\\1", " ".join(text.split()))
    safe = _UNDER.sub(lambda found: "\\_" * len(found[0]), safe)
    return _BEGIN.sub(lambda found: f"{found[1]}{found[3] or ''}\\{found[2] or found[4]}", safe)


def code(text: str) -> str:
    """A code span that its own text cannot close."""
    fence = "`" * (max((len(run) for run in _TICKS.findall(text)), default=0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    # In a table a bar would end the cell, in code too.
    return f"{fence}{pad}{' '.join(text.split()).replace('|', '¦')}{pad}{fence}" if text.strip() else ""


def prose(text: str) -> str:
    """What people wrote, as Markdown of theirs, but without HTML, pictures from elsewhere, and headings of its own."""
    return _HEADING.sub(r"\1\\#", text.strip().replace("<", "&lt;").replace("![", "!\\["))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells must be fit for a table already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _head(document: Document, sheet: Sheet) -> str:
    about = document.report.about
    run = f"[{about.run}]({document.run_url})" if document.site else about.run
    rows = [
        ("Status", f"**{sheet.state}**"),
        ("Severity", line(sheet.severity)),
        ("Owner", line(sheet.owner) or "nobody yet"),
        ("Due", sheet.due or "–"),
        ("Run", run),
        ("Task", line(told(about.task, 200))),
        ("Agent", f"{line(about.agent)}, {line(about.model) or 'no model'}, policy {line(about.policy)}"),
        ("When", sheet.window),
        ("End", line(about.ended)),
    ]
    return table(("Postmortem", ""), rows)


def _written(sheet: Sheet, name: str) -> list[str]:
    section = sheet.section(name)
    text = prose(section.text) if section.number else _drafted(section.text)
    return [f"## {section.heading}", text or "*Nothing noted.*"]


def _drafted(text: str) -> str:
    """What the log proposed: its lists are ours, its words are not all ours."""
    lines = (f"- {line(one[2:])}" if one.startswith("- ") else line(one) for one in text.splitlines())
    return "\n".join(lines)


def _timeline(document: Document, sheet: Sheet) -> list[str]:
    rows = []
    for one in sheet.timeline:
        rung = f"**{one.rung}** " if one.rung else ""
        rows.append((clock(one.at), one.kind.value, f"{rung}{line(one.text)}", _seq(document, one.seq)))
    note = f"All times are UTC, {sheet.window[:10]}."
    found = ["## Timeline", note, table(("UTC", "", "what happened", "log"), rows)]
    if sheet.timeline_hidden:
        found.append(f"{count(sheet.timeline_hidden, 'more line')} left out of the middle; the log has them all.")
    return found


def _seq(document: Document, seq: int | None) -> str:
    if seq is None:
        return ""
    return f"[#{seq}]({document.seq_url(seq)})" if document.site else f"#{seq}"


def _detection(sheet: Sheet) -> list[str]:
    rows = [(word, value, line(how)) for word, value, how in sheet.delays]
    return [*_written(sheet, "detection"), table(("", "took", "how"), rows)]


def _factors(document: Document, sheet: Sheet) -> list[str]:
    lines = [_factor(document, one) for one in sheet.factors]
    note = "Conditions, not persons: what somebody did is never the cause. Proposed from evidence in the log."
    return ["## Contributing factors", note, "\n".join(lines) or "*None proposed.*"]


def _factor(document: Document, one: Chosen) -> str:
    seqs = ", ".join(_seq(document, seq) for seq in one.seqs)
    evidence = f": {line(one.evidence)}" if one.evidence else " (added)"
    return f"- [{'x' if one.stands else ' '}] **{line(one.title)}**{evidence}{f' ({seqs})' if seqs else ''}"


def _repeats(document: Document, sheet: Sheet) -> list[str]:
    if not sheet.repeats:
        return []
    rows = [
        (
            code(one.call),
            f"{one.times}",
            f"{one.answers}",
            f"{one.wasted_calls}",
            money(one.wasted_usd),
            f"{_seq(document, one.first_seq)} – {_seq(document, one.last_seq)}",
        )
        for one in sheet.repeats
    ]
    found = ["## Repeated calls", table(("call", "times", "answers", "for nothing", "wasted", "log"), rows)]
    if sheet.repeats_hidden:
        found.append(f"{count(sheet.repeats_hidden, 'more call')} repeated at least once.")
    return found


def _edits(file: Oscillation) -> list[str]:
    found = [
        f"## Edits that went back: {code(file.path)}",
        f"States {file.letters}: {count(file.returns, 'time')} back to a content that the file had held.",
    ]
    for change in file.changes:
        found.append(f"Between {change.before} and {change.after}, {count(change.times, 'time')}:")
        if change.diff is None:
            found.append("*The contents are no longer kept, or are too large to compare.*")
        else:
            fence = "`" * max(3, *(len(run) + 1 for run in [*_TICKS.findall(change.diff), ""]))
            found.append(f"{fence}diff\n{change.diff}\n{fence}")
    return found


def _turns(sheet: Sheet) -> list[str]:
    if not sheet.turns:
        return []
    note = "With every turn the whole history is sent again: what a turn reads and costs grows with it."
    return [
        "## Cost and input by turn",
        note,
        table(("turn", "input tokens", "output tokens", "cost", "cost so far"), sheet.turns),
    ]


def _earlier(sheet: Sheet) -> list[str]:
    rows = [(line(one.name), line(one.stops), one.saves, line(one.why)) for one in sheet.earlier]
    note = "Each policy's guard walked the recorded calls of this run; what it would have saved came after its stop."
    return ["## What would have stopped it earlier", note, table(("policy", "stops at", "saves", "why"), rows)]


def _actions(sheet: Sheet) -> list[str]:
    rows = [
        (
            "x" if one.done else " ",
            one.kind,
            line(one.text),
            line(one.owner) or "–",
            one.due.isoformat() if one.due else "–",
            f"<{one.link}>" if one.link else "–",
        )
        for one in sheet.actions
    ]
    if rows:
        return ["## Action items", table(("done", "kind", "what", "owner", "due", "link"), rows)]
    if not sheet.proposed:
        return ["## Action items", "*None yet.*"]
    listed = "\n".join(f"- [ ] **{kind}** {line(text)}" for kind, text in sheet.proposed)
    return ["## Action items", "*None agreed yet. Proposed from the evidence:*", listed]


def _incident(document: Document, one: Opened) -> str:
    return f"- [Incident: {line(one.title)}]({document.incident_url(one.id)}), {one.severity}, {one.state}"


def _links(document: Document, sheet: Sheet) -> list[str]:
    lines = []
    if document.site:
        about = document.report.about
        lines += [
            f"- [The run, turn by turn]({document.run_url})",
            f"- [The policy {line(about.policy)}, as the run held it]({document.run_url}policy/)",
            *(_incident(document, one) for one in document.report.incidents),
            f"- [Its calls, for `python -m agents judge`]({document.site}/api/runs/{about.run}/calls.jsonl)",
        ]
    text = "\n".join(lines)
    own = prose(sheet.section("links").text)
    return ["## Links", f"{text}\n\n{own}".strip()] if text or own else []
