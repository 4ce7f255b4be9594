"""Streams of the messages API in their recorded shape: thinking, calls, pings, overloads, refusals, pauses."""

from dataclasses import replace

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.errors import ModelError, spent_by
from agents.messages import Usage
from agents.ports import ChatRequest
from agents.providers.blocks import MessageFold
from agents.providers.sse import SseDecoder
from tests.agents.providers.scripted import Play, answer_to, ask, model_at, provider, recorded

STREAMS = recorded("messages")
WHOLE = STREAMS["thinking_and_tools"]


def folded(*pieces: bytes) -> tuple[object, ...]:
    fold, decoder = MessageFold(), SseDecoder()
    heard = ""
    for piece in pieces:
        for name, data in decoder.feed(piece):
            fold.event(name, data)
        heard += fold.fresh_text()
    assert heard == fold.text()
    calls = [(call.wire_id, call.name, call.args) for call in fold.calls()]
    return fold.text(), calls, fold.kept(), fold.usage(), fold.finish_reason, fold.ended, fold.progress


async def failure(name: str) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await answer_to(STREAMS[name], kind="anthropic")
    return caught.value


def test_a_stream_says_the_same_wherever_it_is_split() -> None:
    expected = folded(WHOLE)
    assert all(folded(WHOLE[:at], WHOLE[at:]) == expected for at in range(len(WHOLE)))
    assert folded(*(WHOLE[at : at + 1] for at in range(len(WHOLE)))) == expected


@settings(max_examples=30)
@given(st.sampled_from(sorted(STREAMS)), st.lists(st.integers(1, 300), min_size=1, max_size=40))
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


async def test_thinking_goes_back_with_its_signatures_in_its_place_among_text_and_calls() -> None:
    async with provider(Play([WHOLE])) as served:
        model = model_at(served.base_url, kind="anthropic")
        answer = await ask(model)
    assert answer.usage == Usage(input=320, output=96, cache_read=1024, cache_write=64)
    blocks = orjson.loads(b"[" + model.encode_message(answer.message)[1:] + b"]")
    assert blocks == [
        {"type": "thinking", "thinking": "The tide table — harbour first ⚓", "signature": "c2lnLTE="},
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
        {"type": "text", "text": "I look it up, naïvely."},
        {"type": "tool_use", "id": "toolu_a", "name": "read_file", "input": {"path": "tides/май.txt"}},
        {"type": "thinking", "thinking": "and the clock", "signature": "c2lnLTI="},
        {"type": "tool_use", "id": "toolu_b", "name": "now", "input": {}},
    ]


async def test_thinking_comes_first_where_the_rest_of_a_message_was_changed() -> None:
    async with provider(Play([WHOLE])) as served:
        model = model_at(served.base_url, kind="anthropic")
        message = (await ask(model)).message
    for changed in (replace(message, text="Shorter."), replace(message, tool_calls=message.tool_calls[:1])):
        blocks = orjson.loads(b"[" + model.encode_message(changed)[1:] + b"]")
        kinds = [block["type"] for block in blocks]
        assert kinds[:3] == ["thinking", "redacted_thinking", "thinking"]
        assert kinds[3:] == ["text", *["tool_use"] * len(changed.tool_calls)]


async def test_pings_are_no_progress_and_no_text() -> None:
    ping = b'event: ping\ndata: {"type": "ping"}\n\n'
    fold, decoder = MessageFold(), SseDecoder()
    for name, data in decoder.feed(ping * 40):
        fold.event(name, data)
    assert (fold.progress, fold.finished, fold.fresh_text()) == (0, False, "")


async def test_an_overload_in_the_middle_is_an_overload_and_what_was_written_is_counted() -> None:
    error = await failure("overloaded")
    spent = spent_by(error)
    assert error.kind == "overloaded"
    assert spent is not None
    assert spent.estimated
    assert spent.usage is not None
    assert (spent.usage.input, 1 < spent.usage.output < 20) == (40, True)


async def test_a_refusal_is_one_whatever_was_said_before_it_and_its_usage_is_measured() -> None:
    error = await failure("refusal")
    spent = spent_by(error)
    assert error.kind == "content_policy"
    assert (spent and spent.usage, spent and spent.estimated) == (Usage(input=50, output=4), False)


async def test_half_a_call_of_a_cut_message_is_a_cut_answer() -> None:
    answer = await answer_to(STREAMS["cut"], kind="anthropic")
    assert (answer.cut, answer.message.tool_calls[0].name) == (True, "write_file")


async def test_a_paused_turn_is_gone_on_with_and_both_halves_are_one_answer_and_paid() -> None:
    heard: list[str] = []
    async with provider(Play([STREAMS["paused"]]), Play([STREAMS["resumed"]])) as served:
        model = model_at(served.base_url, kind="anthropic")
        request = ChatRequest(parts=[b'u{"type":"text","text":"go"}'], tools=None)
        answer = await model.ask(request, heard.append)
        second = served.heard[1].json["messages"]
    assert answer.message.text == "".join(heard) == "Half of it. The other half."
    assert answer.usage == Usage(input=41, output=28)
    assert [message["role"] for message in second] == ["user", "assistant"]
    assert second[1]["content"] == [
        {"type": "thinking", "thinking": "long work", "signature": "c2ln"},
        {"type": "text", "text": "Half of it. "},
    ]
    assert "cache_control" in second[0]["content"][-1]


async def test_a_turn_that_is_paused_for_ever_is_no_answer() -> None:
    async with provider(Play([STREAMS["paused"]])) as served:
        with pytest.raises(ModelError, match="paused") as caught:
            await ask(model_at(served.base_url, kind="anthropic"))
        assert len(served.heard) == 6
    spent = spent_by(caught.value)
    assert spent is not None
    assert spent.usage == Usage(input=60, output=120)
