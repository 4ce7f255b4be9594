"""Looks that bring nothing new: other ranges, other queries, other tools, the same lines."""

from dataclasses import astuple, dataclass, field
from typing import Any

from agents.policy import likeness
from agents.policy.answers import Answer
from agents.policy.bounded import Bounded
from agents.policy.canonical import meaning
from agents.policy.findings import Finding
from agents.policy.identity import Act
from agents.policy.natures import Nature
from agents.policy.progress import Progress

_THINGS, _UNITS = 64, 600
_NEWS = 0.2
_SHORT = 60


@dataclass(slots=True)
class Shelf:
    """What is known of one thing. `dry`: looks since the last that brought a fifth of new lines."""

    units: list[int] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    dry: int = 0
    known_by_heart: bool = True
    refused: int = 0
    epoch: int = 0
    stamp: int = 0
    first: int = 0
    last: int = 0
    batch: int = 0
    said: str = ""


@dataclass(slots=True)
class Echo:
    """One answer of one tool to ever other questions."""

    same: str = ""
    count: int = 0
    empty: bool = False
    first: int = 0
    last: int = 0
    batch: int = 0
    said: str = ""
    keys: list[str] = field(default_factory=list)
    abouts: list[str] = field(default_factory=list)
    words: list[list[int]] = field(default_factory=list)
    near: bool = True
    long: bool = False


class Staleness:
    name = "staleness"

    def __init__(self) -> None:
        self._shelves: Bounded[Shelf] = Bounded(_THINGS)
        self._echoes: Bounded[Echo] = Bounded(_THINGS)

    def judge(self, act: Act, progress: Progress) -> Finding | None:
        if act.exempt or act.nature not in (Nature.READ, Nature.RUN, Nature.CHECK, None):
            return None
        shelf = self._shelves.get(act.about) if act.narrow else None
        if shelf is not None and shelf.dry and not self._changed(act, shelf, progress):
            return Finding(
                rule="nothing_new",
                count=shelf.dry + shelf.refused,
                fingerprint=act.key,
                first=shelf.first,
                last=shelf.last,
                what="looks at the same thing" if len(shelf.keys) > 1 else "the same look",
                said=shelf.said,
                leash=2 if len(shelf.keys) < 3 else -1 if shelf.known_by_heart else 0,
            )
        echo = self._echoes.get(act.tool)
        if echo is not None and echo.count > 1:
            return Finding(
                rule=_rule(act, echo),
                count=echo.count,
                fingerprint=act.key,
                first=echo.first,
                last=echo.last,
                what="other questions",
                said=echo.said,
            )
        return None

    def _changed(self, act: Act, shelf: Shelf, progress: Progress) -> bool:
        if act.path or act.about.startswith("p:"):
            return progress.changed_since((act.about[2:], act.path), shelf.stamp) or progress.epoch - shelf.epoch > 3
        return progress.epoch > shelf.epoch

    def learn(self, act: Act, answer: Answer, progress: Progress) -> None:
        if act.nature not in (Nature.READ, Nature.RUN, Nature.CHECK, None) or answer.failed or answer.pending:
            return
        self._hear_echo(act, answer)
        if not act.narrow or answer.empty or (len(answer.units) < 2 and answer.length < _SHORT):
            return
        shelf = self._shelves.get(act.about)
        if shelf is None or self._changed(act, shelf, progress):
            shelf = Shelf(first=act.call)
        known = set(shelf.units)
        new = [unit for unit in answer.units if unit not in known]
        if known and len(new) <= _NEWS * len(answer.units):
            shelf.dry += shelf.batch != act.batch
            shelf.known_by_heart = shelf.known_by_heart and not new
        else:
            shelf.dry = shelf.refused = 0
            shelf.known_by_heart = True
            shelf.first = act.call
        shelf.units = (shelf.units + new)[-_UNITS:]
        if act.key not in shelf.keys:
            shelf.keys = [*shelf.keys[-5:], act.key]
        shelf.epoch, shelf.stamp = progress.epoch, progress.stamp
        shelf.last, shelf.batch, shelf.said = act.call, act.batch, answer.excerpt
        self._shelves.put(act.about, shelf)

    def _hear_echo(self, act: Act, answer: Answer) -> None:
        echo = self._echoes.get(act.tool)
        now = "empty" if answer.empty else answer.same
        if echo is None or echo.same != now:
            echo = Echo(same=now, long=answer.length >= _SHORT, first=act.call, empty=answer.empty)
        if act.key not in echo.keys and echo.batch != act.batch:
            echo.count += 1
            words = act_words(act)
            # One question in other words, or the questions of a series?
            echo.near = echo.near and (not echo.words or likeness.alike(words, likeness.load(echo.words)))
            echo.words = likeness.dump(words)
            echo.keys = [*echo.keys[-15:], act.key]
            if act.about not in echo.abouts:
                echo.abouts = [*echo.abouts[-15:], act.about]
        echo.last, echo.batch, echo.said = act.call, act.batch, answer.excerpt
        self._echoes.put(act.tool, echo)

    def still_same(self, act: Act, answer: Answer) -> bool:
        echo = self._echoes.get(act.tool)
        if echo is not None and (echo.same == answer.same or (answer.empty and echo.empty)):
            return True
        shelf = self._shelves.get(act.about)
        if shelf is None or answer.failed or not answer.units:
            return False
        known = set(shelf.units)
        return sum(unit not in known for unit in answer.units) <= _NEWS * len(answer.units)

    def refused(self, act: Act) -> None:
        shelf = self._shelves.get(act.about)
        if shelf is not None:
            shelf.refused += 1

    def person_spoke(self) -> None:
        self._shelves.clear()
        self._echoes.clear()

    def context_compressed(self) -> None:
        self.person_spoke()

    def dump(self) -> list[Any]:
        shelves = [[key, list(astuple(one))] for key, one in self._shelves.dump()]
        return [shelves, [[key, list(astuple(one))] for key, one in self._echoes.dump()]]

    def load(self, rows: list[Any]) -> None:
        self._shelves.load([(key, Shelf(*row)) for key, row in rows[0]])
        self._echoes.load([(key, Echo(*row)) for key, row in rows[1]])


def _rule(act: Act, echo: Echo) -> str:
    if echo.empty:
        return "empty_answers" if act.about in echo.abouts else "same_answer"
    same_question = echo.near and echo.long and likeness.alike(act_words(act), likeness.load(echo.words))
    return "same_answer_near" if same_question else "same_answer"


def act_words(act: Act) -> likeness.Words:
    return likeness.words_of(meaning(act.args))
