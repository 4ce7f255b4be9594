"""How messages look on the wire of Anthropic's messages API: parts, blocks, and the cache marks set at send time."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from agents.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from agents.providers import wire

# A part is the role's letter and then the content blocks: adjacent parts of one role become one message when they are
# joined, since the API wants the roles to alternate and all results of a batch in one message.
_ROLES = {b"u": b"user", b"a": b"assistant"}
_SYSTEM = b"s"
_MARK = b',"cache_control":{"type":"ephemeral"}}'
# The API takes four marks: the prompt (tools come before it), and the ends of the latest user messages. It looks back
# twenty blocks from a mark, which one large batch of results can exceed: hence the one before the last.
_MARKED_MESSAGES = 2


def part(message: Message, origin: str) -> bytes:
    letter, blocks = _blocks(message, origin)
    return letter + b",".join(wire.dumps(block) for block in blocks)


def joined(parts: Iterable[bytes]) -> tuple[bytes, bytes]:
    """The system blocks and the messages, as the insides of their arrays, with marks on blocks that are never empty."""
    held = [one for one in parts if len(one) > 1]
    system = b",".join(one[1:] for one in held if one[:1] == _SYSTEM)
    messages = []
    for letter, run in groupby((one for one in held if one[:1] in _ROLES), key=lambda one: one[:1]):
        messages.append([_ROLES[letter], b",".join(one[1:] for one in run)])
    for message in [one for one in messages if one[0] == b"user"][-_MARKED_MESSAGES:]:
        message[1] = marked(message[1])
    said = b",".join(b'{"role":"%b","content":[%b]}' % (role, blocks) for role, blocks in messages)
    return marked(system) if system else b"", said


def marked(objects: bytes) -> bytes:
    """Objects, joined by commas, with a mark in the last one."""
    return objects[:-1] + _MARK


def _blocks(message: Message, origin: str) -> tuple[bytes, list[dict[str, Any]]]:
    """The role's letter and the content blocks. Blank text makes no block: the API refuses it."""
    match message:
        case SystemMessage(text=text):
            return b"s", _text(text)
        case UserMessage(text=text):
            return b"u", _text(text)
        case ToolMessage(wire_id=wire_id, text=text):
            content = text if text.strip() else "(no output)"
            return b"u", [{"type": "tool_result", "tool_use_id": wire_id, "content": content}]
        case AssistantMessage():
            return b"a", _assistant(message, origin)


def _assistant(message: AssistantMessage, origin: str) -> list[dict[str, Any]]:
    """Thinking goes back unchanged, with its signature, and in its place among text and calls."""
    kept: Mapping[str, Any] = message.opaque if message.opaque and message.origin == origin else {}
    calls = [{"type": "tool_use", "id": c.wire_id, "name": c.name, "input": _input(c.args)} for c in message.tool_calls]
    order = kept.get("blocks")
    if isinstance(order, list) and (placed := _placed(order, message.text, calls)) is not None:
        return placed
    thoughts = [block for block in order if isinstance(block, dict)] if isinstance(order, list) else []
    return [*thoughts, *kept.get("thinking_blocks", ()), *_text(message.text), *calls]


def _placed(order: list[Any], text: str, calls: list[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """The blocks in the order in which they came; None where text or calls are no longer what they were.

    In `order` a number stands for so many characters of text, None for a call, and an object for itself.
    """
    if sum(entry for entry in order if isinstance(entry, int)) != len(text) or order.count(None) != len(calls):
        return None
    found: list[dict[str, Any]] = []
    at = asked = 0
    for entry in order:
        if entry is None:
            found.append(calls[asked])
            asked += 1
        elif isinstance(entry, int):
            found += _text(text[at : at + entry])
            at += entry
        else:
            found.append(entry)
    return found


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _input(raw: str) -> dict[str, Any]:
    """The arguments as the object that the API wants; a text that is none is wrapped, so that nothing is lost."""
    try:
        value = wire.loads(raw.encode("utf-8", "replace")) if raw.strip() else {}
    except wire.NotJSON:
        value = None
    return value if isinstance(value, dict) else {"invalid_arguments": raw}
