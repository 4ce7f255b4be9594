"""Looks that bring nothing new: other ranges, other queries, other tools, the same lines."""

from dataclasses import astuple, dataclass, field
from typing import Any

from agents.policy import likeness
from agents.policy.answers import Answer
from agents.policy.bounded import Bounded, remember
from agents.policy.findings import Finding
from agents.policy.identity import Act
from agents.policy.lexing import numbers_alone, words_in
from agents.policy.natures import LOOKS, MOVES, by_steps
from agents.policy.progress import Progress
from agents.policy.scrubbing import HAS_DIGIT
from agents.verdicts import BlockMode

_THINGS, _UNITS, _SLACK = 64, 600, 200
_NEWS = 0.2
_SHORT = 60
_MAY_LOOK = LOOKS | {None}
_LAP, _MANY, _WORDS = 24, 6, 200
_SCREEN = "\0screen"


@dataclass(slots=True)
class Shelf:
    """What is known of one thing. `dry`: looks since the last with a fifth of new lines. `look`: the first look,
    whose lines are taken up when there is a second: most things are looked at once."""

    known: dict[int, None] = field(default_factory=dict)
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
    touches: int = 0
    look: Answer | None = None

    def units(self) -> dict[int, None]:
        if self.look is not None:
            self.known.update(dict.fromkeys(self.look.units))
            self.look = None
        return self.known


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
    asked: str = ""
    near: int = 0
    # In how many questions each word stood, and how many held one that others, but not all, had held; nothing is
    # counted before the second question.
    words: dict[int, int] = field(default_factory=dict)
    recurs: int = 0
    # How many named the very numbers and names that the one before named.
    fixed: int = 0
    long: bool = False
    # Whether it is short and tells where a move has led to.
    placed: bool = False


@dataclass(slots=True)
class Lap:
    """The answers of one tool to ever new questions, latest last. `run`: how many in a row stood `period` places before
    already: a list that has begun anew."""

    answers: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    period: int = 0
    run: int = 0
    first: int = 0
    last: int = 0
    said: str = ""


class Staleness:
    name = "staleness"

    def __init__(self) -> None:
        self._shelves: Bounded[Shelf] = Bounded(_THINGS)
        self._echoes: Bounded[Echo] = Bounded(_THINGS)
        self._laps: Bounded[Lap] = Bounded(_THINGS)
        self._screen = Echo()

    def judge(self, act: Act, progress: Progress) -> Finding | None:
        if act.exempt:
            return None
        if act.nature in MOVES:
            return self._screen_stays(act) or self._goes_round(act, self._laps.get(_SCREEN))
        if act.nature not in _MAY_LOOK:
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
        lap = self._laps.get(act.tool)
        if lap is not None and act.key not in lap.asked and (found := self._goes_round(act, lap)) is not None:
            return found
        echo = self._echoes.get(act.tool)
        if echo is not None and echo.count > 1:
            return Finding(
                rule=_rule(act, echo),
                count=echo.count,
                fingerprint=act.key,
                first=echo.first,
                last=echo.last,
                what="questions with one answer",
                said=echo.said,
            )
        return None

    def _goes_round(self, act: Act, lap: Lap | None) -> Finding | None:
        if lap is None or not lap.run:
            return None
        return Finding(
            rule="nothing_new",
            count=lap.run,
            fingerprint=act.key,
            first=lap.first,
            last=lap.last,
            what=f"the same {lap.period} answers in turn",
            said=lap.said,
        )

    def _screen_stays(self, act: Act) -> Finding | None:
        screen = self._screen
        if screen.count < 2 or (act.key in screen.keys and len(screen.keys) < 2):
            return None
        return Finding(
            rule="screen_still",
            count=screen.count,
            fingerprint=act.key,
            first=screen.first,
            last=screen.last,
            what="moves that left the screen as it was",
            said=screen.said,
            leash=1 if screen.placed else 5 if by_steps(act.pairs) else 2,
            mode=BlockMode.STUB if screen.placed else None,
        )

    def _changed(self, act: Act, shelf: Shelf, progress: Progress) -> bool:
        if act.path or act.about.startswith("p:"):
            return progress.changed_since((act.about[2:], act.path), shelf.stamp) or progress.epoch - shelf.epoch > 3
        return progress.epoch > shelf.epoch or progress.touches > shelf.touches

    def learn(self, act: Act, answer: Answer, progress: Progress) -> None:
        if act.nature in MOVES and not answer.failed:
            self._hear_lap(act, answer, _SCREEN)
        if act.nature in MOVES:
            self._see_screen(act, answer)
        if act.nature not in _MAY_LOOK or answer.failed or answer.pending:
            return
        self._hear_echo(act, answer)
        self._hear_lap(act, answer, act.tool)
        if not act.narrow or answer.empty or (answer.length < _SHORT and len(answer.units) < 2):
            return
        shelf = self._shelves.get(act.about)
        if shelf is None or self._changed(act, shelf, progress):
            shelf = Shelf(first=act.call, look=answer)
        else:
            self._look_again(act, answer, shelf)
        if act.key not in shelf.keys:
            shelf.keys = [*shelf.keys[-5:], act.key]
        shelf.epoch, shelf.stamp, shelf.touches = progress.epoch, progress.stamp, progress.touches
        shelf.last, shelf.batch, shelf.said = act.call, act.batch, answer.excerpt
        self._shelves.put(act.about, shelf)

    def _look_again(self, act: Act, answer: Answer, shelf: Shelf) -> None:
        known = shelf.units()
        new = [unit for unit in answer.units if unit not in known]
        if known and len(new) <= _NEWS * len(answer.units):
            shelf.dry += shelf.batch != act.batch
            shelf.known_by_heart = shelf.known_by_heart and not new
        else:
            shelf.dry = shelf.refused = 0
            shelf.known_by_heart = True
            shelf.first = act.call
        remember(known, new, _UNITS, _SLACK)

    def _hear_echo(self, act: Act, answer: Answer) -> None:
        echo = self._echoes.get(act.tool)
        now = "empty" if answer.empty else answer.same
        if echo is None or echo.same != now:
            echo = Echo(same=now, long=answer.length >= _SHORT, first=act.call, empty=answer.empty)
        if act.key not in echo.keys and echo.batch != act.batch:
            echo.count += 1
            if echo.count > 1:
                _compare(act, echo)
            echo.asked = act.question
            echo.keys = [*echo.keys[-15:], act.key]
            if act.about not in echo.abouts:
                echo.abouts = [*echo.abouts[-15:], act.about]
        echo.last, echo.batch, echo.said = act.call, act.batch, answer.excerpt
        self._echoes.put(act.tool, echo)

    def _see_screen(self, act: Act, answer: Answer) -> None:
        screen = self._screen
        placed = answer.length < _SHORT and _tells_place(act, answer)
        if answer.length < _SHORT and len(answer.units) < 3 and not placed:
            # An acknowledgement says nothing of the screen, unless it is news and tells more than it was told.
            if answer.same not in screen.abouts:
                screen.abouts = [*screen.abouts[-15:], answer.same]
                told = {word for word in words_in(answer.start.casefold()) if HAS_DIGIT(word)}
                if told.difference(words_in(act.question.casefold())) and answer.same != screen.same:
                    screen.count = min(screen.count, 1)
            return
        if screen.same != answer.same:
            self._screen = screen = Echo(same=answer.same, first=act.call, placed=placed)
        screen.count += screen.batch != act.batch
        if act.key not in screen.keys:
            screen.keys = [*screen.keys[-15:], act.key]
        screen.last, screen.batch, screen.said = act.call, act.batch, answer.excerpt

    def _hear_lap(self, act: Act, answer: Answer, name: str) -> None:
        lap = self._laps.get(name) or Lap()
        if act.key in lap.asked and name != _SCREEN:
            return
        if answer.empty or (answer.length < _SHORT and len(answer.units) < 3):
            return
        before = lap.answers[::-1].index(answer.same) + 1 if answer.same in lap.answers else 0
        lap.run = lap.run + 1 if before > 1 and before == lap.period else int(before > 1)
        lap.period = before
        if lap.run == 1:
            lap.first = act.call
        lap.answers.append(answer.same)
        lap.asked.append(act.key)
        del lap.answers[:-_LAP], lap.asked[:-_LAP]
        lap.last, lap.said = act.call, answer.excerpt
        self._laps.put(name, lap)

    def still_same(self, act: Act, answer: Answer) -> bool:
        if act.nature in MOVES:
            shown = self._laps.get(_SCREEN)
            placed = self._screen.placed and self._screen.same == answer.same
            return placed or (shown is not None and shown.run > 0 and answer.same in shown.answers)
        lap = self._laps.get(act.tool)
        if lap is not None and lap.run and answer.same in lap.answers:
            return True
        echo = self._echoes.get(act.tool)
        if echo is not None and (echo.same == answer.same or (answer.empty and echo.empty)):
            return True
        shelf = self._shelves.get(act.about)
        if shelf is None or not act.narrow or answer.failed or not answer.units:
            return False
        known = shelf.units()
        return sum(unit not in known for unit in answer.units) <= _NEWS * len(answer.units)

    def refused(self, act: Act) -> None:
        shelf = self._shelves.get(act.about)
        if shelf is not None:
            shelf.refused += 1

    def person_spoke(self) -> None:
        self._shelves.clear()
        self._echoes.clear()
        self._laps.clear()
        self._screen = Echo()

    def context_compressed(self) -> None:
        self.person_spoke()

    def dump(self) -> list[Any]:
        shelves = [[key, [list(one.units()), *astuple(one)[1:-1]]] for key, one in self._shelves.dump()]
        others = [[[key, list(astuple(one))] for key, one in table.dump()] for table in (self._echoes, self._laps)]
        return [shelves, *others, list(astuple(self._screen))]

    def load(self, rows: list[Any]) -> None:
        self._shelves.load([(key, Shelf(dict.fromkeys(row[0]), *row[1:])) for key, row in rows[0]])
        self._echoes.load([(key, _echo(row)) for key, row in rows[1]])
        self._laps.load([(key, Lap(*row)) for key, row in rows[2]])
        self._screen = _echo(rows[3])


def _tells_place(act: Act, answer: Answer) -> bool:
    """Whether it names numbers that it was not told: a place, and how far it goes."""
    asked = words_in(act.question.casefold())
    return len([one for one in numbers_alone(answer.start) if one not in asked]) > 1


def _echo(row: list[Any]) -> Echo:
    echo = Echo(*row)
    echo.words = {int(word): count for word, count in echo.words.items()}
    return echo


def _rule(act: Act, echo: Echo) -> str:
    pairs = echo.count - 1
    turned = echo.count >= _MANY and (5 * echo.recurs >= 3 * pairs or 5 * echo.fixed >= 4 * pairs)
    if echo.empty:
        return "empty_answers" if turned or act.about in echo.abouts else "same_answer"
    near = turned or 3 * echo.near >= 2 * pairs
    return "same_answer_near" if echo.long and near else "same_answer"


def _compare(act: Act, echo: Echo) -> None:
    """One question in other words, or the questions of a series?"""
    now, before = likeness.words_of(act.question), likeness.words_of(echo.asked)
    echo.near += bool(echo.asked) and likeness.alike(now, before)
    echo.fixed += bool(now[1]) and now[1] == before[1]
    if not echo.words:
        echo.words = dict.fromkeys(before[0], 1)
    echo.recurs += _recurs(now, echo)


def _recurs(now: likeness.Words, echo: Echo) -> bool:
    """Whether a question turns the words of earlier ones over. In a series each names a thing of its own."""
    plain, special = now
    told = echo.count - 1
    again = any(0 < echo.words.get(word, 0) < told for word in plain - special)
    for word in plain if len(echo.words) < _WORDS else ():
        echo.words[word] = echo.words.get(word, 0) + 1
    return again
