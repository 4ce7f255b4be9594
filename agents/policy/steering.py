"""How an operator's note enters the history, and how a tool's output is kept from looking like one."""

import re

_MARKER = re.compile(r"\[(\s*user\s+note\s*:)", re.IGNORECASE)


def escape_marker(text: str) -> str:
    """Tool output with every look-alike of the note marker defused, so that only an operator can write a note."""
    if "[" not in text:
        return text
    return _MARKER.sub(r"\\[\1", text)


def note_text(note: str) -> str:
    return f"[User note: {note}]"


def append_note(result: str, note: str) -> str:
    """A tool result (or the task) with a note behind it, after a blank line."""
    return f"{result}\n\n{note_text(note)}" if result else note_text(note)
