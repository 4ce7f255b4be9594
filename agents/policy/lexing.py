"""A text's words and numbers. Most texts are ASCII: for those the characters between words are blanked in one pass and
the text is split, several times as fast as a search for letters of all alphabets, with the same result."""

import re
import zlib
from collections.abc import Container

GIST = 300
_NUMBERED, _MOST_NUMBERS = 600, 10
_WORD = re.compile(r"[\w./:@%+-]+")
_BETWEEN = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) in "_./:@%+-")}
_AS_BLANK = str.maketrans(_BETWEEN)
# Begins with the sign or the digit itself: a search that begins by looking back tries each character.
_ALONE = r"[-\d](?<![\w.-].)(?:(?<=-)\d+|(?<=\d)\d*)(?:\.\d+)?(?![\w-]|\.\d)"
_NUMBER = r"(\d+(?:\.\d+)?)"
_FROM_DIGIT = r"\d[\w.-]*"
_alone, _plain_alone = re.compile(_ALONE).findall, re.compile(_ALONE, re.ASCII).findall
_parted, _plain_parted = re.compile(_NUMBER).split, re.compile(_NUMBER, re.ASCII).split
_mask, _plain_mask = re.compile(_FROM_DIGIT).sub, re.compile(_FROM_DIGIT, re.ASCII).sub


def words_in(text: str) -> list[str]:
    """Its words with what stands within names, paths, addresses and times."""
    return text.translate(_AS_BLANK).split() if text.isascii() else _WORD.findall(text)


def numbers_alone(text: str) -> list[str]:
    """Its numbers that are no part of an id, a version, a name."""
    return (_plain_alone if text.isascii() else _alone)(text)


def numbers_in(start: str) -> list[float]:
    """The first numbers of an answer that are no part of an id."""
    return [float(one) for one in numbers_alone(start[:_NUMBERED])[:_MOST_NUMBERS]]


def without_numbers(text: str) -> tuple[str, list[str]]:
    """The text with `#` for each number, and these."""
    parts = (_plain_parted if text.isascii() else _parted)(text)
    return "#".join(parts[::2]), parts[1::2]


def mask(text: str, mark: str = "#") -> str:
    """The text with the mark for each number and for what is left of an id from its first digit on."""
    return (_plain_mask if text.isascii() else _mask)(mark, text)


def gist_sum(text: str) -> int:
    """The checksum of how a text begins, without its numbers and ids."""
    return zlib.crc32(mask(text[:GIST]).encode("utf-8", "surrogatepass"))


def bare(word: str) -> str:
    """A word as it is kept, without numbers and ids."""
    return word if word.isalpha() else mask(word, "0")


def share_in(told: Container[str], new: frozenset[str]) -> float:
    """The share of these words that was told; 0.5 if there are none."""
    return len([word for word in new if bare(word) in told]) / len(new) if new else 0.5
