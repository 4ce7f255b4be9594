"""Failures of one kind whatever the arguments: retries that change the spelling and meet the same wall."""

from dataclasses import astuple, dataclass, field
from typing import Any

from agents.policy import answer_words as said
from agents.policy.answers import Answer
from agents.policy.bounded import Bounded
from agents.policy.findings import Finding
from agents.policy.identity import Act
from agents.policy.natures import Nature
from agents.policy.progress import Progress
from agents.verdicts import BlockMode

_WALLS, _KEYS = 256, 10
_WIDE = 4


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


class Families:
    name = "families"

    def __init__(self) -> None:
        self._walls: Bounded[Wall] = Bounded(_WALLS)
        # What all tools said, and what each said last.
        self._texts: Bounded[Wall] = Bounded(_WALLS)
        self._heard: Bounded[str] = Bounded(_WALLS)
        self._row = Wall()

    def judge(self, act: Act, progress: Progress) -> Finding | None:
        if act.exempt:
            return None
        found = [self._wall(act, progress), self._everywhere(act), self._in_a_row(act)]
        real = [one for one in found if one is not None]
        return max(real, key=lambda one: one.count + (0 if one.rule == "failures_in_a_row" else 100), default=None)

    def _wall(self, act: Act, progress: Progress) -> Finding | None:
        wall = self._walls.get(_place(act))
        if wall is None:
            return None
        leash = min(progress.waits - wall.waits, 3) if wall.sort == said.TRANSIENT else 0
        mode = None
        near = act.about in wall.abouts or act.key in wall.keys or not _apart(act.about, wall.abouts)
        # The same named thing is missing or wrong each time: other places to look at do not help.
        same_thing = wall.named and wall.count > 1
        near = near or same_thing or wall.sort == said.INVALID
        sort = said.INVALID if same_thing and wall.sort == said.MISSING else wall.sort
        if act.key in wall.keys and len(wall.keys) > 1:
            leash -= wall.sort in (said.TRANSIENT, said.OTHER, said.INVALID)
        elif not near:
            leash += _WIDE
            if act.nature in (Nature.READ, Nature.CHECK, None):
                mode = BlockMode.STUB
        if act.shell and not same_thing:
            leash += 3
        leash += min(progress.epoch - wall.epoch, 3)
        return self._found(f"failure_{sort}", act, wall, leash, mode, "calls of one kind")

    def _everywhere(self, act: Act) -> Finding | None:
        """The same words from several tools."""
        wall = self._texts.get(self._heard.get(act.tool) or "")
        if wall is None:
            return None
        if wall.sort == said.UNKNOWN_TOOL:
            return self._found("failure_unknown_tool", act, wall, 0, None, "tools that do not exist")
        return self._found("failures_same_text", act, wall, 0, None, "several tools") if len(wall.tools) > 1 else None

    def _in_a_row(self, act: Act) -> Finding | None:
        return self._found("failures_in_a_row", act, self._row, 0, None, "one call after another")

    def _found(self, rule: str, act: Act, wall: Wall, leash: int, mode: BlockMode | None, what: str) -> Finding | None:
        total = wall.count + wall.refused
        if total < 2:
            return None
        return Finding(
            rule=rule,
            count=total,
            fingerprint=wall.family or act.key,
            first=wall.first,
            last=wall.last,
            what=what,
            said=wall.said,
            leash=leash,
            mode=mode,
        )

    def learn(self, act: Act, answer: Answer, progress: Progress) -> None:
        place = _place(act)
        if not answer.failed:
            if act.nature not in (Nature.WAIT, Nature.THINK, Nature.PLAN):
                self._row = Wall()
            self._walls.drop(place)
            self._texts.drop(self._heard.get(act.tool) or "")
            return
        if answer.sort != said.MISSING:
            self._count(self._row, act, answer, progress)
        wall = self._walls.get(place)
        if wall is None or wall.family != answer.family:
            wall = Wall(family=answer.family, sort=answer.sort, first=act.call)
        if answer.tally is not None and wall.best and 0 <= answer.tally[0] < wall.best[0]:
            wall = Wall(family=answer.family, sort=answer.sort, first=act.call)  # failures that fall
        if answer.tally is not None:
            wall.best = list(answer.tally)
        self._count(wall, act, answer, progress)
        self._walls.put(place, wall)
        words = answer.family if answer.sort != said.UNKNOWN_TOOL else said.UNKNOWN_TOOL
        text = self._texts.get(words) or Wall(family=answer.family, sort=answer.sort, first=act.call)
        self._count(text, act, answer, progress)
        self._texts.put(words, text)
        self._heard.put(act.tool, words)

    def _count(self, wall: Wall, act: Act, answer: Answer, progress: Progress) -> None:
        if wall.count == 0:
            wall.waits, wall.epoch, wall.first = progress.waits, progress.epoch, act.call
        if wall.batch != act.batch or wall.count == 0:
            wall.count += 1
        if act.key not in wall.keys:
            wall.keys = [*wall.keys[-_KEYS + 1 :], act.key]
        if act.about not in wall.abouts:
            wall.abouts = [*wall.abouts[-_KEYS + 1 :], act.about]
        if act.tool not in wall.tools:
            wall.tools = [*wall.tools[-_KEYS + 1 :], act.tool]
        wall.named = answer.names and (wall.named or wall.count == 1) and wall.fault in ("", answer.fault)
        wall.fault = answer.fault
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
        return [*tables, list(astuple(self._row)), self._heard.dump()]

    def load(self, rows: list[Any]) -> None:
        self._walls.load([(key, Wall(*row)) for key, row in rows[0]])
        self._texts.load([(key, Wall(*row)) for key, row in rows[1]])
        self._row = Wall(*rows[2])
        self._heard.load(rows[3])


def _place(act: Act) -> str:
    """Where a wall stands: a tool, a host, a program in a shell."""
    if act.about.startswith("u:"):
        return f"{act.tool}\0{act.about[2:].split('/', 1)[0]}"
    if act.shell and isinstance(act.args, dict):
        return f"{act.tool}\0{act.program}"
    return act.tool


def _apart(about: str, abouts: list[str]) -> bool:
    """Whether this is about another thing, not the old one with something hung on or taken off."""
    bare = about.rstrip(";} ")
    return not any(bare.startswith(other.rstrip(";} ")) or other.startswith(bare) for other in abouts)
