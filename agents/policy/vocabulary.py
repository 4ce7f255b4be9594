"""The word lists of the guard (`vocabulary.toml`): sets of words, and phrases that are looked for in a text."""

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any

from ahocorasick_rs import AhoCorasick, Implementation


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath("vocabulary.toml").read_text(encoding="utf-8"))


def words(table: str, name: str) -> frozenset[str]:
    """A list of single words."""
    return frozenset(_tables()[table][name].split())


def phrases(table: str, name: str) -> tuple[str, ...]:
    """A list of phrases, one a line, looked for anywhere in a text in lower case."""
    return tuple(line.strip() for line in _tables()[table][name].splitlines() if line.strip())


# Characters that are looked through at once: each match costs memory.
_PIECE = 65_536


class Phrases:
    """Lists of phrases and single words, looked for together in one pass over a text: what this takes does not grow
    with the lists."""

    def __init__(self, lists: Mapping[str, Iterable[str]], words: Iterable[str] = ()) -> None:
        names: dict[str, list[str]] = {word: [] for word in words}
        self._words = list(names)
        for name, found in lists.items():
            for phrase in found:
                names.setdefault(phrase, []).append(name)
        self._names = list(names.values())
        self._longest = max(map(len, names))
        self._automaton = AhoCorasick(names, implementation=Implementation.DFA)

    def heard(self, text: str) -> tuple[dict[str, int], dict[str, int]]:
        """Each list of which a phrase stands anywhere in the text, with the place behind the first that is over; the
        single words that stand alone, each with the place of the last."""
        ends: dict[str, int] = {}
        words: dict[str, int] = {}
        for which, start, end in self._matches(text):
            for name in self._names[which]:
                ends.setdefault(name, end)
            if which < len(self._words) and _stands_alone(text, start, end):
                words[self._words[which]] = start
        return ends, words

    def found(self, text: str) -> set[str]:
        """The lists of which a phrase stands anywhere in the text, of any size: piece by piece, for whoever writes it
        may have filled it with phrases."""
        which: set[int] = set()
        for at in range(0, len(text), _PIECE):
            which.update([match[0] for match in self._matches(text[at : at + _PIECE + self._longest - 1])])
        return {name for one in which for name in self._names[one]}

    def holds(self, text: str) -> bool:
        """Whether anything of it stands anywhere in the text."""
        return bool(self._matches(text))

    def _matches(self, text: str) -> list[tuple[int, int, int]]:
        try:
            return self._automaton.find_matches_as_indexes(text, overlapping=True)
        except UnicodeEncodeError:  # half a character, which no phrase holds
            whole = text.encode("utf-8", "replace").decode()
            return self._automaton.find_matches_as_indexes(whole, overlapping=True)


# What joins words and is no part of them; nothing stands before the first and behind the last.
JOINTS = " ,;()[]{}\"'!?=<>|:*`~#\n\t"
_BESIDE = frozenset({"", *JOINTS})


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether a word is no part of a longer one; a full stop may end it."""
    after = text[end : end + 1]
    return text[start - 1 : start] in _BESIDE and (
        after in _BESIDE or (after == "." and text[end + 1 : end + 2] in _BESIDE)
    )
