"""How two policies differ: value by value, whatever the order and the remarks; and line by line where only those do."""

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Longer texts are compared by their values alone.
MOST_LINES = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One value on both sides, written as TOML has it; None where a side does not say it."""

    place: str
    before: str | None
    after: str | None

    @property
    def kind(self) -> str:
        """`same`, `added`, `removed` or `changed`."""
        if self.before == self.after:
            return "same"
        return "added" if self.before is None else "removed" if self.after is None else "changed"


def compared(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """Every value of both, in the order in which they stand, those of one table together."""
    left, right = dict(_flat(before)), dict(_flat(after))
    order = {place: number for number, place in enumerate([*left, *(p for p in right if p not in left)])}
    tables = list(dict.fromkeys(place.split(".")[0] for place in order))
    places = sorted(order, key=lambda place: (tables.index(place.split(".")[0]), order[place]))
    return [Change(place=place, before=left.get(place), after=right.get(place)) for place in places]


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """What differs."""
    return [change for change in compared(before, after) if change.kind != "same"]


def grouped(found: Sequence[Change]) -> list[tuple[str, list[Change]]]:
    """By the table in which they stand; values outside any table are the policy's own."""
    groups: dict[str, list[Change]] = {}
    for change in found:
        head, dot, _ = change.place.partition(".")
        groups.setdefault(head.split("[")[0] if dot or "[" in head else "", []).append(change)
    return list(groups.items())


def lines(before: str, after: str) -> list[tuple[str, str]]:
    """Changed lines of two texts with a little around them, each with `+`, `-`, ` ` or `@` for a gap."""
    left, right = before.splitlines(), after.splitlines()
    if len(left) + len(right) > MOST_LINES:
        return []
    told = [line for line in difflib.unified_diff(left, right, lineterm="", n=2) if line[:3] not in ("---", "+++")]
    return [(line[0], "" if line[0] == "@" else line[1:]) for line in told]


def _flat(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            # A dot inside a name is no step down.
            step = str(name) if "." not in str(name) else json.dumps(str(name), ensure_ascii=False)
            yield from _flat(item, f"{place}.{step}" if place else step)
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for number, item in enumerate(value, 1):
            yield from _flat(item, f"{place}[{number}]")
    elif place:
        yield place, json.dumps(value, ensure_ascii=False)
