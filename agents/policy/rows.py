"""What is kept of the last calls to weigh them: each with what its answer shares with those before it."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.policy.answers import Answer
from agents.policy.asked import Edited
from agents.policy.bounded import remember
from agents.policy.identity import Act
from agents.policy.lexing import bare, mask, share_in, without_numbers, words_in
from agents.policy.natures import EFFECTS, Nature
from agents.policy.scrubbing import HAS_DIGIT

ROWS, _SAME_TOOL, _LINES, _WORDS, _ASKED = 24, 8, 4_096, 2_048, 2_048
ALIKE, CLOSE = 0.5, 0.8
_FEW = 4
_MOST_PIECES, _MOST_WORDS, _MOST_NUMBERS, _READ, _FORM = 24, 80, 10, 600, 300
# Numbers that wobble by less than this say nothing.
_NOISE = 0.2
_AS_LINE_END = bytes.maketrans(b";,", b"\n\n")


@dataclass(slots=True)
class Heard:
    """A call with its answer, before anything is worked out of it: most runs never need that."""

    act: Act
    answer: Answer
    # The files that it wrote, each with its new content.
    edits: list[tuple[str, str]]


def heard_of(act: Act, answer: Answer, edits: Mapping[str, Edited]) -> Heard:
    return Heard(act, answer, [(path, edit.exact) for path, edit in list(edits.items())[:16]] if edits else [])


@dataclass(slots=True)
class Row:
    """One call that was answered.

    `asked`, `ids`: the words of the request, and those that single something out; `form`, `figures`: the request
    without its numbers, and these. `lines`, `words`: of the answer; `masked`: its lines without numbers and ids,
    `gist`: their checksum; `alone`: its numbers that are no part of an id, `by`: how far each moved last. `like_*`:
    what the answer shares with that of the call before it that was alike, `tool_*`: with that of the last call of the
    tool; as they are, and without numbers. `serial`: how often in a row this very call has said the same but for ids,
    counters and noise; `unmoved`: 1 if a look says the same after something was done, -1 if it says something else;
    `recovered`: 1 if it went through where it had failed before.
    """

    tool: str
    key: str
    asked: frozenset[str]
    ids: frozenset[str]
    lines: frozenset[int]
    masked: frozenset[int]
    gist: int
    same: str
    failed: int
    empty: int
    pending: int
    waited: int
    ended: int
    acts: int
    place: str
    sort: str
    family: str
    fault: str
    form: str
    figures: tuple[str, ...]
    words: frozenset[str]
    alone: tuple[float, ...]
    address: str
    named: frozenset[str]
    tally: tuple[float, float] | None
    state: int = 0
    news: float = 0.0
    masked_news: float = 0.0
    word_news: float = 0.0
    new_words: int = 0
    new_masked: int = 0
    known: int = 0
    lap: int = 0
    like_lines: float = 0.5
    like_masked: float = 0.5
    tool_lines: float = 0.5
    tool_masked: float = 0.5
    falls: int = 0
    rises: int = 0
    unmoved: int = 0
    asked_before: int = 0
    by: tuple[float, ...] = ()
    serial: int = 0
    moves: int = 0
    recovered: int = 0
    call: int = 0
    told: float = 0.5


_TUPLES = frozenset({"figures", "alone", "by", "tally"})


def dumped(row: Row) -> list[Any]:
    return [_plain(getattr(row, name)) for name in Row.__slots__]


def loaded(kept: list[Any]) -> Row:
    values: list[Any] = [
        one if not isinstance(one, list) else tuple(one) if name in _TUPLES else frozenset(one)
        for name, one in zip(Row.__slots__, kept, strict=False)
    ]
    return Row(*values)


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else list(value) if isinstance(value, tuple) else value


class Known:
    """What the run was told and has asked so far, bounded: lines, words, requests, answers, contents of files."""

    def __init__(self) -> None:
        self.lines: dict[int, None] = {}
        self.masked: dict[int, None] = {}
        self.words: dict[str, None] = {}
        self.asked: dict[str, None] = {}
        self.forms: dict[str, None] = {}
        self.answers: dict[str, None] = {}
        self._files: dict[str, list[str]] = {}

    def read(self, heard: Heard, rows: list[Row]) -> Row:
        """The call as it is kept. Remembers nothing of it."""
        act, answer = heard.act, heard.answer
        lines, masked, words = pieces_of(answer.start)
        asked, ids = act.request
        form, figures = form_of(act.meant)
        row = Row(
            act.tool,
            act.key,
            asked,
            ids,
            lines,
            masked,
            sum(masked),
            answer.same,
            int(answer.failed),
            int(answer.empty),
            int(answer.pending),
            int(act.nature is Nature.WAIT or bool(act.wait_s)),
            int(answer.ended),
            int(act.nature in EFFECTS),
            act.place,
            answer.sort,
            answer.family,
            answer.fault,
            form,
            figures,
            words,
            answer.alone,
            act.told_to,
            act.named if act.told_to else frozenset(),
            answer.tally,
        )
        if lines:
            row.new_masked = len(masked.difference(self.masked))
            row.news, row.masked_news = len(lines.difference(self.lines)) / len(lines), row.new_masked / len(masked)
        if words:
            row.new_words = len(words.difference(self.words).difference(asked))
            row.word_news = row.new_words / len(words)
        row.call = act.call
        row.told = self.told(asked)
        row.known = int(answer.same in self.answers)
        row.asked_before = int(f"{row.tool}{form}" in self.forms)
        _compare(row, rows)
        _follow(row, rows)
        return row

    def told(self, asked: frozenset[str]) -> float:
        """Of the words that were never asked before, the share that an answer had told; 0.5 if there are none."""
        new = asked.difference(self.asked)
        return share_in(self.words, new)

    def lists(self, asked: frozenset[str], same: list[Row]) -> bool:
        """Whether all that the tool was not asked yet was told by an answer or is known from other calls: the next
        thing of a list."""
        new = asked.difference(*(row.asked for row in same))
        return bool(new) and all(
            word in self.asked or bare(word) in self.words or bare(word.partition("/")[2]) in self.words for word in new
        )

    def keep(self, row: Row) -> None:
        remember(self.lines, row.lines, _LINES)
        remember(self.masked, row.masked, _LINES)
        remember(self.words, row.words, _WORDS)
        remember(self.asked, row.asked, _ASKED)
        remember(self.forms, (f"{row.tool}{row.form}",), _ASKED)
        self.answered(row.same)

    def answered(self, same: str) -> None:
        remember(self.answers, (same,), _ASKED)

    def wrote(self, edits: list[tuple[str, str]]) -> int:
        """1: a content never seen before; -1: back to one that was; 0: nothing was written."""
        state = int(bool(edits))
        for path, content in edits:
            known = self._files.setdefault(path, [])
            if content in known:
                state = -1
            known.append(content)
            del known[:-16]
        while len(self._files) > 128:
            del self._files[next(iter(self._files))]
        return state

    def dump(self) -> dict[str, Any]:
        tables = {name: list(getattr(self, name)) for name in _TABLES}
        return tables | {"files": [[path, list(known)] for path, known in self._files.items()]}

    def load(self, state: Mapping[str, Any]) -> None:
        for name in _TABLES:
            setattr(self, name, dict.fromkeys(state[name]))
        self._files = {path: list(known) for path, known in state["files"]}


_TABLES = ("lines", "masked", "words", "asked", "forms", "answers")


def near(rows: list[Row], tool: str, key: str, asked: frozenset[str]) -> tuple[list[Row], list[float]]:
    """The last calls of the tool, and how much each has in common with this one, 0 to 1."""
    same = latest_of(rows, tool)
    return same, [1.0 if row.key == key else share(asked, row.asked) for row in same]


def led_to(act: Act, rows: list[Row], since_news: int) -> tuple[int, int]:
    """The first and the last of the calls that a weighed verdict rests on: those like this one, or else those since
    the last news."""
    same, much_of = near(rows, act.tool, act.key, act.request[0])
    led = [row for row, much in zip(same, much_of, strict=True) if much >= ALIKE] or rows[-max(since_news, _FEW) :]
    return (led[0].call, led[-1].call) if led else (act.call, act.call)


def follows(asked: frozenset[str], rows: list[Row], same: list[Row]) -> float:
    """Of the words in which a request differs from the one before it, the share that the last two answers held."""
    new = asked.difference(same[-1].asked) if same else asked
    told = frozenset[str]().union(*(row.words for row in rows[-2:]))
    return share_in(told, new)


def latest_of(rows: list[Row], tool: str) -> list[Row]:
    """The last calls of a tool."""
    return [row for row in rows if row.tool == tool][-_SAME_TOOL:]


def share(one: frozenset[Any], other: frozenset[Any]) -> float:
    """What two sets have in common, 0 to 1."""
    if one == other:
        return 1.0
    common = len(one & other)
    return common / (len(one) + len(other) - common) if common else 0.0


def pieces_of(text: str) -> tuple[frozenset[int], frozenset[int], frozenset[str]]:
    """The pieces of a text as checksums, as they are and without numbers and ids; and its words without these."""
    low = text.casefold()
    masked = mask(low, "0")
    return _sums(low), _sums(masked), frozenset(words_in(masked[:_READ])[:_MOST_WORDS])


def form_of(meant: str) -> tuple[str, tuple[str, ...]]:
    """A request without its numbers, and these."""
    start = meant[:_FORM]
    if HAS_DIGIT(start) is None:
        return start, ()
    form, figures = without_numbers(start)
    return form, tuple(figures[:_MOST_NUMBERS])


def _sums(text: str) -> frozenset[int]:
    pieces = dict.fromkeys(text.encode("utf-8", "surrogatepass").translate(_AS_LINE_END).split(b"\n"))
    return frozenset([zlib.crc32(piece) for piece in list(pieces)[:_MOST_PIECES] if piece])


def _compare(row: Row, rows: list[Row]) -> None:
    """What its answer shares with those of calls before it."""
    same = latest_of(rows, row.tool)
    if not same:
        return
    before = same[-1]
    row.tool_lines, row.tool_masked = share(row.lines, before.lines), share(row.masked, before.masked)
    latest = None
    for one in reversed(same):
        much = 1.0 if row.key == one.key else share(row.asked, one.asked)
        if much >= ALIKE:
            latest = latest or one
            if much >= 0.7 and share(row.masked, one.masked) >= CLOSE:
                row.lap = 1
                break
    if latest is before:
        row.like_lines, row.like_masked = row.tool_lines, row.tool_masked
    elif latest is not None:
        row.like_lines, row.like_masked = share(row.lines, latest.lines), share(row.masked, latest.masked)


def _follow(row: Row, rows: list[Row]) -> None:
    """What became of the numbers and of the world since the call before it that was the same."""
    acted = 0
    twin = form = key = False
    for one in reversed(rows):
        if one.tool == row.tool:
            if not twin and one.gist == row.gist:
                twin = True
                if len(one.alone) == len(row.alone):
                    pairs = list(zip(row.alone, one.alone, strict=True))
                    row.falls = one.falls + 1 if any(now < was for now, was in pairs) else 0
                    row.rises = one.rises + 1 if any(now > was for now, was in pairs) else 0
            if not form and one.form == row.form:
                form = True
                if acted and not row.acts:
                    row.unmoved = 1 if one.gist == row.gist else -1
            if not key and one.key == row.key:
                key = True
                row.recovered = int(one.failed and not row.failed)
                _count_up(row, one)
        acted += one.acts


def _count_up(row: Row, before: Row) -> None:
    """Counts `serial`, unless a number moved that is neither a counter nor noise."""
    if row.failed != before.failed or (row.gist != before.gist and share(row.words, before.words) < 0.9):
        return
    if len(row.alone) != len(before.alone):
        row.serial = before.serial + 1
        return
    last_by = before.by if len(before.by) == len(row.alone) else (0.0,) * len(row.alone)
    by: list[float] = []
    for now, was, last in zip(row.alone, before.alone, last_by, strict=True):
        step = now - was
        if step:
            counts = step > 0 and (step == last or (not last and step <= 2))
            wobbles = abs(step) <= _NOISE * max(abs(now), abs(was)) and (step * last < 0 or (not last and step > 0))
            row.moves |= not (counts or wobbles)
        by.append(step or last)
    row.by = tuple(by)
    row.serial = 0 if row.moves else before.serial + 1
