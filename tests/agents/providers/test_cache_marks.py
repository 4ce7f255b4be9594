"""Cache marks: set from scratch at send time, at most four, and never on an empty block."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from agents.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from agents.policy.compression import compressed
from agents.policy.repair import repair
from agents.ports import ChatRequest
from tests.agents.providers.scripted import Play, model_at, provider

ANSWER = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "text", "text": "ok"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


def marked(value: Any) -> Iterator[dict[str, Any]]:
    """Every block of a body that carries a mark."""
    if isinstance(value, dict):
        if "cache_control" in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from marked(one)


def rounds(count: int) -> list[Message]:
    messages: list[Message] = [UserMessage(text="task")]
    for n in range(count):
        asked = ToolCall(call=f"c{n}", wire_id=f"w{n}", name="read", args="{}")
        messages.append(AssistantMessage(text=f"step {n}", tool_calls=(asked,)))
        note = "\n\n[User note: careful]" if n in (1, 3) else ""
        messages.append(ToolMessage(call=f"c{n}", wire_id=f"w{n}", name="read", text=f"result {n}{note}"))
    return messages


@pytest.mark.case("A3-11")
async def test_no_request_of_a_long_run_carries_more_than_four_marks_or_one_on_an_empty_block() -> None:
    history = rounds(6)
    bodies = [history[: 1 + 2 * n] for n in range(7)]
    bodies += [compressed(history, to_index=9, summary="what was done"), repair([*history, UserMessage(text="  ")])[0]]
    async with provider(Play([orjson.dumps(ANSWER)])) as served:
        model = model_at(served.base_url, key="k", kind="anthropic")
        parts = {id(m): model.encode_message(m) for body in bodies for m in body}
        prompt = model.encode_message(SystemMessage(text="You are careful."))
        for body in bodies:
            request = ChatRequest(parts=[prompt, *(parts[id(m)] for m in body)], tools=None)
            await model.ask(request, lambda text: None)
        sent = [heard.json for heard in served.heard]
    assert len(sent) == len(bodies)
    for body in sent:
        marks = list(marked(body))
        assert 1 <= len(marks) <= 4
        assert all(str(block.get("text", block.get("content", ""))).strip() for block in marks)
    assert not any(b"cache_control" in part for part in parts.values())  # nothing of it is kept with the history
