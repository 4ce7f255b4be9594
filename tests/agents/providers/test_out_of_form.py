"""Answers out of form: said twice, in an older form, or with an error where no error should be."""

import pytest

from agents.errors import ModelError
from tests.agents.providers.scripted import DONE, answer_to, chunk, event

BOTH = [{"index": 0, "id": "a", "function": {"name": "pay", "arguments": '{"n":1}'}}]


async def test_a_call_told_twice_in_the_new_and_the_old_form_is_one_call() -> None:
    legacy = {"name": "pay", "arguments": '{"n":1}'}
    together = chunk({"tool_calls": BOTH, "function_call": legacy}) + chunk({}, "tool_calls") + DONE
    behind = chunk({"tool_calls": BOTH}) + chunk({"function_call": legacy}, "tool_calls") + DONE
    for stream in (together, behind):
        answer = await answer_to(stream)
        assert [(c.name, c.args) for c in answer.message.tool_calls] == [("pay", '{"n":1}')]


async def test_a_message_behind_its_pieces_is_not_said_again_but_a_new_call_in_it_counts() -> None:
    message = {"role": "assistant", "content": "hello", "tool_calls": BOTH}
    last = event({"choices": [{"index": 0, "delta": {}, "message": message, "finish_reason": "tool_calls"}]})
    answer = await answer_to(chunk({"content": "hel"}) + chunk({"content": "lo"}) + last + DONE)
    assert answer.message.text == "hello"
    assert [c.name for c in answer.message.tool_calls] == ["pay"]


async def test_a_message_in_a_stream_that_goes_on_ends_nothing() -> None:
    pieces = [event({"choices": [{"message": {"content": text}, "finish_reason": None}]}) for text in ("a", "b")]
    assert (await answer_to(*pieces, DONE)).message.text == "ab"
    with pytest.raises(ModelError) as caught:
        await answer_to(*pieces)
    assert "truncated" in caught.value.message


@pytest.mark.parametrize("index", ["0", 1, None])
async def test_the_only_choice_is_heard_whatever_its_number(index: object) -> None:
    one = event({"choices": [{"index": index, "delta": {"content": "yes"}, "finish_reason": "stop"}]})
    assert (await answer_to(one + DONE)).message.text == "yes"


async def test_a_refusal_among_the_parts_of_content_is_a_refusal() -> None:
    with pytest.raises(ModelError) as caught:
        await answer_to(chunk({"content": [{"type": "refusal", "refusal": "I will not"}]}, "stop") + DONE)
    assert caught.value.kind == "content_policy"


@pytest.mark.parametrize(
    ("stray", "kind"),
    [
        (b'{"error":{"message":"upstream gave up","code":429}}\n\n', "rate_limit"),
        (b'error: {"message":"upstream gave up"}\n\n', "server_error"),
        (b"event: Error\ndata: upstream gave up\n\n", "server_error"),
    ],
)
@pytest.mark.parametrize("before", [b"", chunk({"content": "half"})])
@pytest.mark.parametrize("after", [b"", DONE])
async def test_an_error_outside_of_the_form_of_the_stream_is_an_error(
    stray: bytes, kind: str, before: bytes, after: bytes
) -> None:
    with pytest.raises(ModelError) as caught:
        await answer_to(before + stray + after)
    assert (caught.value.kind, "upstream gave up" in caught.value.message) == (kind, True)
