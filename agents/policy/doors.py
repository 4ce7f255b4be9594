"""One content through many doors: a page, its mirror, its cache and a reader all say the same in another wrapping."""

import re
import zlib
from dataclasses import astuple, dataclass, field
from typing import Any

from agents.policy.answers import Answer
from agents.policy.findings import Finding
from agents.policy.identity import Act
from agents.policy.natures import LOOKS, Nature
from agents.policy.progress import Progress

_MAY_LOOK = LOOKS | {None, Nature.RUN}
_CHANGES = frozenset({Nature.EDIT, Nature.SET, Nature.SEND, Nature.OPERATE, Nature.SPAWN})
# Wrappings are short: what a content says stands in its longest pieces.
_BETWEEN = re.compile(r"[\n|<>\"=:,;{}\[\]]+|(?<=[.!?]) ")
_JOINED, _BEFORE = re.compile(r"&&|\|\||;"), frozenset({"sudo", "env", "time", "exec"})
_PROGRAM = re.compile(r"[\w./-]+$")
_FRAME = " \t{}[](),;:'*#=-.0123456789→"
_LONG, _PIECES, _KNOWN = 12, 6, 48
# Fewer ways to one thing are a comparison.
_DOORS = 3


@dataclass(slots=True)
class Run:
    """Looks in a row that had most of their content in common. `doors`: through which tools and programs."""

    known: list[int] = field(default_factory=list)
    doors: list[str] = field(default_factory=list)
    count: int = 0
    first: int = 0
    last: int = 0
    batch: int = 0
    said: str = ""


class Doors:
    name = "doors"

    def __init__(self) -> None:
        self._run = Run()

    def judge(self, act: Act, progress: Progress) -> Finding | None:
        run = self._run
        if act.exempt or not _looks(act) or len(run.doors) < _DOORS:
            return None
        return Finding(
            rule="nothing_new",
            count=run.count - 1,
            fingerprint=act.key,
            first=run.first,
            last=run.last,
            what=f"looks by {len(run.doors)} ways at one content",
            said=run.said,
        )

    def learn(self, act: Act, answer: Answer, progress: Progress) -> None:
        if act.nature in _CHANGES and not act.shell and not answer.failed:
            self._run = Run()
        if not _looks(act) or answer.failed or answer.empty:
            return
        pieces = _pieces(answer.start)
        if not pieces:
            return
        run = self._run
        if not _mostly(pieces, run.known):
            run = self._run = Run(first=act.call)
        door = _door(act)
        if door not in run.doors:
            run.doors.append(door)
            del run.doors[:-_KNOWN]
        run.count += run.batch != act.batch
        run.known = list(dict.fromkeys([*run.known, *(one for one, _ in pieces)]))[-_KNOWN:]
        run.last, run.batch, run.said = act.call, act.batch, answer.excerpt

    def still_same(self, act: Act, answer: Answer) -> bool:
        pieces = _pieces(answer.start)
        return bool(pieces) and not answer.failed and _mostly(pieces, self._run.known)

    def refused(self, act: Act) -> None:
        pass

    def person_spoke(self) -> None:
        self._run = Run()

    def context_compressed(self) -> None:
        self._run = Run()

    def dump(self) -> list[Any]:
        return list(astuple(self._run))

    def load(self, kept: list[Any]) -> None:
        self._run = Run(*kept)


def _looks(act: Act) -> bool:
    # What a command does that nobody knows, its answer shows.
    return act.nature in _MAY_LOOK or (act.shell and act.nature is Nature.OPERATE)


def _door(act: Act) -> str:
    """A tool, or what a shell runs: the first word of its last command that is neither `cd` nor an assignment."""
    if act.command is None:
        return act.tool
    last = _JOINED.split(act.command.text[:400])[-1].split()
    first = next((word for word in last if "=" not in word and word not in _BEFORE), "")
    return first if _PROGRAM.match(first) else act.tool


def _pieces(text: str) -> list[tuple[int, int]]:
    """Its longest pieces: checksum and length of each."""
    found = {bare for piece in _BETWEEN.split(text.casefold()) if len(bare := piece.strip(_FRAME)) >= _LONG}
    longest = sorted(found, key=lambda one: (-len(one), one))[:_PIECES]
    return [(zlib.crc32(one.encode("utf-8", "surrogatepass")), len(one)) for one in longest]


def _mostly(pieces: list[tuple[int, int]], known: list[int]) -> bool:
    told = sum(many for _, many in pieces)
    return 2 * sum(many for one, many in pieces if one in known) >= told
