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
_BETWEEN = str.maketrans(dict.fromkeys('|<>"=:,;{}[]', "\n"))
_JOINED, _BEFORE = re.compile(r"&&|\|\||;"), frozenset({"sudo", "env", "time", "exec"})
_PROGRAM = re.compile(r"[\w./-]+$")
_FRAME = " \t{}[](),;:'*#=-.0123456789→"
_READ, _LONG, _PIECES, _KNOWN = 1_000, 12, 6, 48
# Fewer ways to one thing are a comparison. So many of the last looks are read when there are more.
_DOORS, _UNREAD = 3, 6
# Its checksum and its length.
Piece = tuple[int, int]


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


@dataclass(slots=True)
class Look:
    """A look that may turn out to be at what others have shown. `answer`: until somebody asks for its pieces."""

    door: str
    call: int
    batch: int
    said: str
    answer: Answer | None
    found: list[Piece] = field(default_factory=list)

    def pieces(self) -> list[Piece]:
        if self.answer is not None:
            self.found, self.answer = _pieces(self.answer.start), None
        return self.found


class Doors:
    name = "doors"

    def __init__(self) -> None:
        self._run = Run()
        # Looks of which nothing was read yet.
        self._looks: list[Look] = []

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
            self._forget()
        if not _looks(act) or answer.failed or answer.empty or answer.length < _LONG:
            return
        self._looks.append(Look(_door(act), act.call, act.batch, answer.excerpt, answer))
        if len({look.door for look in self._looks}.union(self._run.doors)) >= _DOORS:
            self._catch_up()
        del self._looks[:-_UNREAD]

    def _catch_up(self) -> None:
        for look in self._looks:
            self._read(look)
        self._looks.clear()

    def _read(self, look: Look) -> None:
        pieces = look.pieces()
        if not pieces:
            return
        run = self._run
        if not _mostly(pieces, run.known):
            run = self._run = Run(first=look.call)
        if look.door not in run.doors:
            run.doors.append(look.door)
            del run.doors[:-_KNOWN]
        run.count += run.batch != look.batch
        run.known = list(dict.fromkeys([*run.known, *(one for one, _ in pieces)]))[-_KNOWN:]
        run.last, run.batch, run.said = look.call, look.batch, look.said

    def still_same(self, act: Act, answer: Answer) -> bool:
        pieces = _pieces(answer.start)
        return bool(pieces) and not answer.failed and _mostly(pieces, self._run.known)

    def refused(self, act: Act) -> None:
        pass

    def person_spoke(self) -> None:
        self._forget()

    def context_compressed(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._run = Run()
        self._looks.clear()

    def dump(self) -> list[Any]:
        looks = [[look.door, look.call, look.batch, look.said, look.pieces()] for look in self._looks]
        return [list(astuple(self._run)), looks]

    def load(self, kept: list[Any]) -> None:
        run, looks = kept
        self._run = Run(*run)
        self._looks = [
            Look(door, call, batch, said, None, [(one, many) for one, many in found])
            for door, call, batch, said, found in looks
        ]


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


def _pieces(text: str) -> list[Piece]:
    """Its longest pieces: checksum and length of each."""
    parts = text[:_READ].casefold().translate(_BETWEEN).replace(". ", "\n").split("\n")
    bare = dict.fromkeys([part.strip(_FRAME) for part in parts if len(part) >= _LONG])
    longest = sorted([one for one in bare if len(one) >= _LONG], key=len, reverse=True)[:_PIECES]
    return [(zlib.crc32(one.encode("utf-8", "surrogatepass")), len(one)) for one in longest]


def _mostly(pieces: list[Piece], known: list[int]) -> bool:
    told = sum(many for _, many in pieces)
    return 2 * sum(many for one, many in pieces if one in known) >= told
