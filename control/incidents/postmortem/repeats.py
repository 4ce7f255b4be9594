"""The calls that a run asked for again and again, the costliest first, and how each call is written in one line."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from agents.policy.canonical import parse
from control.incidents.postmortem.record import Tool
from control.incidents.postmortem.report import Repeat
from control.incidents.postmortem.teaching import Lesson
from control.incidents.postmortem.words import told

SHOWN = 20
COLOURS = 6
# What says most of a call, first: the rest of its arguments is on the run page.
_TELLING = ("command", "cmd", "path", "file_path", "pattern", "query", "url", "question", "task", "name", "id")


def repeats(lessons: Sequence[Lesson], states: Mapping[int, tuple[str, bool]]) -> tuple[list[Repeat], int]:
    """Those asked for at least twice, and how many more there are than listed. `states` as of `writes.states_of`."""
    groups: dict[str, list[Lesson]] = {}
    for one in lessons:
        groups.setdefault(one.key, []).append(one)
    many = sorted((group for group in groups.values() if len(group) > 1), key=_weight, reverse=True)
    found = [_repeat(group, number, states) for number, group in enumerate(many[:SHOWN])]
    return found, len(many) - len(found)


def _weight(group: list[Lesson]) -> tuple[int, int]:
    return sum(one.wasted for one in group), len(group)


def _repeat(group: list[Lesson], number: int, states: Mapping[int, tuple[str, bool]]) -> Repeat:
    first = group[0].tool
    to = f" → {states[first.writes[-1].seq][0]}" if first.writes else ""
    wasted = [one for one in group if one.wasted]
    return Repeat(
        fingerprint=group[0].key,
        tool=told(first.name, 60),
        call=f"{line_of(first)}{to}",
        times=len(group),
        answers=len({one.answer for one in group if one.answer}),
        refused=sum(one.tool.status == "blocked" for one in group),
        wasted_calls=len(wasted),
        wasted_usd=cost_of(wasted),
        first_seq=seq_of(first),
        last_seq=seq_of(group[-1].tool),
        colour=number if number < COLOURS else None,
    )


def cost_of(lessons: Sequence[Lesson]) -> Decimal | None:
    """Their part of the run's money; None if none of it is known."""
    known = [one.usd for one in lessons if one.usd is not None]
    return sum(known, Decimal(0)) if known or not lessons else None


def seq_of(tool: Tool) -> int:
    """Where the log tells of it: its end, or the answer that asked for it."""
    return tool.seq if tool.seq is not None else tool.asked_seq


def line_of(tool: Tool, limit: int = 120) -> str:
    """`run_tests tests/test_invoice_total.py`."""
    args = parse(tool.args)
    if isinstance(args, Mapping):
        said: Any = next((args[name] for name in _TELLING if isinstance(args.get(name), str)), None)
        if said is None:
            said = " ".join(f"{name}={value}" for name, value in list(args.items())[:4])
    else:
        said = args or ""
    return told(f"{tool.name} {said}", limit)
