"""Hearing a stream chant: the same words again and again, at the end of what has come so far, while it still comes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

# Looked at each time this many characters have come; the tail in which a repeat must fit.
_EVERY, TAIL = 256, 6_000
_NEEDLE = 24
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chant:
    """`block` is what was repeated `copies` times by the time `heard` characters had come."""

    block: str
    copies: int
    heard: int


@dataclass(frozen=True, slots=True)
class _Measure:
    copies: int
    words: int
    chars: int


# Prose repeats nothing at all; code, tables and files may hold equal rows.
_PROSE, _CODE = _Measure(6, 72, 360), _Measure(40, 400, 2_000)
_LONGEST_BLOCK = 600


class ChantDetector:
    """Feed it a text (or the arguments of a call: `code=True`) as it streams. Rows that differ are no chant."""

    def __init__(self, *, code: bool = False) -> None:
        self._code = code
        self._tail = ""
        self._heard = self._looked = self._fences = 0

    def feed(self, piece: str) -> Chant | None:
        """The chant that is heard by now, if one is. Cheap: a look each few hundred characters, at the tail alone."""
        for at in range(0, len(piece), _EVERY):
            part = piece[at : at + _EVERY]
            seam = self._tail[-2:] + part
            self._fences += seam.count("```") - self._tail[-2:].count("```")
            self._tail = (self._tail + part)[-TAIL:]
            self._heard += len(part)
            if self._heard - self._looked >= _EVERY:
                self._looked = self._heard
                if found := self._look():
                    return found
        return None

    def _look(self) -> Chant | None:
        return chant_in(self._tail, code=self._code or self._fences % 2 == 1, heard=self._heard)


def chant_in(tail: str, *, code: bool, heard: int) -> Chant | None:
    """The chant at the end of a text, of which `tail` is the last part and `heard` the length."""
    measure = _CODE if code else _PROSE
    if len(tail) < measure.chars:
        return None
    needle = tail[-_NEEDLE:]
    before = tail.rfind(needle, 0, len(tail) - 1)
    if before < 0:
        return None
    period = len(tail) - _NEEDLE - before
    if not 0 < period <= _LONGEST_BLOCK:
        return None
    block = tail[-period:]
    copies = 1
    while tail[-(copies + 1) * period : -copies * period] == block:
        copies += 1
    # Counted across the seam: base64 has no words, however often it repeats.
    words = (len(_WORD.findall(block * 2)) - len(_WORD.findall(block))) * copies
    if copies >= measure.copies and words >= measure.words and copies * period >= measure.chars:
        return Chant(block=block.strip()[:200], copies=copies, heard=heard)
    return None


def last_part(pieces: Sequence[object]) -> str:
    """As much of the end of a text in pieces as a look needs."""
    found: list[str] = []
    size = 0
    for piece in reversed(pieces):
        if isinstance(piece, str):
            found.append(piece)
            size += len(piece)
            if size >= TAIL:
                break
    return "".join(reversed(found))[-TAIL:]
