"""How a message looks on the wire of chat completions, by the ways of the provider that it goes to."""

from hashlib import blake2b
from typing import Any

from agents.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from agents.providers import wire
from agents.providers.profiles import Profile

_NINE = 9
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def form(message: Message, origin: str, profile: Profile, model: str) -> dict[str, Any]:
    """The message as an object. Opaque fields only where they come from `origin`."""
    match message:
        case SystemMessage(text=text):
            return {"role": "system", "content": text}
        case UserMessage(text=text):
            return {"role": "user", "content": text}
        case ToolMessage(wire_id=wire_id, text=text):
            return {"role": "tool", "tool_call_id": call_id(wire_id, profile), "content": text}
        case AssistantMessage():
            return _assistant(message, origin, profile, model)


def _assistant(message: AssistantMessage, origin: str, profile: Profile, model: str) -> dict[str, Any]:
    own = message.opaque if message.opaque and message.origin == origin else {}
    opaque = {name: value for name, value in own.items() if profile.replays(name)}
    if "reasoning_details" in opaque:
        # The same thoughts once more, without their signatures.
        opaque.pop("reasoning", None)
    out: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    if thinking := opaque.pop("content_thinking", None):
        parts = [{"type": "thinking", "thinking": [{"type": "text", "text": thinking}]}]
        out["content"] = parts + ([{"type": "text", "text": message.text}] if message.text else [])
    opaque.pop("call_fields", None)
    if message.tool_calls:
        out["tool_calls"] = _calls(message, own.get("call_fields"), profile)
    elif out["content"] is None:
        out["content"] = ""
    if profile.thinks(model) and not opaque.get(str(profile.must_think)):
        opaque[str(profile.must_think)] = profile.filler
    return {**opaque, **out}


def _calls(message: AssistantMessage, fields: Any, profile: Profile) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = [
        {
            "id": call_id(c.wire_id, profile),
            "type": "function",
            "function": {"name": c.name, "arguments": arguments(c.args)},
        }
        for c in message.tool_calls
    ]
    if profile.replays("call_fields") and isinstance(fields, list) and len(fields) == len(calls):
        return [{**extra, **call} for call, extra in zip(calls, fields, strict=True)]
    if profile.foreign_call is not None:
        calls[0] = {**profile.foreign_call, **calls[0]}
    return calls


def call_id(wire_id: str, profile: Profile) -> str:
    """The id of a call in the form that the provider takes; the same id always becomes the same."""
    if profile.call_id == "any" or (len(wire_id) == _NINE and wire_id.isascii() and wire_id.isalnum()):
        return wire_id
    number = int.from_bytes(blake2b(wire_id.encode("utf-8", "replace"), digest_size=8).digest())
    letters = []
    for _ in range(_NINE):
        number, place = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[place])
    return "".join(letters)


def arguments(raw: str) -> str:
    """Servers parse the arguments in a history and fail on what is no JSON object, so a broken text is wrapped."""
    if wire.is_object(raw):
        return raw
    return wire.dumps({"invalid_arguments": raw}).decode() if raw.strip() else "{}"
