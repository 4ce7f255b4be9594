"""The responses API: what is sent, what is kept and given back, and how its streams end."""

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.errors import ModelError
from agents.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, Usage, UserMessage
from agents.ports import ChatAnswer, ChatModel, ChatRequest, ToolSpec
from agents.providers import connect
from agents.providers.responses_fold import ResponseFold
from agents.providers.sse import SseDecoder
from agents.spec import ModelSpec
from tests.agents.providers.scripted import Play, answer_to, ask, model_at, provider, recorded

STREAMS = recorded("responses")
WHOLE = STREAMS["reasoning_and_tools"]
TOOL = ToolSpec(name="now", description="The time.", parameters={"type": "object", "properties": {}})
REFUSED = b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"


def told(fold: ResponseFold) -> tuple[object, ...]:
    calls = [(call.wire_id, call.name, call.args) for call in fold.calls()]
    return fold.text(), calls, fold.kept(), fold.usage(), fold.finish_reason, fold.finished, fold.written()


def folded(*pieces: bytes) -> tuple[object, ...]:
    fold, decoder = ResponseFold(), SseDecoder()
    heard = ""
    for piece in pieces:
        for name, data in decoder.feed(piece):
            fold.event(name, data)
        heard += fold.fresh_text()
    assert heard == fold.text()
    return told(fold)


async def answered(name: str) -> ChatAnswer:
    return await answer_to(STREAMS[name], kind="openai-responses")


async def failure(name: str) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await answered(name)
    return caught.value


def test_a_stream_says_the_same_wherever_it_is_split() -> None:
    expected = folded(WHOLE)
    assert all(folded(WHOLE[:at], WHOLE[at:]) == expected for at in range(0, len(WHOLE), 1))
    assert folded(*(WHOLE[at : at + 1] for at in range(len(WHOLE)))) == expected


@settings(max_examples=30)
@given(st.sampled_from(sorted(STREAMS)), st.lists(st.integers(1, 400), min_size=1, max_size=40))
def test_no_chunking_changes_how_a_stream_ends(name: str, sizes: list[int]) -> None:
    def end_of(*pieces: bytes) -> object:
        try:
            return folded(*pieces)
        except Exception as error:
            return str(error)

    stream, pieces, at = STREAMS[name], [], 0
    for size in sizes:
        pieces.append(stream[at : at + size])
        at += size
    assert end_of(*pieces, stream[at:]) == end_of(stream)


async def test_text_calls_and_usage_come_out_of_a_stream_over_the_wire() -> None:
    heard: list[str] = []
    async with provider(Play([WHOLE[i : i + 97] for i in range(0, len(WHOLE), 97)], hold=True)) as served:
        model = model_at(served.base_url, kind="openai-responses")
        answer = await ask(model, heard.append)
        assert served.heard[0].head.startswith(b"POST /v1/responses ")
    assert "".join(heard) == answer.message.text == "I look it up, naïvely."
    assert [(c.wire_id, c.name, c.args) for c in answer.message.tool_calls] == [
        ("call_a", "read_file", '{"path":"tides/май.txt"}'),
        ("call_b", "now", "{}"),
    ]
    assert answer.usage == Usage(input=464, output=120, cache_read=1536, reasoning=64)
    assert (answer.finish_reason, answer.cut) == ("tool_calls", False)


async def test_reasoning_goes_back_encrypted_in_its_place_and_without_an_id_that_leads_nowhere() -> None:
    async with provider(Play([WHOLE])) as served:
        model = model_at(served.base_url, kind="openai-responses")
        message = (await ask(model)).message
    items = orjson.loads(b"[" + model.encode_message(message) + b"]")
    assert [item.get("type", item.get("role")) for item in items] == [
        "reasoning", "assistant", "function_call", "function_call",
    ]  # fmt: skip
    assert items[0] == {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "**Reading the tide table** ⚓"}],
        "encrypted_content": "Z0FBQUFB",
    }
    assert items[1] == {"role": "assistant", "content": "I look it up, naïvely.", "phase": "commentary"}
    elsewhere = connect(ModelSpec(model="m", base_url="http://other/v1", provider="openai-responses"), None)
    assert b"reasoning" not in elsewhere.encode_message(message)
    azure = connect(ModelSpec(model="m", base_url="https://r.openai.azure.com", provider="openai-responses"), None)
    kept = AssistantMessage(
        text=message.text, tool_calls=message.tool_calls, opaque=message.opaque, origin=_origin(azure)
    )
    assert b'"id":"rs_1"' in azure.encode_message(kept)


def _origin(model: ChatModel) -> str:
    return str(model.origin)  # type: ignore[attr-defined]


async def test_a_history_that_was_repaired_keeps_its_reasoning_before_what_is_left() -> None:
    async with provider(Play([WHOLE])) as served:
        model = model_at(served.base_url, kind="openai-responses")
        message = (await ask(model)).message
    shorter = AssistantMessage(
        text="I look it up.", tool_calls=message.tool_calls[:1], opaque=message.opaque, origin=message.origin
    )
    items = orjson.loads(b"[" + model.encode_message(shorter) + b"]")
    assert [item.get("type", item.get("role")) for item in items] == ["reasoning", "assistant", "function_call"]


async def test_a_request_stores_nothing_and_asks_for_reasoning_it_can_give_back() -> None:
    async with provider(Play([WHOLE])) as served:
        model = model_at(served.base_url, key="k", kind="openai-responses", limit=500)
        call = ToolCall(call="c", wire_id="w", name="now", args="{")
        parts = [
            model.encode_message(message)
            for message in (
                SystemMessage(text="s"),
                UserMessage(text="u"),
                AssistantMessage(text=" ", tool_calls=(call,)),
                ToolMessage(call="c", wire_id="w", name="now", text="12:00"),
                AssistantMessage(text=" "),
            )
        ]
        await model.ask(ChatRequest(parts=parts, tools=model.encode_tools([TOOL])), lambda text: None)
        sent = served.heard[0].json
    assert (sent["store"], sent["stream"], sent["max_output_tokens"]) == (False, True, 500)
    assert sent["include"] == ["reasoning.encrypted_content"]
    assert sent["tools"][0] == {
        "type": "function", "name": "now", "description": "The time.", "parameters": TOOL.parameters, "strict": False,
    }  # fmt: skip
    assert sent["input"] == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        {"type": "function_call", "call_id": "w", "name": "now", "arguments": '{"invalid_arguments":"{"}'},
        {"type": "function_call_output", "call_id": "w", "output": "12:00"},
    ]
    assert "previous_response_id" not in sent


async def test_a_model_that_does_not_reason_is_not_asked_for_reasoning_again() -> None:
    no = orjson.dumps({"error": {"message": "Encrypted content is not supported with this model.", "param": "include"}})
    async with provider(Play([no], head=REFUSED), Play([WHOLE])) as served:
        model = model_at(served.base_url, kind="openai-responses")
        await ask(model)
        await ask(model)
        asked = ["include" in heard.json for heard in served.heard]
    assert asked == [True, False, False]


async def test_an_answer_cut_at_its_cap_is_cut_and_one_that_was_filtered_is_none() -> None:
    answer = await answered("incomplete")
    assert (answer.cut, answer.finish_reason, answer.message.text) == (True, "length", "Day on")
    assert (await failure("filtered")).kind == "content_policy"


async def test_a_failed_response_is_judged_by_the_error_inside_it() -> None:
    error = await failure("failed")
    assert (error.kind, error.fault and error.fault.retry_after_s) == ("rate_limit", 7.0)
    assert (await failure("error")).kind == "server_error"
    assert (await failure("overloaded")).kind == "overloaded"


async def test_a_refusal_is_told_as_one_with_its_words_and_its_usage() -> None:
    error = await failure("refusal")
    assert (error.kind, "I will not help." in error.message) == ("content_policy", True)
    assert error.usage == Usage(input=30, output=6)


async def test_a_server_that_streams_no_pieces_is_heard_at_its_end() -> None:
    answer = await answered("only_the_end")
    assert (answer.message.text, [c.name for c in answer.message.tool_calls]) == ("All at once.", ["now"])


async def test_a_stream_without_its_last_event_is_no_answer() -> None:
    assert (await failure("without_an_end")).kind == "malformed_response"
    with pytest.raises(ModelError):
        await answer_to(STREAMS["without_an_end"] + b"data: [DONE]\n\n", kind="openai-responses")


async def test_a_whole_response_in_place_of_a_stream_is_an_answer() -> None:
    body = WHOLE[WHOLE.rindex(b'{"id":"resp_1"') : WHOLE.rindex(b"}")]
    answer = await answer_to(body, kind="openai-responses")
    assert answer.message.text == "I look it up, naïvely."
    assert len(answer.message.tool_calls) == 2


async def test_chunks_of_the_other_wire_are_told_apart() -> None:
    chunk = b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}\n\n'
    with pytest.raises(ModelError, match="another API"):
        await answer_to(chunk, kind="openai-responses")


@pytest.mark.parametrize("change", ["no places", "other ids"])
def test_servers_that_leave_out_places_or_change_ids_double_nothing(change: str) -> None:
    """What the last event says once more is known again."""
    fold = ResponseFold()
    for number, (name, data) in enumerate(SseDecoder().feed(WHOLE)):
        value = orjson.loads(data)
        if change == "no places":
            value.pop("output_index", None)
        elif "item_id" in value:
            value["item_id"] = f"other{number}"
        elif "item" in value:
            value["item"]["id"] = f"other{number}"
        fold.event(name, orjson.dumps(value))
    assert fold.text() == "I look it up, naïvely."
    assert [(c.wire_id, c.args) for c in fold.calls()] == [("call_a", '{"path":"tides/май.txt"}'), ("call_b", "{}")]
    assert [sorted(entry) for entry in (fold.kept() or {})["items"]] == [
        ["reasoning"], ["phase", "text"], ["call"], ["call"],
    ]  # fmt: skip
