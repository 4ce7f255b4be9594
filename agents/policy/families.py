"""Failures of one kind whatever the arguments: retries that change the spelling and meet the same wall."""

from dataclasses import astuple, dataclass, field
from typing import Any

from agents.policy import answer_words as said
from agents.policy.answers import Answer
from agents.policy.bounded import Bounded
from agents.policy.findings import Finding
from agents.policy.identity import Act
from agents.policy.lexing import words_in
from agents.policy.natures import IDLES, Nature
from agents.policy.progress import Progress
from agents.policy.traces import better
from agents.verdicts import BlockMode

_WALLS, _KEYS = 256, 10
_WIDE = 4
_HEARD, _WORDS, _NEWS = 400, 64, 2
_LISTS, _LISTED, _NAME = 4, 10, 2
_MAY_LOOK = frozenset({Nature.READ, Nature.CHECK, None})
_STUB = BlockMode.STUB


@dataclass(slots=True)
class Wall:
    """One kind of failure of one tool. `keys` and `abouts`: the calls that met it, and what they were about."""

    family: str = ""
    sort: str = ""
    count: int = 0
    refused: int = 0
    keys: list[str] = field(default_factory=list)
    abouts: list[str] = field(default_factory=list)
    waits: int = 0
    epoch: int = 0
    first: int = 0
    last: int = 0
    batch: int = 0
    said: str = ""
    tools: list[str] = field(default_factory=list)
    best: list[float] = field(default_factory=list)
    fault: str = ""
    named: bool = False
    uniform: bool = True
    exact: str = ""
    moving: int = 0
    # Words that it has said, and how many failures said something new that the call had not said itself.
    words: list[str] = field(default_factory=list)
    telling: int = 0
    # The words of the latest call.
    asked: list[str] = field(default_factory=list)


class Families:
    name = "families"

    def __init__(self) -> None:
        self._walls: Bounded[Wall] = Bounded(_WALLS)
        # What all tools said, and what each said last.
        self._texts: Bounded[Wall] = Bounded(_WALLS)
        self._heard: Bounded[str] = Bounded(_WALLS)
        self._row = Wall()
        # How the last answers began that were no failures.
        self._listed: list[str] = []

    def judge(self, act: Act, progress: Progress) -> Finding | None:
        if act.exempt:
            return None
        wall = self._walls.get(_place(act))
        text = self._texts.get(self._heard.get(act.tool) or "")
        here = 0 if wall is None else wall.count + wall.refused
        everywhere = 0
        if text is not None and (text.sort == said.UNKNOWN_TOOL or len(text.tools) > 1):
            everywhere = text.count + text.refused
        if wall is not None and here > 1 and here >= everywhere:
            return self._at_wall(act, wall, progress)
        if text is not None and everywhere > 1:
            if text.sort == said.UNKNOWN_TOOL:
                return self._found("failure_unknown_tool", act, text, 0, None, "calls of tools that do not exist")
            # One wall met from one shell by several programs is as sure as one met by one.
            leash = -1 if text.uniform and all(one.startswith(f"{act.tool} ") for one in text.tools) else 0
            return self._found("failures_same_text", act, text, leash, None, "failures of several tools with one text")
        if self._row.count + self._row.refused > 1:
            return self._found("failures_in_a_row", act, self._row, 0, None, "failures, one call after another")
        return None

    def _at_wall(self, act: Act, wall: Wall, progress: Progress) -> Finding:
        leash = 0
        if wall.sort == said.TRANSIENT:
            leash = min(progress.waits - wall.waits, 3) + min(2 * progress.recovered(act.tool), 4)
        mode = None
        near = act.key in wall.keys or act.about in wall.abouts
        # The digests by which commands are told apart begin like no other.
        near = near or ((act.command is None or bool(act.place)) and not _apart(act.about, wall.abouts))
        there = near
        # The same named thing is missing or wrong each time: other places to look at do not help.
        same_thing = wall.named and wall.count > 1 and not (act.place[:2] in ("p:", "u:") and wall.sort == said.MISSING)
        uniform = wall.sort == said.AUTH and wall.uniform and wall.count > 1
        near = near or same_thing or uniform or wall.sort == said.INVALID
        sort = said.INVALID if same_thing and wall.sort == said.MISSING else wall.sort
        if not there and act.nature in (Nature.READ, Nature.CHECK, None):
            mode = BlockMode.STUB  # a look at another thing: it is held back only if it fails the same way
        if uniform and act.key not in wall.keys and self._goes_through(act, wall):
            # Each thing of a list is asked once: that it is closed may be the very answer.
            leash += _LISTED
            mode = _STUB if act.nature in _MAY_LOOK else mode
        if act.key in wall.keys and len(wall.keys) > 1:
            leash -= wall.sort in (said.TRANSIENT, said.OTHER, said.INVALID)
        elif not near:
            leash += _WIDE
            if act.nature in _MAY_LOOK:
                mode = _STUB
        if act.command is not None and act.command.sql and sort == said.MISSING:
            sort, leash = said.INVALID, leash + 2  # a name in a query is guessed, not looked for
        elif act.shell and not same_thing:
            leash += 3
        changes = progress.epoch - wall.epoch
        # Other numbers after each change are a failure that moves.
        leash += min(changes, 3) + 4 * (wall.moving >= wall.count - 1 and changes >= wall.count - 1)
        # A form that names another fault each time is being filled in.
        leash += _WIDE * (wall.sort == said.INVALID and wall.telling >= wall.count - 1)
        return self._found(f"failure_{sort}", act, wall, leash, mode, "failures of one kind")

    def _goes_through(self, act: Act, wall: Wall) -> bool:
        """Whether it names a thing that an answer has listed, other than the call before it did."""
        new = act.request[0].difference(wall.asked)
        return bool(new) and all(any(_is_named(word, text) for text in self._listed) for word in new)

    def _found(self, rule: str, act: Act, wall: Wall, leash: int, mode: BlockMode | None, what: str) -> Finding:
        return Finding(
            rule=rule,
            count=wall.count + wall.refused,
            fingerprint=wall.family or act.key,
            first=wall.first,
            last=wall.last,
            what=what,
            said=wall.said,
            leash=leash,
            mode=mode,
            # A failing look at yet another thing tells something: the run is not ended for it.
            since=wall.count + wall.refused if mode is BlockMode.STUB else 0,
        )

    def learn(self, act: Act, answer: Answer, progress: Progress) -> None:
        place = _place(act)
        if not answer.failed:
            if act.nature not in IDLES:
                self._row = Wall()
                self._listed = [*self._listed[-_LISTS + 1 :], answer.start.casefold()]
            self._walls.drop(place)
            self._texts.drop(self._heard.get(act.tool) or "")
            return
        if answer.sort != said.MISSING:
            self._count(self._row, act, answer, progress)
        wall = self._walls.get(place)
        if wall is None or wall.family != answer.family:
            wall = Wall(family=answer.family, sort=answer.sort, first=act.call)
        if answer.tally is not None and wall.best:
            nearer = act.key in wall.keys and better(wall.best, answer)
            if nearer or 0 <= answer.tally[0] < wall.best[0]:
                wall = Wall(family=answer.family, sort=answer.sort, first=act.call)  # failures that fall
        if answer.tally is not None:
            wall.best = list(answer.tally)
        self._count(wall, act, answer, progress)
        _gather(wall.keys, act.key)
        _gather(wall.abouts, act.about)
        wall.moving += bool(wall.exact) and wall.exact != answer.exact
        wall.exact = answer.exact
        wall.uniform = wall.uniform and wall.fault in ("", answer.fault)
        wall.named = answer.names and (wall.named or wall.count == 1) and wall.fault in ("", answer.fault)
        wall.fault = answer.fault
        if answer.sort == said.AUTH:
            wall.asked = sorted(act.request[0])
        if answer.sort == said.INVALID:
            _hear(wall, act, answer)
        self._walls.put(place, wall)
        words = answer.family if answer.sort != said.UNKNOWN_TOOL else said.UNKNOWN_TOOL
        text = self._texts.get(words) or Wall(family=answer.family, sort=answer.sort, first=act.call)
        self._count(text, act, answer, progress)
        text.uniform = text.uniform and text.fault in ("", answer.fault)
        text.fault = answer.fault
        # The same program called by another name is as good as another tool.
        _gather(text.tools, f"{act.tool} {act.program}" if act.shell else act.tool)
        self._texts.put(words, text)
        self._heard.put(act.tool, words)

    def _count(self, wall: Wall, act: Act, answer: Answer, progress: Progress) -> None:
        if wall.count == 0:
            wall.waits, wall.epoch, wall.first = progress.waits, progress.epoch, act.call
        if wall.batch != act.batch or wall.count == 0:
            wall.count += 1
        wall.last, wall.batch, wall.said = act.call, act.batch, answer.excerpt

    def still_same(self, act: Act, answer: Answer) -> bool:
        wall = self._walls.get(_place(act))
        return answer.failed and wall is not None and wall.family == answer.family

    def refused(self, act: Act) -> None:
        wall = self._walls.get(_place(act))
        if wall is not None:
            wall.refused += 1
        self._row.refused += self._row.count > 0
        text = self._texts.get(self._heard.get(act.tool) or "")
        if text is not None:
            text.refused += 1

    def person_spoke(self) -> None:
        self._walls.clear()
        self._texts.clear()
        self._heard.clear()
        self._row = Wall()

    def context_compressed(self) -> None:
        """What failed has failed, whatever the model still knows of it."""

    def dump(self) -> list[Any]:
        tables = [[[key, list(astuple(wall))] for key, wall in table.dump()] for table in (self._walls, self._texts)]
        return [*tables, list(astuple(self._row)), self._heard.dump(), list(self._listed)]

    def load(self, rows: list[Any]) -> None:
        self._walls.load([(key, Wall(*row)) for key, row in rows[0]])
        self._texts.load([(key, Wall(*row)) for key, row in rows[1]])
        self._row = Wall(*rows[2])
        self._heard.load(rows[3])
        self._listed = list(rows[4])


def _is_named(word: str, text: str) -> bool:
    """Whether a text names it; of an address or a path what follows its first part is enough."""
    rest = word.partition("/")[2]
    return (len(word) > _NAME and word in text) or (len(rest) > _NAME and rest in text)


def _hear(wall: Wall, act: Act, answer: Answer) -> None:
    heard = {word for word in words_in(answer.start[:_HEARD].casefold()) if word.isalpha() and len(word) > 3}
    new = heard.difference(wall.words)
    wall.telling += bool(wall.words) and len(new.difference(act.request[0])) >= _NEWS
    wall.words = [*wall.words, *sorted(new)][-_WORDS:]


def _place(act: Act) -> str:
    """Where a wall stands: a tool, a host, a program in a shell."""
    if act.place.startswith("u:"):
        return f"{act.tool}\0{act.place[2:].split('/', 1)[0]}"
    if act.shell and isinstance(act.args, dict):
        return f"{act.tool}\0{act.program}"
    return act.tool


def _gather(found: list[str], one: str) -> None:
    if one not in found:
        found.append(one)
        del found[:-_KEYS]


def _apart(about: str, abouts: list[str]) -> bool:
    """Whether this is about another thing, not the old one with something hung on or taken off."""
    bare = _bare(about)
    return not any(other.startswith(bare) or bare.startswith(other) for other in map(_bare, abouts))


def _bare(about: str) -> str:
    """INV-100, INV_100 and INV100 begin alike."""
    return about.rstrip(";} ").replace("-", "").replace("_", "")
