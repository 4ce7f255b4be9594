"""Whether a body as it went over the wire is one that a strict chat completions server accepts."""

from typing import Any

from agents.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from tests.agents.policy.histories import complaint


def complaint_about(body: Any) -> str | None:
    """What strict servers would say about this request; None if they accept it."""
    return complaint([_message(one) for one in body["messages"]])


def _message(raw: Any) -> Message:
    match raw["role"]:
        case "system":
            return SystemMessage(text=raw["content"])
        case "tool":
            return ToolMessage(call=raw["tool_call_id"], wire_id=raw["tool_call_id"], name="x", text=raw["content"])
        case "assistant":
            calls = tuple(
                ToolCall(call=c["id"], wire_id=c["id"], name=c["function"]["name"], args=c["function"]["arguments"])
                for c in raw.get("tool_calls", ())
            )
            return AssistantMessage(text=raw.get("content") or "", tool_calls=calls)
        case _:
            return UserMessage(text=raw["content"])
