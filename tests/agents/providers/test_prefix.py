"""Provider caches hit on equal beginnings: over a long run no byte of what was sent before ever changes."""

from itertools import pairwise

import orjson
import pytest

from agents.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from agents.ports import ChatModel, ChatRequest, ToolSpec
from agents.providers import NAMES, connect
from agents.spec import ModelSpec
from agents.tools.registry import default_tools
from tests.agents.providers.scripted import DONE, Play, chunk, provider, recorded

ANSWERS = {
    "anthropic": recorded("messages")["thinking_and_tools"],
    "openai-responses": recorded("responses")["reasoning_and_tools"],
}
CHAT = (
    chunk({"reasoning_content": "first the harbour", "content": "I look it up, naïvely."})
    + chunk({"tool_calls": [{"index": 0, "id": "call_a", "function": {"name": "read_file", "arguments": "{}"}}]})
    + chunk({}, "tool_calls")
    + DONE
)
MARK = b',"cache_control":{"type":"ephemeral"}}'
PROMPT = SystemMessage(text="You are careful. ⚓ Notes: tides first.")
TURNS = 12


def tools() -> list[ToolSpec]:
    """The tools as a fresh process builds them."""
    return [tool.spec for tool in default_tools()]


async def turn(model: ChatModel, parts: list[bytes], history: list[Message], number: int) -> None:
    """Ask, and add the answer, its results and now and then a word of a person."""
    answer = await model.ask(ChatRequest(parts=parts, tools=model.encode_tools(tools())), lambda text: None)
    said = answer.message
    # Wire ids are unique over the history, as the loop makes them.
    calls = tuple(
        ToolCall(call=f"{number}.{place}", wire_id=f"{call.wire_id}_{number}", name=call.name, args=call.args)
        for place, call in enumerate(said.tool_calls)
    )
    news: list[Message] = [
        AssistantMessage(text=said.text, tool_calls=calls, opaque=said.opaque, origin=said.origin),
        *(ToolMessage(call=c.call, wire_id=c.wire_id, name=c.name, text=f"result {number}") for c in calls),
    ]
    if number % 4 == 3:
        news.append(UserMessage(text=f"[User note: mind the rocks, {number}]"))
    history += news
    parts += [model.encode_message(message) for message in news]


def unmarked(body: bytes) -> bytes:
    """Marks say where a cache may end; they are no part of what it holds."""
    return body.replace(MARK, b"}")


def beginning(body: bytes) -> bytes:
    """A request without its end: what the next one has to begin with."""
    text = unmarked(body)
    assert text.endswith(b"]}")
    return text[:-2].removesuffix(b"]}")


@pytest.mark.parametrize("kind", sorted(NAMES))
async def test_each_request_of_a_long_run_begins_with_the_one_before_it(kind: str) -> None:
    async with provider(Play([ANSWERS.get(kind, CHAT)])) as served:
        spec = ModelSpec(model="m", base_url=served.base_url, provider=kind, max_output_tokens=500)
        model = connect(spec, "k")
        history: list[Message] = [UserMessage(text="Chart the harbour.")]
        parts = [model.encode_message(PROMPT), model.encode_message(history[0])]
        for number in range(TURNS):
            await turn(model, parts, history, number)
        # A worker that takes the run over has only its log: what it builds from there must be the same bytes.
        resumed = connect(spec, "k")
        again = [resumed.encode_message(message) for message in (PROMPT, *history)]
        await resumed.ask(ChatRequest(parts=again, tools=resumed.encode_tools(tools())), lambda text: None)
        bodies = [heard.body for heard in served.heard]
    assert again == parts
    assert len(bodies) == TURNS + 1
    for earlier, later in pairwise(bodies):
        assert unmarked(later).startswith(beginning(earlier))
        assert len(later) > len(earlier)
    assert b"read_file" in beginning(bodies[0])
    assert orjson.loads(bodies[-1])["tools"] == orjson.loads(bodies[0])["tools"]


@pytest.mark.parametrize("kind", ["anthropic", "openai", "openai-responses"])
def test_prompt_and_tools_are_the_same_bytes_in_every_model_of_a_kind(kind: str) -> None:
    spec = ModelSpec(model="m", base_url="http://127.0.0.1/v1", provider=kind)
    one, two = connect(spec, None), connect(spec, "k")
    assert one.encode_tools(tools()) == two.encode_tools(tools())
    assert one.encode_message(PROMPT) == two.encode_message(PROMPT)
