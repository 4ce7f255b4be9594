"""Text from agents made fit to be seen: terminal escapes gone, invisible and bidirectional controls made visible."""

import re
from collections.abc import Iterator

# Colours and cursor jumps mean nothing on a page, and any escape that is left means nothing at all.
_MOVES = re.compile(r"[\x1b\x9b](?:(?<=\x9b)|\[)[0-?]*[ -/]*[@-~]|\x1b[@-Z\\-_]?")
# Titles, links, clipboards and the private strings of terminals: a terminal keeps them to itself, but a model has read
# them, so people shall. One that nobody ended ends with its line.
_STRING = re.compile(r"(?:\x1b([\]PX^_])|([\x9d\x90\x98\x9e\x9f]))([^\x07\x1b\x9c\n]*)(?:\x07|\x1b\\|\x9c)?")
_STRINGS = dict(zip("]PX^_\x9d\x90\x98\x9e\x9f", ("OSC", "DCS", "SOS", "PM", "APC") * 2, strict=True))
_MOST_OF_A_STRING = 200
_COLOURS = re.compile(r"(?:\x1b\[|\x9b)([0-9;:]*)m")
# A text that is cut inside an escape would show the rest of it as letters.
_CUT_ESCAPE = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*\Z|\x1b\Z")
_HIDDEN = re.compile(
    "[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Emoji use these two between visible characters, one at a time; alone or in a row they would hide text.
_EMOJI = "[\u2190-\u2bff\U0001f000-\U0001faff]"
_EMOJI_GLUE = re.compile(
    f"(?<={_EMOJI})\ufe0f(?!\ufe0f)|(?<=[\u2190-\u2bff\U0001f000-\U0001faff\ufe0f])\u200d(?={_EMOJI})"
)
# More marks on one letter than any script needs would paint over the lines around it.
_PILE = re.compile("([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{3})"
    "([\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+)")  # fmt: skip


def visible(text: str) -> str:
    """The text with every hidden character written as `⟨U+202E⟩`. Not escaped for HTML: templates do that."""
    if text.isascii() and text.isprintable():
        return text
    text = _MOVES.sub("", _STRING.sub(_said, text))
    kept = {match.start() for match in _EMOJI_GLUE.finditer(text)}
    text = _HIDDEN.sub(lambda m: m.group() if m.start() in kept else f"⟨U+{ord(m.group()):04X}⟩", text)
    return _PILE.sub(lambda m: f"{m.group(1)}⟨{len(m.group(2))} more marks⟩", text)


def pieces(text: str) -> Iterator[tuple[str | None, str]]:
    """What `visible` shows, cut where a terminal would change its colours: `(parameters of that change, words)`."""
    bare: list[str] = []
    changes: list[tuple[int, str | None]] = [(0, None)]
    at = length = 0
    text = _STRING.sub(_said, text)
    for match in _MOVES.finditer(text):
        bare.append(text[at : match.start()])
        length += match.start() - at
        at = match.end()
        if codes := _COLOURS.fullmatch(match.group()):
            changes.append((length, codes.group(1)))
    bare.append(text[at:])
    shown = "".join(bare)
    starts = [start for start, _ in changes[1:]]
    edits = _edits(shown)
    for (start, codes_of), end in zip(changes, [*starts, len(shown)], strict=True):
        yield codes_of, _edited(shown, start, end, edits)


def _edits(text: str) -> list[tuple[int, int, str]]:
    """What `visible` writes for something else: from, to, and what stands there instead; the last one first."""
    kept = {match.start() for match in _EMOJI_GLUE.finditer(text)}
    hidden = (
        (m.start(), m.end(), f"⟨U+{ord(m.group()):04X}⟩") for m in _HIDDEN.finditer(text) if m.start() not in kept
    )
    # The one mark that is a hidden character too ends a pile, since something else is written for it.
    piles = _PILE.finditer(text.replace("\u034f", " "))
    told = ((m.start(2), m.end(2), f"⟨{len(m.group(2))} more marks⟩") for m in piles)
    return sorted((*hidden, *told), reverse=True)


def _edited(text: str, start: int, end: int, edits: list[tuple[int, int, str]]) -> str:
    """This stretch with its edits, which are taken off the list. One that goes past the end is told here, whole."""
    words = []
    while edits and edits[-1][0] < end:
        first, last, instead = edits[-1]
        words += [text[start : max(start, first)], instead if first >= start else ""]
        start = min(last, end)
        if last > end:
            return "".join(words)
        edits.pop()
    return "".join((*words, text[start:end]))


def _said(match: re.Match[str]) -> str:
    """A terminal's string in words: `⟨link https://…⟩`, `⟨OSC 0;title⟩`. The end of a link says nothing."""
    kind, words = _STRINGS[match.group(1) or match.group(2)], match.group(3)
    if kind == "OSC" and words.startswith("8;"):
        kind, words = "link", words[2:].partition(";")[2]
    if not words:
        return ""
    more = f" … {len(words):,} characters" if len(words) > _MOST_OF_A_STRING else ""
    return f"⟨{kind} {words[:_MOST_OF_A_STRING]}{more}⟩"


def preview(text: str, limit: int = 2_000, lines: int = 24) -> tuple[str, bool]:
    """The head of a long text and whether anything was left out."""
    head = text[:limit]
    rows = head.split("\n", lines)
    if len(rows) > lines:
        head = "\n".join(rows[:lines])
    if len(head) < len(text):
        head = _CUT_ESCAPE.sub("", head)
    return head, len(head) < len(text)


def first_line(text: str, limit: int = 140) -> str:
    """One line that tells what a text is about."""
    lines = text.strip().split("\n", 12)[:12]
    # A rule of dashes or stars says nothing.
    line = next((line for line in lines if any(map(str.isalnum, line))), lines[0]).strip()
    return line if len(line) <= limit else line[: limit - 1] + "…"
