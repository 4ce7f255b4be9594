"""Finds wordings in what a provider said: a small pattern language over words, indexed so that a great many are cheap.

A pattern is words separated by one space, as `words()` leaves them: lower case, no punctuation, apostrophes dropped.
`{a|b}` is a choice, ` ~ ` room for a few words, ` * ` for a clause, `exceed+` the word with any ending.
What stands before such room or at the end may end inside a word (`exceed` also finds `exceeded`); `word.` may not.
Languages without spaces between words are found anywhere in the text.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

_ROOM = {"*": 90, "~": 30, "+": 8}
MAX_CHARS = 6000
_TOKEN = re.compile(r"[0-9]+(?:\.[0-9]+)+|[^\W_]+")
_LINK = re.compile(r"(?:https?://|www\.)[^\s\"'<>\\)\]]+")
_ROOMS = re.compile(r"( [*~] |\+ )")
_CHOICE = re.compile(r"\{([^{}]*)\}")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pattern:
    """`gaps[n]` is the room allowed before segment n; each segment is a set of numbers of literals."""

    family: str
    segments: tuple[tuple[int, ...], ...]
    gaps: tuple[int, ...]


def words(text: str) -> str:
    """The text as patterns see it, with a space at either end; links are left out, they diagnose nothing."""
    text = text[:MAX_CHARS].lower().replace("'", "").replace("\u2019", "")
    if "://" in text or "www." in text:
        text = _LINK.sub(" ", text)
    return f" {' '.join(_TOKEN.findall(text))} "


class Wordings:
    """Which families of wording occur in a text. Built once from tables `{family: patterns}`."""

    def __init__(self, *tables: Mapping[str, str]) -> None:
        self._literals: list[str] = []
        self._users: list[list[tuple[int, int]]] = []
        self._patterns: list[_Pattern] = []
        numbers: dict[str, int] = {}
        for table in tables:
            for family, patterns in table.items():
                for pattern in patterns_of(patterns):
                    self._add(family, pattern, numbers)
        self._index: dict[str, list[int]] = {}
        self._anywhere: list[int] = []
        self._build_index()

    def find(self, text: str) -> dict[str, str]:
        """Family -> what was said in its sense; `text` comes from `words()`."""
        spots: dict[int, list[int]] = {}
        literals, index = self._literals, self._index
        stems: set[str] = set()
        for word in text.split():
            stems.update((word[:5], word[:4], word[:3], word[:2]))
        for stem in stems:
            for number in index.get(stem, ()):
                if literals[number] in text:
                    spots[number] = _starts(text, literals[number])
        if not text.isascii():
            for number in self._anywhere:
                if literals[number] in text:
                    spots[number] = _starts(text, literals[number])
        seen: dict[int, int] = {}
        for number in spots:
            for user, segment in self._users[number]:
                seen[user] = seen.get(user, 0) | 1 << segment
        found: dict[str, str] = {}
        for place, mask in seen.items():
            pattern = self._patterns[place]
            if mask + 1 == 1 << len(pattern.segments) and pattern.family not in found:
                stretch = self._stretch(pattern, spots)
                if stretch is not None:
                    found[pattern.family] = text[stretch[0] : stretch[1]].strip()
        return found

    def _stretch(self, pattern: _Pattern, spots: dict[int, list[int]]) -> tuple[int, int] | None:
        """From where to where the segments follow one another, none too far from the one before."""
        reached: list[tuple[int, int]] = []
        for segment, gap in zip(pattern.segments, pattern.gaps, strict=True):
            here = [
                (start, start + len(self._literals[number].rstrip()))
                for number in segment
                for start in spots.get(number, ())
            ]
            if reached or gap >= 0:
                here = [
                    (begin, end)
                    for start, end in here
                    for begin, so_far in reached
                    if 0 <= start - so_far <= gap
                ]  # fmt: skip
            if not here:
                return None
            reached = here
        return min(reached)

    def _add(self, family: str, pattern: str, numbers: dict[str, int]) -> None:
        segments: list[tuple[int, ...]] = []
        gaps: list[int] = []
        gap = -1
        for part, following in split(pattern):
            segment = []
            for literal in _flat(part):
                if literal not in numbers:
                    numbers[literal] = len(self._literals)
                    self._literals.append(literal)
                    self._users.append([])
                self._users[numbers[literal]].append((len(self._patterns), len(segments)))
                segment.append(numbers[literal])
            segments.append(tuple(segment))
            gaps.append(gap)
            gap = following
        self._patterns.append(_Pattern(family=family, segments=tuple(segments), gaps=tuple(gaps)))

    def _build_index(self) -> None:
        """Each literal under the beginning of its rarest word."""
        stems = [_stems(literal) for literal in self._literals]
        counts = Counter(stem for one in stems for stem in set(one))
        for number, own in enumerate(stems):
            if own:
                self._index.setdefault(min(own, key=lambda stem: (counts[stem], stem)), []).append(number)
            else:
                self._anywhere.append(number)


def patterns_of(table: str) -> list[str]:
    """The patterns of a table: one a line; an indented line goes on with the one before."""
    lines: list[str] = []
    for line in table.splitlines():
        if line.startswith(" ") and lines:
            lines[-1] += line.strip()
        elif line.strip():
            lines.append(line.strip())
    return lines


def split(pattern: str) -> list[tuple[str, int]]:
    """The segments of a pattern, each with the room that may follow it."""
    parts = _ROOMS.split(pattern)
    rooms = [_ROOM[mark.strip()] for mark in parts[1::2]]
    return list(zip(parts[::2], [*rooms, 0], strict=True))


def _flat(part: str) -> list[str]:
    """Every way to read the choices of a segment, as text to look for."""
    choice = _CHOICE.search(part)
    if choice is not None:
        before, after = part[: choice.start()], part[choice.end() :]
        return [flat for one in choice[1].split("|") for flat in _flat(before + one + after)]
    if "{" in part or "}" in part or "|" in part or "_" in part or not part.strip():
        raise ValueError(f"not a pattern: {part!r}")
    flat = " ".join(part.split())
    if _UNSPACED.search(flat):
        return [flat]
    return [f" {flat[:-1]} " if flat.endswith(".") else f" {flat}"]


def _starts(text: str, literal: str) -> list[int]:
    starts: list[int] = []
    start = text.find(literal)
    while start >= 0 and len(starts) < 20:
        starts.append(start)
        start = text.find(literal, start + 1)
    return starts


def _stems(literal: str) -> list[str]:
    """Beginnings of the literal's words by which a text that holds it is sure to be found; none for unspaced text."""
    if _UNSPACED.search(literal):
        return []
    parts = literal.split()
    return [word[:5] for number, word in enumerate(parts) if number < len(parts) - 1 or len(word) >= 2]
