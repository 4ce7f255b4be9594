"""Whether two texts say the same in other words: one mail reworded, one brief for a second sub-agent.

Words that single something out (numbers, ids, addresses, names in capitals) must agree; ordinary words may differ. A
series made from one template (`Review a.py`, `Review b.py`) is not alike: there one word is swapped for another.
"""

import re
import zlib
from collections.abc import Sequence

from agents.policy.vocabulary import words

_WORD = re.compile(r"[^\W_]+(?:[._@/:#-]+[^\W_]+)*")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_MAX_WORDS = 48
_LONGEST = 2_000
_COMMON = words("arguments", "common")
_NUMBERS = words("arguments", "numbers")
_ENDINGS = ("ingly", "edly", "ing", "ied", "ies", "ent", "ed", "es", "er", "en", "ez", "ly", "s", "e")

Words = tuple[frozenset[int], frozenset[int]]


def words_of(text: str) -> Words:
    """Ordinary words and those that single something out, both as checksums."""
    plain: set[int] = set()
    special: set[int] = set()
    text = text[:_LONGEST]
    start = True
    for match in _WORD.finditer(text):
        word = match.group()
        low = word.casefold()
        if _singles_out(word, low, start):
            special.add(_sum(low))
        if low.isascii():
            stem = _stem(low)
            if len(low) > 2 and low not in _COMMON:
                plain.add(_sum(stem))
        elif _CJK.search(low):
            plain.update(_sum(low[i : i + 2]) for i in range(max(len(low) - 1, 1)))
        elif low not in _COMMON:
            plain.add(_sum(low))
        end = match.end()
        start = end < len(text) and text[end] in ".!?:\n"
        if len(plain) >= _MAX_WORDS:
            break
    return frozenset(plain), frozenset(special)


def alike(one: Words, other: Words) -> bool:
    a, b = one[0], other[0]
    if not a or not b:
        return one == other and bool(one[1])
    if a == b:
        return one[1] == other[1] or not (one[1] ^ other[1]) or _agree(one[1], other[1])
    if not _agree(one[1], other[1]):
        return False
    common, only_a, only_b = len(a & b), len(a - b), len(b - a)
    if only_a == only_b and only_a <= 2 and common >= 2 * only_a:
        return False  # a template with another filling
    smaller = min(len(a), len(b))
    return common >= 2 and common >= 0.45 * smaller and common >= 0.28 * (common + only_a + only_b)


def _singles_out(word: str, low: str, start: bool) -> bool:
    """A number, an id, an address; a name in capitals that does not begin a sentence."""
    if low.isalpha():
        return low in _NUMBERS or (word[0].isupper() and not start and len(word) > 2 and word[1:].islower())
    return any(c.isdigit() or c in "@/._" for c in low)


def _agree(one: frozenset[int], other: frozenset[int]) -> bool:
    """One text may leave something out, but must not name another thing in its place."""
    return not (one - other and other - one)


def dump(words: Words) -> list[list[int]]:
    return [sorted(words[0]), sorted(words[1])]


def load(row: Sequence[Sequence[int]]) -> Words:
    return frozenset(row[0]), frozenset(row[1])


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _sum(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "surrogatepass"))
