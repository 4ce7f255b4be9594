"""Splits the tool calls of one turn into groups that may overlap, without changing their order.

A group is a maximal run of neighbours: each call joins the group before it unless it would disturb a member. Two reads
never disturb each other; a write disturbs whatever touches its own path, a directory above it or a file below it.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from agents.spec import ConcurrencyClass

MAX_WIDTH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One call as the planner sees it.

    `paths` are absolute, with links already resolved; a directory stands for everything below it. A reader without
    paths touches no file; a writer without paths may write anywhere, so it stands alone.
    """

    call: str
    concurrency: ConcurrencyClass
    paths: tuple[str, ...] = ()
    writes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`groups` hold call keys, in order; `why` says in one line for each border what made it."""

    groups: tuple[tuple[str, ...], ...]
    why: str


@dataclass(frozen=True, slots=True)
class _Seen:
    position: int
    call: str
    alone: str | None
    writes: bool
    paths: tuple[str, ...]


def plan(calls: Sequence[Planned], *, fold_case: bool = False, width: int = MAX_WIDTH) -> Plan:
    """Groups for one batch. `fold_case`: the file system takes `A` and `a` for the same name."""
    groups: list[list[_Seen]] = []
    borders: list[str] = []
    for position, call in enumerate(calls, start=1):
        seen = _see(position, call, fold_case)
        border = _border(groups[-1], seen, width) if groups else ""
        if groups and border is None:
            groups[-1].append(seen)
            continue
        if border:
            borders.append(border)
        groups.append([seen])
    return Plan(groups=tuple(tuple(s.call for s in group) for group in groups), why=_why(len(calls), groups, borders))


def overlap(one: str, other: str) -> bool:
    """Whether two normalised absolute paths are the same or one lies below the other."""
    if len(one) > len(other):
        one, other = other, one
    return one == other or other.startswith(one if one.endswith("/") else one + "/")


def normal(path: str, fold_case: bool = False) -> str:
    """One spelling per path: no trailing slash and, where the file system folds case, one case and one Unicode form."""
    path = path.rstrip("/") or "/"
    return unicodedata.normalize("NFC", path).casefold() if fold_case else path


def _see(position: int, call: Planned, fold_case: bool) -> _Seen:
    writes = call.writes or call.concurrency is ConcurrencyClass.PATH
    alone: str | None = None
    match call.concurrency:
        case ConcurrencyClass.NEVER:
            alone = "never runs beside another"
        case ConcurrencyClass.UNKNOWN:
            alone = "has unknown effects"
        case ConcurrencyClass.SAFE | ConcurrencyClass.PATH:
            if writes and not call.paths:
                alone = "writes without naming a path"
    paths = tuple(dict.fromkeys(normal(path, fold_case) for path in call.paths))
    return _Seen(position, call.call, alone, writes, paths)


def _border(group: Sequence[_Seen], new: _Seen, width: int) -> str | None:
    """Why `new` cannot join the group; None if it can."""
    if new.alone:
        return f"call {new.position} {new.alone}"
    if group[-1].alone:
        return f"call {group[-1].position} {group[-1].alone}"
    if len(group) >= width:
        return f"at most {width} at once"
    for old in group:
        if not (old.writes or new.writes):
            continue
        hit = next((b for a in old.paths for b in new.paths if overlap(a, b)), None)
        if hit is not None:
            how = "both write" if old.writes and new.writes else "one reads what the other writes"
            return f"calls {old.position} and {new.position}: {how} ({hit})"
    return None


def _why(count: int, groups: Sequence[Sequence[_Seen]], borders: Sequence[str]) -> str:
    if count == 0:
        return "no calls"
    if len(groups) == 1:
        return "a single call" if count == 1 else f"all {count} may overlap"
    return f"{count} calls in {len(groups)} groups: " + "; ".join(dict.fromkeys(borders))
