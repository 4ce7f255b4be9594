"""What an answer says: whether it failed and how, whether it waits for something, what in it is new.

Times, durations, process numbers, request ids and temporary names say nothing; all other numbers do, they are progress.
"""

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from agents.policy import answer_words as said
from agents.policy.answer_faults import NUMBERS, fault_of, window_of
from agents.policy.answer_objects import flat, is_table, longest_text, nameless, parsed, status_of
from agents.policy.canonical import digest, flat_key, one_line
from agents.policy.lazily import lazy
from agents.policy.lexing import gist_sum, numbers_in
from agents.policy.scrubbing import HAS_DIGIT, scrub, without_ids
from agents.policy.vocabulary import words

# Of a longer answer head and tail are read; the middle counts through its checksum.
_READ = 6_000
_UNITS = 160
# What an answer means stands at its beginning.
_HEAD = 400
_SHORT_LINE = 60
START = 1_500
_PHRASES = re.compile(r"[;|]|, ")
_POSITIONS = words("fields", "ranges") | words("fields", "positions")
_LONGEST_POSITION = 24
_NUMBERED = re.compile(r"\s*\d+\s*[.):|\t→]\s?")
_FRAME = " \t{}[],"


@dataclass(kw_only=True)
class Answer:
    """`same`: equal for equal meaning. `fault`, `family`: how it failed, without numbers; the family also without
    names and paths. `tally`: numbers that tell progress, (how many are left, how many are done). `names`: whether a
    failure names what it is about. `source`: what the lazy fields are read from.
    """

    same: str
    failed: bool
    fault: str
    family: str
    sort: str
    pending: bool
    ended: bool
    empty: bool
    clock: bool
    acknowledges: bool
    sends: bool
    length: int
    tally: tuple[float, float] | None
    names: bool
    excerpt: str
    source: "_Source | None" = field(default=None, repr=False, compare=False)

    @lazy
    def shape(self) -> str:
        """What is `same` without ids made for this call."""
        source = self.source
        if source is None:
            return self.same
        bare = _without_ids(source.scrubbed, source.value, self.sends)
        return digest(f"{int(self.failed)}{bare}{source.rest}")

    @lazy
    def raw(self) -> str:
        """It with its times and ids."""
        return self.same if self.source is None else digest(self.source.plain)

    @lazy
    def exact(self) -> str:
        """A failure with its numbers."""
        return self.same if self.source is None else digest(window_of(self.source.scrubbed))

    @lazy
    def units(self) -> tuple[int, ...]:
        """Its lines or items, as checksums."""
        source = self.source
        return () if source is None or self.failed else _units(source.lines, source.value is not None)

    @lazy
    def start(self) -> str:
        """Its beginning, scrubbed line by line."""
        return "" if self.source is None else self.source.lines[:START]

    @lazy
    def alone(self) -> tuple[float, ...]:
        """The first of its numbers that are no part of an id."""
        return tuple(numbers_in(self.start))

    @lazy
    def gist(self) -> int:
        """How it begins, without numbers and ids, as a checksum."""
        return gist_sum(self.start)

    @lazy
    def fruitless(self) -> bool:
        """Whether it tells that nothing came of what was tried."""
        return self.source is not None and said.is_fruitless(self.source.low)

    @lazy
    def prose(self) -> str:
        """What it says in words, without numbers and ids: its longest text."""
        return "" if self.source is None else _prose(self.source.plain, self.source.value)


@dataclass(slots=True)
class _Source:
    """An answer on its way: as a text, scrubbed line by line and as one line, its head in lower case, parsed."""

    plain: str
    lines: str
    scrubbed: str
    low: str
    value: Any
    rest: str


_LAZY = ("shape", "raw", "exact", "units", "start", "fruitless", "prose")
# Read off the others.
_NOT_KEPT = frozenset({"source", "gist", "alone"})


def read_answer(text: str, is_error: bool) -> Answer:
    """Never raises. Linear in the first and last few thousand characters."""
    short, rest = _within(text)
    value = parsed(short) if not rest else None
    plain = flat(value, 0) if value is not None else short
    lines = scrub(plain)
    scrubbed = " ".join(lines.split())
    low = scrubbed[:_HEAD].casefold()
    spoken, known = said.heard(low)
    failed = is_error or said.reports_failure(low, spoken, value)
    brief = len(plain) < 400
    tally = said.tally(low, known, value)
    fault = family = sort = ""
    names = waits = ended = False
    if failed:
        fault, family, names = fault_of(scrubbed, tally)
        sort = said.sort_of_fault(low, spoken)
    if not is_error:
        status = status_of(value) if isinstance(value, dict) else ""
        if is_table(value):
            known = {word: at for word, at in known.items() if word in said.DONE}
        waits, ended = said.pending(low, spoken, status, known)
        if ended and not failed and said.is_lost(low, status, known):
            sort = said.LOST
    return Answer(
        same=digest(f"{int(failed)}{scrubbed}{rest}"),
        failed=failed,
        fault=fault,
        family=family,
        sort=sort,
        pending=waits,
        ended=ended,
        empty=said.is_empty(low, value),
        clock=len(scrubbed) < 60 and scrubbed != plain and _only_time(scrubbed),
        acknowledges=brief and said.acknowledges(known),
        sends=brief and said.tells_sent(known),
        length=len(plain),
        tally=tally,
        names=names,
        excerpt=one_line(text[:200])[:120],
        source=_Source(plain, lines, scrubbed, low, value, rest),
    )


def as_data(answer: Answer) -> dict[str, Any]:
    """All that was read out of an answer, as plain data."""
    kept = {name: one for name, one in answer.__dict__.items() if name not in _NOT_KEPT}
    return kept | {name: getattr(answer, name) for name in _LAZY}


def answer_from(heard: Mapping[str, Any]) -> Answer:
    """An answer from its plain data."""
    tally = heard["tally"]
    known = {name: one for name, one in heard.items() if name not in _LAZY}
    answer = Answer(**{**known, "tally": None if tally is None else tuple(tally)})
    answer.__dict__.update({name: heard[name] for name in _LAZY}, units=tuple(heard["units"]))
    return answer


def _only_time(scrubbed: str) -> bool:
    return not scrubbed.strip("0123456789 ~\t\n.,:;-+TZ\"'{}[]")


def _within(text: str) -> tuple[str, str]:
    if len(text) <= 2 * _READ:
        return text, ""
    middle = zlib.crc32(text[_READ:-_READ].encode("utf-8", "surrogatepass"))
    return f"{text[:_READ]}\n{text[-_READ:]}", f"{middle:08x}"


def _without_ids(scrubbed: str, value: Any, sends: bool) -> str:
    """The answer without ids that were made for this very call. Only short ones are acknowledgements."""
    if isinstance(value, dict) and len(scrubbed) < 1_500:
        scrubbed = " ".join(scrub(flat(nameless(value, 0), 0)).split())
    elif len(scrubbed) > 400:
        return scrubbed
    return NUMBERS.sub("#", scrubbed) if sends else without_ids(scrubbed)


def _prose(plain: str, value: Any) -> str:
    """What an answer says in words, without numbers and ids: its longest text."""
    if value is not None:
        plain = longest_text(value)
    return " ".join(word for word in plain[:400].split() if not any(map(str.isdigit, word)))


def _units(text: str, is_object: bool) -> tuple[int, ...]:
    """The lines of a text or the leaves of an object. Where in a series an answer stands is no news."""
    parts = text.split("\n")
    numbered = len(parts) > 1 and HAS_DIGIT(text) is not None
    if len(parts) < 2 and len(text) > _SHORT_LINE:
        parts = _PHRASES.split(text)
    sums: dict[int, None] = {}
    # Rows of a table have many lines in common.
    for part in dict.fromkeys(parts[: 2 * _UNITS]):
        bare = part.strip(_FRAME)
        if numbered and bare[:1].isdigit() and (number := _NUMBERED.match(part)) is not None:
            bare = part[number.end() :].strip(_FRAME)
        if is_object and (at := bare.find(":")) >= 0 and at <= _LONGEST_POSITION and _tells_position(bare[:at]):
            continue
        if bare:
            sums[zlib.crc32(bare.encode("utf-8", "surrogatepass"))] = None
    return tuple(sums)[:_UNITS]


@lru_cache(maxsize=2048)
def _tells_position(key: str) -> bool:
    return flat_key(key) in _POSITIONS
