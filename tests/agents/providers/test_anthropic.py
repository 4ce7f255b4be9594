"""The messages API: what is sent, and what is kept and given back."""

import orjson
import pytest

from agents.errors import ModelError
from agents.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, Usage, UserMessage
from agents.ports import ChatRequest, ToolSpec
from tests.agents.providers.scripted import Heard, Play, answer_to, ask, event, model_at, provider

WHOLE = {
    "type": "message",
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "text", "text": "hello"},
        {"type": "tool_use", "id": "t", "name": "now", "input": {"zone": "UTC"}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 5, "output_tokens": 7},
}
TOOL = ToolSpec(name="now", description="The time.", parameters={"type": "object", "properties": {}})


async def sent_for(*messages: Message) -> Heard:
    async with provider(Play([orjson.dumps(WHOLE)])) as served:
        model = model_at(served.base_url, key="k", kind="anthropic")
        parts = [model.encode_message(message) for message in messages]
        await model.ask(ChatRequest(parts=parts, tools=model.encode_tools([TOOL])), lambda text: None)
        return served.heard[0]


def call(number: int, args: str) -> ToolCall:
    return ToolCall(call=f"c{number}", wire_id=f"w{number}", name="now", args=args)


async def test_roles_alternate_and_results_of_a_batch_share_a_message() -> None:
    heard = await sent_for(
        SystemMessage(text="s"),
        UserMessage(text="u"),
        UserMessage(text=" "),
        AssistantMessage(text="", tool_calls=(call(1, '{"zone":"UTC"}'), call(2, "{"))),
        ToolMessage(call="c1", wire_id="w1", name="now", text="12:00"),
        ToolMessage(call="c2", wire_id="w2", name="now", text=""),
        UserMessage(text="go on"),
    )
    assert b"\r\nx-api-key: k\r\n" in heard.head
    assert heard.head.startswith(b"POST /v1/messages ")
    sent = heard.json
    mark = {"cache_control": {"type": "ephemeral"}}
    assert sent["system"] == [{"type": "text", "text": "s", **mark}]
    assert [message["role"] for message in sent["messages"]] == ["user", "assistant", "user"]
    assert [block["input"] for block in sent["messages"][1]["content"]] == [
        {"zone": "UTC"},
        {"invalid_arguments": "{"},
    ]
    first, second, note = sent["messages"][2]["content"]
    assert (first["tool_use_id"], first["content"]) == ("w1", "12:00")
    assert (second["tool_use_id"], second["content"]) == ("w2", "(no output)")
    assert note == {"type": "text", "text": "go on", **mark}
    assert sent["tools"][0]["input_schema"] == {"type": "object", "properties": {}}
    assert sent["max_tokens"] > 0


async def test_a_whole_message_is_an_answer_and_its_thinking_goes_back_first() -> None:
    heard: list[str] = []
    async with provider(Play([orjson.dumps(WHOLE)])) as served:
        model = model_at(served.base_url, kind="anthropic")
        answer = await ask(model, heard.append)
    assert (answer.message.text, heard, answer.usage) == ("hello", ["hello"], Usage(input=5, output=7))
    assert [(c.name, c.args) for c in answer.message.tool_calls] == [("now", '{"zone":"UTC"}')]
    part = model.encode_message(answer.message)
    assert part[:1] == b"a"
    blocks = orjson.loads(b"[" + part[1:] + b"]")
    assert blocks[0] == {"type": "thinking", "thinking": "hm", "signature": "sig"}
    assert [block["type"] for block in blocks] == ["thinking", "text", "tool_use"]
    elsewhere = model_at("http://elsewhere/v1", kind="anthropic").encode_message(answer.message)
    assert b"thinking" not in elsewhere


@pytest.mark.parametrize(
    ("reason", "kind"),
    [("refusal", "content_policy"), ("model_context_window_exceeded", "context_overflow")],
)
async def test_a_stop_reason_that_is_a_failure_is_one(reason: str, kind: str) -> None:
    with pytest.raises(ModelError) as caught:
        await answer_to(orjson.dumps({**WHOLE, "stop_reason": reason}), kind="anthropic")
    assert (caught.value.kind, caught.value.usage) == (kind, Usage(input=5, output=7))


async def test_an_answer_cut_at_the_limit_is_marked_as_cut() -> None:
    assert (await answer_to(orjson.dumps({**WHOLE, "stop_reason": "max_tokens"}), kind="anthropic")).cut


async def test_an_end_mark_behind_half_of_a_call_makes_it_no_whole_one() -> None:
    block = {"type": "tool_use", "id": "t", "name": "now", "input": {}}
    half = {"type": "input_json_delta", "partial_json": '{"zone'}
    pieces = [
        event({"type": "content_block_start", "index": 0, "content_block": block}),
        event({"type": "content_block_delta", "index": 0, "delta": half}),
    ]
    end = event({"type": "message_stop"})
    with pytest.raises(ModelError) as caught:
        await answer_to(*pieces, end, kind="anthropic")
    assert caught.value.kind == "malformed_response"
    assert [c.args for c in (await answer_to(pieces[0], end, kind="anthropic")).message.tool_calls] == ["{}"]
