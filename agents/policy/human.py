"""What people said in a history, told apart from what the program and the tools wrote there."""

import re
from collections.abc import Iterable

from agents.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage

# Tool output never holds this form (steering.escape_marker): it stands at the start or after a blank line.
_NOTE = re.compile(r"(?:\A|\n\n)(?=\[User note: )")
GAP = "\n\n"


def split_notes(result: str) -> tuple[str, str]:
    """A tool result as what the tool said and the operator's notes behind it; everything after a note counts as one."""
    found = _NOTE.search(result)
    return (result[: found.start()], result[found.end() :]) if found else (result, "")


def without_ours(message: UserMessage) -> str:
    """The text less the paragraphs that this program wrote into it."""
    text, kept, start = message.text, [], 0
    for piece in message.ours:
        at = _paragraph(text, piece, start)
        if at >= 0:
            kept.append(text[start:at])
            start = at + len(piece)
    kept.append(text[start:])
    return GAP.join(part for raw in kept if (part := raw.strip("\n")).strip()) if message.ours else text


def human_text(message: Message) -> str:
    """The words of people in one message, whole; empty if there are none."""
    match message:
        case UserMessage():
            return without_ours(message)
        case ToolMessage(text=text):
            return split_notes(text)[1]
        case SystemMessage() | AssistantMessage():
            return ""


def joined(messages: Iterable[UserMessage]) -> UserMessage:
    """Several user messages as one, paragraph by paragraph."""
    several = list(messages)
    return UserMessage(
        text=GAP.join(one.text for one in several), ours=tuple(piece for one in several for piece in one.ours)
    )


def _paragraph(text: str, piece: str, start: int) -> int:
    """Where `piece` stands as a paragraph of its own, or -1: a person may have written the same words elsewhere."""
    at = text.find(piece, start)
    while at >= 0:
        end = at + len(piece)
        if (at == 0 or text.endswith(GAP, 0, at)) and (end == len(text) or text.startswith(GAP, end)):
            return at
        at = text.find(piece, at + 1)
    return -1
