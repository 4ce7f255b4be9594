"""Chat completions: what is sent, what is kept and given back, what it cost."""

import json
from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.errors import ModelError
from agents.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, Usage, UserMessage
from agents.ports import ChatAnswer, ChatModel, ChatRequest, ToolSpec
from agents.providers import connect
from agents.providers.completion import CompletionFold
from agents.providers.sse import SseDecoder
from agents.spec import ModelSpec
from tests.agents.providers.scripted import DONE, Play, answer_to, ask, chunk, event, model_at, provider

HERE = "http://h/v1"
TOOL = ToolSpec(name="now", description="The time.", parameters={"type": "object", "properties": {}})


def model(name: str = "m", base_url: str = HERE) -> ChatModel:
    return connect(ModelSpec(model=name, base_url=base_url), None)


def call_of(args: str, name: str = "f") -> ToolCall:
    return ToolCall(call="c", wire_id="w", name=name, args=args)


def deltas(*all_: dict) -> bytes:
    return b"".join(chunk(delta) for delta in all_) + chunk({}, "stop") + DONE


# --- what is sent ---


def test_messages_take_the_form_of_the_wire() -> None:
    encode = model().encode_message
    assert orjson.loads(encode(SystemMessage(text="s"))) == {"role": "system", "content": "s"}
    assert orjson.loads(encode(UserMessage(text="u"))) == {"role": "user", "content": "u"}
    result = ToolMessage(call="c", wire_id="w", name="f", text="42")
    assert orjson.loads(encode(result)) == {"role": "tool", "tool_call_id": "w", "content": "42"}
    asked = AssistantMessage(text="", tool_calls=(call_of('{"a": 1}'),))
    function = {"name": "f", "arguments": '{"a": 1}'}
    wire_call = {"id": "w", "type": "function", "function": function}
    assert orjson.loads(encode(asked)) == {"role": "assistant", "content": None, "tool_calls": [wire_call]}


@pytest.mark.parametrize(
    ("raw", "sent"), [("", {}), ("{", {"invalid_arguments": "{"}), ("[1]", {"invalid_arguments": "[1]"})]
)
def test_arguments_that_are_no_object_are_sent_as_one(raw: str, sent: dict) -> None:
    encoded = orjson.loads(model().encode_message(AssistantMessage(text="x", tool_calls=(call_of(raw),))))
    assert orjson.loads(encoded["tool_calls"][0]["function"]["arguments"]) == sent


@given(st.text(st.characters(codec=None, categories=["Cs", "Cc", "L", "So"])))
def test_any_text_can_be_sent(text: str) -> None:
    encode = model().encode_message
    messages = [
        SystemMessage(text=text),
        UserMessage(text=text),
        AssistantMessage(text=text, tool_calls=(ToolCall(call="c", wire_id=text, name=text, args=text),)),
        ToolMessage(call="c", wire_id=text, name="f", text=text),
    ]
    for message in messages:
        assert isinstance(orjson.loads(encode(message)), dict)


async def test_a_request_asks_for_a_stream_with_usage_and_joins_its_parts() -> None:
    async with provider(Play([deltas({"content": "hi"})])) as served:
        here = model_at(served.base_url)
        parts = [here.encode_message(SystemMessage(text="s")), here.encode_message(UserMessage(text="u"))]
        request = ChatRequest(parts=parts, tools=here.encode_tools([TOOL]), max_output_tokens=9)
        await here.ask(request, lambda text: None)
        sent = served.heard[0].json
    assert sent["messages"] == [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    assert (sent["model"], sent["stream"], sent["stream_options"]) == ("m", True, {"include_usage": True})
    assert sent["tools"][0]["function"]["name"] == "now"
    assert sent["max_tokens"] == 9
    assert here.encode_tools([]) is None


# --- what is read ---


async def test_text_is_told_as_it_comes_and_kept_whole() -> None:
    heard: list[str] = []
    async with provider(Play([deltas({"content": "one "}, {"content": "two"})])) as served:
        answer = await ask(model_at(served.base_url), heard.append)
    assert "".join(heard) == answer.message.text == "one two"
    assert answer.ttft_ms is not None


async def test_text_with_nul_and_half_characters_comes_through_untouched() -> None:
    raw = b'data: {"choices":[{"index":0,"delta":{"content":"a\\u0000\\ud83d b"},"finish_reason":"stop"}]}\n\n'
    assert (await answer_to(raw + DONE)).message.text == "a\x00\ud83d b"


async def test_content_in_parts_is_text_and_its_thinking_goes_back_as_it_came() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm "}]}
    async with provider(
        Play([deltas({"content": [thinking]}, {"content": [thinking, {"type": "text", "text": "yes"}]})])
    ) as served:
        here = model_at(served.base_url)
        answer = await ask(here)
    assert answer.message.text == "yes"
    sent = orjson.loads(here.encode_message(answer.message))["content"]
    assert sent == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm hm "}]},
        {"type": "text", "text": "yes"},
    ]


async def test_a_legacy_function_call_is_a_tool_call() -> None:
    answer = await answer_to(
        deltas({"function_call": {"name": "f", "arguments": '{"a"'}}, {"function_call": {"arguments": ":1}"}})
    )
    assert [(c.name, c.args) for c in answer.message.tool_calls] == [("f", '{"a":1}')]


@pytest.mark.parametrize(
    "calls",
    [
        [
            {"id": "a", "function": {"name": "f", "arguments": {"a": 1}}},
            {"id": "a", "function": {"name": "f", "arguments": ""}},
        ],
        [{"function": {"name": "f", "arguments": '{"a":1}'}}, {"function": {"name": "f", "arguments": None}}],
        [{"id": "a", "name": "f", "arguments": '{"a":1}'}, None, {"id": 7, "function": {"name": "f"}}],
    ],
)
async def test_the_calls_of_a_whole_message_are_one_each(calls: list) -> None:
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    body = orjson.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    first, second = (await answer_to(body)).message.tool_calls
    assert [(first.name, first.args), (second.name, second.args)] == [("f", '{"a":1}'), ("f", "")]
    assert first.wire_id != second.wire_id
    assert second.wire_id


async def test_an_empty_object_that_announces_arguments_is_no_part_of_them() -> None:
    pieces = ["{}", '{"a"', ":1}"]
    stream = [{"tool_calls": [{"index": 0, "id": "k", "function": {"name": "f", "arguments": p}}]} for p in pieces]
    assert (await answer_to(deltas(*stream))).message.tool_calls[0].args == '{"a":1}'


async def test_a_complete_call_that_is_sent_again_is_one_call() -> None:
    again = {"tool_calls": [{"index": 0, "id": "k", "function": {"name": "f", "arguments": '{"a":1}'}}]}
    assert len((await answer_to(deltas(again, again))).message.tool_calls) == 1


async def test_only_the_first_choice_is_heard() -> None:
    both = event({"choices": [{"index": 1, "delta": {"content": "B"}}, {"index": 0, "delta": {"content": "A"}}]})
    assert (await answer_to(both + deltas())).message.text == "A"


@pytest.mark.parametrize(
    ("stream", "kind"),
    [
        (chunk({"content": "so"}, "content_filter"), "content_policy"),
        (deltas({"refusal": "I cannot."}), "content_policy"),
        (chunk({}, "insufficient_system_resource"), "overloaded"),
        (chunk({"content": "x"}, "network_error"), "server_error"),
        (deltas({"content": " \n"}), "malformed_response"),
        (deltas({"reasoning_content": "hm"}), "malformed_response"),
        (chunk({}, "length"), "malformed_response"),
    ],
)
async def test_an_answer_that_says_nothing_tells_why(stream: bytes, kind: str) -> None:
    with pytest.raises(ModelError) as caught:
        await answer_to(stream + DONE)
    assert caught.value.kind == kind


async def test_what_a_failed_attempt_used_is_booked() -> None:
    usage = {"prompt_tokens": 8, "completion_tokens": 3}
    with pytest.raises(ModelError) as caught:
        await answer_to(chunk({"content": "a"}, usage=usage) + event({"error": {"message": "gone"}}))
    assert caught.value.usage == Usage(input=8, output=3)


async def test_two_end_marks_and_what_follows_them_change_nothing() -> None:
    assert (await answer_to(deltas({"content": "a"}) + DONE + event({"error": "late"}))).message.text == "a"
    assert (
        await answer_to(b"data:[DONE]  \n\n".join([deltas({"content": "a"})[: -len(DONE)], b""]))
    ).message.text == "a"


async def test_events_that_no_blank_line_parts_are_read() -> None:
    stream = deltas({"content": "a"}, {"content": "b"}).replace(b"\n\n", b"\n")
    assert (await answer_to(stream)).message.text == "ab"


@given(st.lists(st.integers(0, 2000), max_size=30))
def test_any_chunking_of_a_stream_gives_the_same_answer(cuts: list[int]) -> None:
    calls = [{"index": 0, "id": "k", "function": {"name": "f", "arguments": '{"a":"京🙂"}'}}]
    usage = {"prompt_tokens": 8, "completion_tokens": 3}
    stream = deltas({"content": "é\u2028"}, {"reasoning": "hm"}, {"tool_calls": calls}) + event({"usage": usage})
    stream = stream.replace(b"\n", b"\r\n").replace(DONE, b"") + DONE
    fold, decoder = CompletionFold(), SseDecoder()
    edges = [0, *sorted(min(c, len(stream)) for c in cuts), len(stream)]
    for start, end in pairwise(edges):
        for name, data in decoder.feed(stream[start:end]):
            fold.event(name, data)
    (only,) = fold.calls.calls()
    assert (fold.text(), only.args, fold.kept(), fold.usage(), fold.ended) == (
        "é\u2028",
        '{"a":"京🙂"}',
        {"reasoning": "hm"},
        Usage(input=8, output=3),
        True,
    )


# --- what is kept and given back ---


async def reasoned() -> tuple[ChatAnswer, str]:
    signed = {
        "index": 0,
        "id": "k",
        "function": {"name": "f", "arguments": "{}"},
        "extra_content": {"g": {"thought_signature": "s"}},
    }
    details = [{"type": "reasoning.text", "index": 0, "text": "a", "signature": None}]
    more = [{"type": "reasoning.text", "index": 0, "text": "b", "signature": "sig"}]
    stream = deltas(
        {"reasoning_content": "think ", "reasoning_details": details},
        {"reasoning_content": "more", "reasoning_details": more},
        {"tool_calls": [signed], "obfuscation": "xyz"},
    )
    async with provider(Play([stream])) as served:
        return await ask(model_at(served.base_url)), served.base_url


async def test_opaque_fields_go_back_to_where_they_came_from() -> None:
    answer, base_url = await reasoned()
    sent = orjson.loads(model(base_url=base_url).encode_message(answer.message))
    assert sent["reasoning_content"] == "think more"
    assert sent["reasoning_details"] == [{"type": "reasoning.text", "index": 0, "text": "ab", "signature": "sig"}]
    assert sent["tool_calls"][0]["extra_content"] == {"g": {"thought_signature": "s"}}
    assert "obfuscation" not in sent


async def test_opaque_fields_go_nowhere_else() -> None:
    answer, base_url = await reasoned()
    for other in (
        model(),
        model("other", base_url),
        connect(ModelSpec(model="m", base_url=base_url, provider="anthropic"), None),
    ):
        assert b"think" not in other.encode_message(answer.message)
        assert b"sig" not in other.encode_message(answer.message)


async def test_opaque_fields_survive_the_log() -> None:
    answer, _ = await reasoned()
    assert json.loads(json.dumps(answer.message.opaque)) == answer.message.opaque


# --- what it cost ---


@pytest.mark.parametrize(
    ("reported", "told"),
    [
        (3.0000000000000004e-05, "0.00003"),
        (0.1 + 0.2, "0.3"),
        (0, "0"),
        (1.5e-7, "0.00000015"),
        ("0.0420", "0.042"),
        (12, "12"),
        ({"total_cost": 0.006}, "0.006"),
    ],
)
async def test_a_reported_cost_is_told_as_a_plain_decimal(reported: object, told: str) -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 1, "cost": reported}
    answer = await answer_to(chunk({"content": "a"}, "stop", usage=usage) + DONE)
    assert (answer.cost_usd, answer.cost_source) == (told, "reported")


@pytest.mark.parametrize("reported", [None, -1, "free", True, [], float("1e400")])
async def test_a_cost_that_is_none_is_unknown_and_never_zero(reported: object) -> None:
    body = json.dumps(
        {
            "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 1, "cost": reported},
        }
    )
    answer = await answer_to(b"data: " + body.encode() + b"\n\n" + DONE)
    assert (answer.cost_usd, answer.cost_source) == (None, "unknown")


async def test_a_price_from_the_table_is_used_where_no_cost_is_reported() -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100}
    async with provider(Play([chunk({"content": "a"}, "stop", usage=usage) + DONE])) as served:
        answer = await ask(model("tour", served.base_url))
    assert (answer.cost_usd, answer.cost_source) == ("0.00065", "price_table")
