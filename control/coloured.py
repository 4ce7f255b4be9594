"""What a terminal would have coloured, as classes of a small palette; every other escape goes as `plain.visible` says.

A class names a hue and no exact colour: each hue can be read on its ground in the dark and in the light theme, which
holds for no colour that a program picks. Nothing can be hidden by it: there is no black on black, and what a terminal
conceals is shown.
"""

import colorsys
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from control import plain

HUES = ("grey", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
# Where a hue ends on the circle of 360 degrees.
_ENDS = ((20, "red"), (70, "yellow"), (165, "green"), (200, "cyan"), (262, "blue"), (342, "magenta"), (361, "red"))
_CUBE = (0, 95, 135, 175, 215, 255)
_FLAGS = {1: "bold", 3: "italic", 4: "line", 9: "struck"}
_ENDED = {21: "bold", 22: "bold", 23: "italic", 24: "line", 29: "struck"}
_NUMBER = re.compile(r"\d{1,4}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How the next letters look."""

    ink: str = ""
    ground: str = ""
    turned: bool = False
    flags: frozenset[str] = frozenset()

    @property
    def classes(self) -> str:
        """A ground leaves its letters in the page's own ink, so that every pair can be read."""
        ground = (self.ink or "white") if self.turned else self.ground
        names = [f"on-{ground}"] if ground else [f"in-{self.ink}"] if self.ink else []
        return " ".join((*names, *(f"is-{flag}" for flag in sorted(self.flags))))


PLAIN = Style()


def coloured(text: str) -> SafeString:
    """Escaped for HTML. Without its tags it is letter by letter what `plain.visible` makes of the text."""
    if "\x1b" not in text and "\x9b" not in text:
        return conditional_escape(plain.visible(text))
    joined: list[SafeString] = []
    for classes, words in _pieces(text):
        joined.append(
            format_html('<span class="{}">{}</span>', classes, words) if classes else conditional_escape(words)
        )
    return mark_safe("".join(joined))


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """`(classes, words)`; neighbours of the same look are one piece."""
    style, classes, words = PLAIN, "", ""
    for codes, piece in plain.pieces(text):
        style = styled(style, codes) if codes is not None else style
        if not piece:
            continue
        if style.classes != classes and words:
            yield classes, words
            words = ""
        classes, words = style.classes, words + piece
    if words:
        yield classes, words


def styled(style: Style, codes: str) -> Style:
    """The style after these parameters of `ESC [ … m`."""
    given = _numbers(codes)
    while given:
        code = given.pop(0)
        if code == 0:
            style = PLAIN
        elif code in _FLAGS:
            style = replace(style, flags=style.flags | {_FLAGS[code]})
        elif code in _ENDED:
            style = replace(style, flags=style.flags - {_ENDED[code]})
        elif code in (7, 27):
            style = replace(style, turned=code == 7)
        elif code in (38, 48):
            hue = _chosen(given)
            style = replace(style, ink=hue) if code == 38 else replace(style, ground=hue)
        elif 30 <= code <= 37 or 90 <= code <= 97 or code == 39:
            style = replace(style, ink="" if code == 39 else HUES[code % 10])
        elif 40 <= code <= 47 or 100 <= code <= 107 or code == 49:
            style = replace(style, ground="" if code == 49 else HUES[code % 10])
    return style


def _numbers(codes: str) -> list[int]:
    """The parameters; a colour written with colons (`38:2::r:g:b`) loses the place of its colour space."""
    found: list[int] = []
    for word in codes.split(";"):
        parts = [int(part) if _NUMBER.fullmatch(part) else 0 for part in word.split(":")]
        found += [*parts[:2], *parts[-3:]] if len(parts) == 6 else parts
    return found


def _chosen(given: list[int]) -> str:
    """The hue of `5;n` or `2;r;g;b`, which are taken off the front."""
    kind = given.pop(0) if given else 0
    if kind == 5 and given:
        return _of_256(min(given.pop(0), 255))
    if kind == 2 and len(given) >= 3:
        red, green, blue = (min(given.pop(0), 255) for _ in range(3))
        return hue_of(red, green, blue)
    given.clear()
    return ""


def _of_256(number: int) -> str:
    if number < 16:
        return HUES[number % 8]
    if number >= 232:
        level = 8 + 10 * (number - 232)
        return hue_of(level, level, level)
    number -= 16
    return hue_of(_CUBE[number // 36], _CUBE[number // 6 % 6], _CUBE[number % 6])


def hue_of(red: int, green: int, blue: int) -> str:
    """The hue of the palette that is nearest to a colour."""
    hue, strength, light = colorsys.rgb_to_hsv(red / 255, green / 255, blue / 255)
    if strength < 0.22 or light < 0.12:
        return "white" if light > 0.62 else "grey"
    return next(name for end, name in _ENDS if hue * 360 < end)
