"""Whether two texts say the same in other words: one mail reworded, one brief for a second sub-agent.

Words that single something out (numbers, ids, addresses, names in capitals) must agree; ordinary words may differ. A
series made from one template (`Review a.py`, `Review b.py`) is not alike: there one word is swapped for another.
"""

import re
import zlib
from functools import lru_cache

from agents.policy.vocabulary import words

_WORD = re.compile(r"[^\W_]+(?:[._@/:#-]+[^\W_]+)*")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_MAX_WORDS = 48
LONGEST = 2_000
_SHORT_WORD = 40
_ENDS = frozenset(".!?:\n")
_DIGITS = re.compile(r"[0-9]+")
_COMMON = words("arguments", "common")
_COURTESIES = words("arguments", "courtesies")
_COURTESY = 240
_NUMBERS = words("arguments", "numbers")
_ENDINGS = ("ingly", "edly", "ing", "ied", "ies", "ent", "ed", "es", "er", "en", "ez", "ly", "s", "e")
_LAST = frozenset(ending[-1] for ending in _ENDINGS)

Words = tuple[frozenset[int], frozenset[int]]


@lru_cache(maxsize=512)
def words_of(text: str) -> Words:
    """Ordinary words and those that single something out, both as checksums."""
    plain: set[int] = set()
    special: set[int] = set()
    text = text[:LONGEST]
    start = True
    for match in _WORD.finditer(text):
        word = match.group()
        sums, singles = _read(word, start) if len(word) < _SHORT_WORD else _read_anew(word, start)
        plain.update(sums)
        special.update(singles)
        start = text[match.end() : match.end() + 1] in _ENDS
        if len(plain) >= _MAX_WORDS:
            break
    return frozenset(plain), frozenset(special)


def _read_anew(word: str, start: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(the checksums of a word as an ordinary one, those of what in it singles something out)."""
    low = word.casefold()
    if not low.isascii() and _CJK.search(low):
        # Written without blanks between words: only its numbers single something out.
        pairs = tuple(_sum(low[i : i + 2]) for i in range(max(len(low) - 1, 1)))
        return pairs, tuple(_sum(number) for number in _DIGITS.findall(low))
    singles = (_sum(low),) if _singles_out(word, low, start) else ()
    if low.isascii():
        return ((_sum(_stem(low)),) if len(low) > 2 and low not in _COMMON else ()), singles
    return (() if low in _COMMON else (_sum(low),)), singles


# The same words come again and again, within a text and from call to call.
_read = lru_cache(maxsize=8_192)(_read_anew)


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


def akin(one: Words, other: Words, common: int) -> bool:
    """Whether two texts may well be about one thing: weaker than `alike`. Both name the same numbers and names, share
    `common` ordinary words, and are no template with another filling."""
    a, b = one[0], other[0]
    if (one[1] - other[1]) and (other[1] - one[1]):
        return False
    only_a, only_b, both = len(a - b), len(b - a), len(a & b)
    return both >= common and not (only_a == only_b and 0 < only_a <= 2)


@lru_cache(maxsize=512)
def is_courtesy(text: str) -> bool:
    """Whether a message consists of thanks, wishes and farewells."""
    found = [match.group().casefold() for match in _WORD.finditer(text[:_COURTESY])]
    kind = sum(word in _COURTESIES for word in found)
    rest = sum(word not in _COURTESIES and word not in _COMMON and len(word) > 2 for word in found)
    return len(text) < _COURTESY and kind > 0 and 4 * rest <= kind + rest


def _singles_out(word: str, low: str, start: bool) -> bool:
    """A number, an id, an address; a name in capitals that does not begin a sentence."""
    if low.isalpha():
        name = word[0].isupper() and not start and len(word) > 2 and word[1:].islower() and low not in _COMMON
        return name or low in _NUMBERS
    return any(c.isdigit() or c in "@/._" for c in low)


def _agree(one: frozenset[int], other: frozenset[int]) -> bool:
    """One text may leave something out, but must not name another thing in its place."""
    return not (one - other and other - one)


def _stem(word: str) -> str:
    if word[-1] in _LAST:
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= 3:
                return word[: -len(ending)]
    return word


def _sum(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "surrogatepass"))
