"""How an operator's note enters the history, and how a tool's output is kept from looking like one."""

import re

# Between the letters may stand what nobody sees and Markdown that a reader takes for emphasis; bracket and colon may be
# of another width. The blank between the words must be there: `rows[user_note:]` is code.
_UNSEEN = r"\s\u00ad\u034f\u061c\u115f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
_ANY = rf"[{_UNSEEN}*_`~]*"
_BLANK = rf"[*_`~]*[{_UNSEEN}]{_ANY}"
_BRACKETS = "[\uff3b\u3010\u27e6"
_MARKER = re.compile(
    rf"([{re.escape(_BRACKETS)}])(?={_ANY}{_ANY.join('user')}{_BLANK}{_ANY.join('note')}{_ANY}[:\uff1a\ufe55\ufe13])",
    re.IGNORECASE,
)


def escape_marker(text: str) -> str:
    """Tool output with every look-alike of the note marker defused, so that only an operator can write a note."""
    if not any(bracket in text for bracket in _BRACKETS):
        return text
    return _MARKER.sub(r"\\\1", text)


def note_text(note: str) -> str:
    return f"[User note: {note}]"


def append_note(result: str, note: str) -> str:
    """A tool result (or the task) with a note behind it, after a blank line."""
    return f"{result}\n\n{note_text(note)}" if result else note_text(note)
