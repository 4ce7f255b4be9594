"""How messages look as the input items of OpenAI's responses API, without any state kept on the server."""

from collections.abc import Mapping
from typing import Any

from agents.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from agents.providers import wire
from agents.providers.chat_form import arguments


def part(message: Message, origin: str, *, item_ids: bool) -> bytes:
    """The items of one message, joined by commas; empty for a message that makes none."""
    return b",".join(wire.dumps(item) for item in _items(message, origin, item_ids))


def _items(message: Message, origin: str, item_ids: bool) -> list[dict[str, Any]]:
    match message:
        case SystemMessage(text=text):
            return [{"role": "system", "content": text}]
        case UserMessage(text=text):
            return [{"role": "user", "content": text}]
        case ToolMessage(wire_id=wire_id, text=text):
            return [{"type": "function_call_output", "call_id": wire_id, "output": text}]
        case AssistantMessage():
            return _assistant(message, origin, item_ids)


def _assistant(message: AssistantMessage, origin: str, item_ids: bool) -> list[dict[str, Any]]:
    """Reasoning goes back before the text or the call that it led to."""
    kept: Mapping[str, Any] = message.opaque if message.opaque and message.origin == origin else {}
    calls = [
        {"type": "function_call", "call_id": c.wire_id, "name": c.name, "arguments": arguments(c.args)}
        for c in message.tool_calls
    ]
    order = kept.get("items")
    if isinstance(order, list):
        if (placed := _placed(order, message.text, calls, item_ids)) is not None:
            return placed
        thoughts = [_reasoning(entry["reasoning"], item_ids) for entry in order if "reasoning" in entry]
        return [*thoughts, *_text(message.text, {}), *calls]
    return [*_text(message.text, {}), *calls]


def _placed(order: list[Any], text: str, calls: list[dict[str, Any]], item_ids: bool) -> list[dict[str, Any]] | None:
    """The items in the order in which they came; None where text or calls are no longer what they were.

    An entry of `order` is `{reasoning: item}`, `{text: characters, ...fields}` or `{call: fields}`.
    """
    if sum(entry.get("text", 0) for entry in order) != len(text) or sum("call" in e for e in order) != len(calls):
        return None
    found: list[dict[str, Any]] = []
    at = asked = 0
    for entry in order:
        if "call" in entry:
            found.append(calls[asked])
            asked += 1
        elif "text" in entry:
            end = at + entry["text"]
            found += _text(text[at:end], {name: value for name, value in entry.items() if name != "text"})
            at = end
        elif "reasoning" in entry:
            found.append(_reasoning(entry["reasoning"], item_ids))
    return found


def _reasoning(item: dict[str, Any], item_ids: bool) -> dict[str, Any]:
    """Without a stored state an id leads nowhere, and many servers refuse what leads nowhere."""
    return item if item_ids else {name: value for name, value in item.items() if name not in ("id", "status")}


def _text(text: str, fields: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": text, **fields}] if text.strip() else []
