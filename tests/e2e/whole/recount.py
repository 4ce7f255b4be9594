"""The numbers of a night, counted again from the lines of its log with nothing of the console's own code, and the
tables of a Markdown document, read back."""

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

Event = dict[str, Any]


@dataclass(kw_only=True)
class Step:
    """One tool call: what was asked in which turn, how it was answered, and the (path, hash) that it wrote."""

    turn: int
    what: tuple[str, str]
    seq: int
    asked: datetime
    status: str = ""
    answer: str = ""
    wrote: list[tuple[str, str | None, str]] = field(default_factory=list)


def at(event: Event) -> datetime:
    return datetime.fromisoformat(event["at"])


def steps_of(events: list[Event]) -> list[Step]:
    found: dict[str, Step] = {}
    for event in events:
        data = event["data"]
        if event["kind"] == "call.completed" and data["operation"] == "chat":
            for call in data.get("tool_calls") or ():
                what = (call["name"], json.dumps(json.loads(call["args"]), sort_keys=True))
                found[call["call"]] = Step(turn=event["turn"], what=what, seq=event["seq"], asked=at(event))
        elif event["kind"] == "edit.recorded":
            found[event["call"]].wrote.append((data["path"], data["before_sha256"], data["sha256"]))
        elif event["kind"] == "call.completed":
            step = found[event["call"]]
            # How long pytest took, and where an object lay in memory, says nothing about the code.
            answer = re.sub(r"in \d+\.\d+s|0x[0-9a-f]+", "", data["result"] or "")
            step.status, step.answer = data["status"], answer
    return list(found.values())


def taught_nothing(steps: list[Step]) -> list[Step]:
    """Those whose question and answer were known since the last content that no file had held; a refused one too.
    What is asked in one turn is not yet known in it."""
    known: set[Any] = set()
    now: set[Any] = set()
    held: dict[str, set[str | None]] = {}
    found: list[Step] = []
    turn = 0
    for step in steps:
        if step.turn != turn:
            known, now, turn = known | now, set(), step.turn
        new = False
        for path, before, after in step.wrote:
            states = held.setdefault(path, set())
            states.add(before)
            new = new or after not in states
            states.add(after)
        if new:
            known, now = set(), set()
        pair = (step.what, step.answer)
        if step.status == "blocked" or not (new or (pair not in known and not step.wrote)):
            found.append(step)
        now.add(pair)
    return found


def spent_by_turn(events: list[Event]) -> dict[int, tuple[Decimal, int, int]]:
    """Turn -> (dollars, tokens in, tokens out), failed attempts too."""
    sums: dict[int, tuple[Decimal, int, int]] = {}
    for event in events:
        if event["kind"] != "call.retried" and (event["kind"], event["data"].get("operation")) != (
            "call.completed",
            "chat",
        ):
            continue
        usage = event["data"].get("usage") or {}
        read = sum(usage.get(name) or 0 for name in ("input", "cache_read", "cache_write"))
        usd, taken, made = sums.get(event["turn"], (Decimal(0), 0, 0))
        more = Decimal(event["data"].get("cost_usd") or 0)
        sums[event["turn"]] = (usd + more, taken + read, made + (usage.get("output") or 0))
    return sums


def longest_gap(events: list[Event]) -> tuple[float, datetime]:
    gaps = [((at(after) - at(before)).total_seconds(), at(before)) for before, after in pairwise(events)]
    return max(gaps, key=lambda gap: gap[0])


def said(seconds: float) -> str:
    """A length of time as people write it."""
    if seconds < 0.001:
        return "under 1 ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 59.95 else f"{round(seconds) // 60} m {round(seconds) % 60:02d} s"


# --- which policy stops it where, by the words of the policies --------------------------------------------------------


def strict_stops(steps: list[Step], tokens: dict[int, int]) -> int:
    """12 steps, 80,000 tokens, the third identical call of the run, the third way back to an old content."""
    calls, held, back = Counter[Any](), dict[str, list[str | None]](), 0
    for number, step in enumerate(steps, 1):
        calls[step.what] += 1
        spent = sum(used for turn, used in tokens.items() if turn <= step.turn)
        if number > 12 or calls[step.what] > 2 or spent > 80_000:
            return number
        for path, before, after in step.wrote:
            history = held.setdefault(path, [before] if before else [])
            back += after in history and history[-1] != after
            history.append(after)
        if back > 2:
            return number
    raise AssertionError("strict does not stop it")


def ladder_says(steps: list[Step]) -> tuple[int, int]:
    """(first refused, stopped): the third and the sixth of one call that each tool is asked for without another
    between."""
    last: dict[str, tuple[str, str]] = {}
    streak = Counter[str]()
    refused = 0
    for number, step in enumerate(steps, 1):
        tool = step.what[0]
        streak[tool] = streak[tool] + 1 if last.get(tool) == step.what else 1
        last[tool] = step.what
        if streak[tool] == 6:
            return refused, number
        if streak[tool] >= 3 and not refused:
            refused = number
    raise AssertionError("ladder does not stop it")


def oscillation_stops(steps: list[Step]) -> int:
    """The step at which a write would go back to an old content of its file for at least the sixth time, three times
    done and twice refused before: R10 of `default`, 2/3/5."""
    held: dict[str, set[str | None]] = {}
    done = refused = 0
    for number, step in enumerate(steps, 1):
        for path, before, after in step.wrote:
            states = held.setdefault(path, {before})
            if after in states:
                if done + refused >= 5:
                    return number
                if done + refused >= 3:
                    refused += 1
                else:
                    done += 1
            states.add(after)
    raise AssertionError("default does not stop it")


# --- a document, read back --------------------------------------------------------------------------------------------


def tables(text: str) -> dict[str, list[list[str]]]:
    """Heading -> the rows of the first table under it, plain."""
    found: dict[str, list[list[str]]] = {}
    for part in re.split(r"^## ", text, flags=re.M):
        rows = re.findall(r"^\|(.+)\|$", part, re.M)
        cells = [[plain(cell) for cell in re.split(r"(?<!\\)\|", row)] for row in rows]
        found[part.splitlines()[0]] = [row for row in cells if not set("".join(row)) <= set("- ")]
    return found


def plain(cell: str) -> str:
    cell = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cell)
    return re.sub(r"\\(.)", r"\1", cell.replace("*", "").replace("`", "")).strip()
