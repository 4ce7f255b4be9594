"""Text from agents made fit to be seen: terminal escapes gone, invisible and bidirectional controls made visible."""

import re

# CSI and OSC sequences, then any escape that is left: colours and cursor jumps mean nothing on a page.
_TERMINAL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\-_]?")
_HIDDEN = re.compile(
    "[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e0fff]"
)
# Emoji use these two between visible characters; alone they would hide text.
_EMOJI_GLUE = re.compile("(?<=[\u2190-\u2bff\U0001f000-\U0001faff\ufe0f])[\u200d\ufe0f]")


def visible(text: str) -> str:
    """The text with every hidden character written as `⟨U+202E⟩`. Not escaped for HTML: templates do that."""
    if text.isascii() and text.isprintable():
        return text
    text = _TERMINAL.sub("", text)
    kept = {match.start() for match in _EMOJI_GLUE.finditer(text)}
    return _HIDDEN.sub(lambda m: m.group() if m.start() in kept else f"⟨U+{ord(m.group()):04X}⟩", text)


def preview(text: str, limit: int = 2_000, lines: int = 24) -> tuple[str, bool]:
    """The head of a long text and whether anything was left out."""
    head = text[:limit]
    rows = head.split("\n", lines)
    if len(rows) > lines:
        head = "\n".join(rows[:lines])
    return head, len(head) < len(text)


def first_line(text: str, limit: int = 140) -> str:
    """One line that tells what a text is about."""
    lines = text.strip().split("\n", 12)[:12]
    # A rule of dashes or stars says nothing.
    line = next((line for line in lines if any(map(str.isalnum, line))), lines[0]).strip()
    return line if len(line) <= limit else line[: limit - 1] + "…"
