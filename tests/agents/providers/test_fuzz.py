"""Whatever JSON a server makes up, it is folded or refused; nothing else ever comes out of a fold."""

from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.errors import WireEvidence
from agents.policy.faults import classify, sample_of
from agents.providers.assemble import Unattributable
from agents.providers.blocks import MessageFold
from agents.providers.completion import CompletionFold
from agents.providers.responses_fold import ResponseFold
from agents.providers.stream import Broken, Fold

ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 600) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["text", "type", "id", "x"]), inner),
    max_leaves=4,
)


def shaped(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An object in which each field is missing, right or, now and then, anything."""
    mostly = {key: st.one_of(value, value, value, ODD) for key, value in fields.items()}
    made = st.fixed_dictionaries({}, optional=mostly)
    return st.one_of(made, made, made, made, ODD)


NAME = st.sampled_from(["", "f", "fg"])
FUNCTION = shaped(name=NAME, arguments=st.sampled_from(["", "{", "{}", '{"a":1}']), input=ODD)
CALL = shaped(index=st.integers(0, 1), id=st.sampled_from(["", "a", "b"]), function=FUNCTION, extra_content=ODD)
DELTA = shaped(
    content=st.text(max_size=2), tool_calls=st.lists(CALL, max_size=3), reasoning_content=ODD, function_call=FUNCTION,
    refusal=ODD, reasoning_details=st.lists(shaped(index=ODD, type=ODD, text=ODD)),
)  # fmt: skip
USAGE = shaped(prompt_tokens=ODD, completion_tokens=ODD, prompt_tokens_details=shaped(cached_tokens=ODD), cost=ODD)
REASON = st.sampled_from(["stop", "length", "tool_calls", "", "error", "content_filter"])
CHOICE = shaped(index=ODD, delta=DELTA, message=DELTA, finish_reason=REASON, usage=USAGE, error=ODD)
CHUNK = shaped(choices=st.lists(CHOICE, max_size=2), usage=USAGE, error=ODD, detail=ODD, base_resp=ODD, type=ODD)

BLOCK = shaped(
    type=st.sampled_from(["text", "tool_use", "thinking", "redacted_thinking"]), text=ODD, id=ODD, name=NAME, input=ODD
)
PART = shaped(
    type=st.sampled_from(["text_delta", "input_json_delta", "thinking_delta", "signature_delta"]),
    text=ODD, partial_json=ODD, thinking=ODD, signature=ODD, stop_reason=st.sampled_from(["end_turn", "refusal"]),
)  # fmt: skip
KINDS = ["message_start", "content_block_start", "content_block_delta", "message_delta", "message_stop", "message"]
EVENT = shaped(
    type=st.sampled_from(KINDS), index=st.integers(0, 1), content_block=BLOCK, delta=PART, usage=USAGE,
    message=shaped(usage=USAGE), content=st.lists(BLOCK, max_size=2), stop_reason=ODD,
)  # fmt: skip


def feed(fold: Fold, values: list[Any]) -> None:
    for value in values:
        data = orjson.dumps(value)
        try:
            fold.event("", data)
        except Broken as broken:
            classify(sample_of(WireEvidence(status=200, body=broken.body.decode())))
        try:
            fold.document(value, data)
        except Broken:
            pass
    fold.usage()
    assert isinstance(fold.fresh_text(), str)
    assert isinstance(fold.written(), str)
    assert not fold.counted or fold.usage() is not None
    assert all(isinstance(note, str) for note in fold.notes())


@settings(max_examples=150)
@given(st.lists(CHUNK, max_size=4))
def test_any_chunk_is_folded_or_refused(values: list[Any]) -> None:
    fold = CompletionFold()
    feed(fold, values)
    orjson.dumps(fold.kept())
    fold.cut(5)
    cost = fold.cost()
    assert cost is None or "e" not in cost.lower()
    try:
        calls = fold.calls.calls()
    except Unattributable:
        return
    assert len({call.wire_id for call in calls}) == len(calls) == len(fold.calls)
    assert all(call.name for call in calls)


@settings(max_examples=150)
@given(st.lists(EVENT, max_size=5))
def test_any_event_is_folded_or_refused(values: list[Any]) -> None:
    fold = MessageFold()
    feed(fold, values)
    orjson.dumps(fold.kept())
    try:
        calls = fold.calls()
    except Broken:
        return
    assert len({call.wire_id for call in calls}) == len(calls)


ITEM = shaped(
    type=st.sampled_from(["message", "function_call", "reasoning", "web_search_call"]), id=st.sampled_from(["", "a"]),
    call_id=ODD, name=NAME, arguments=st.sampled_from(["", "{", "{}"]), content=st.lists(BLOCK, max_size=2),
    encrypted_content=ODD, phase=ODD, summary=ODD,
)  # fmt: skip
RESPONSE = shaped(
    output=st.lists(ITEM, max_size=2), usage=USAGE, error=ODD, status=st.sampled_from(["completed", "failed"]),
    incomplete_details=shaped(reason=ODD),
)  # fmt: skip
TYPES = [
    "response.output_item.added", "response.output_item.done", "response.output_text.delta",
    "response.output_text.done",
    "response.function_call_arguments.delta", "response.function_call_arguments.done", "response.refusal.delta",
    "response.reasoning_summary_text.delta", "response.completed", "response.incomplete", "response.failed", "error",
]  # fmt: skip
STEP = shaped(
    type=st.sampled_from(TYPES), output_index=st.integers(0, 1), item_id=st.sampled_from(["", "a"]), item=ITEM,
    delta=st.text(max_size=2), text=ODD, arguments=ODD, response=RESPONSE, output=st.lists(ITEM, max_size=2), error=ODD,
)  # fmt: skip


@settings(max_examples=150)
@given(st.lists(STEP, max_size=5))
def test_any_step_of_a_response_is_folded_or_refused(values: list[Any]) -> None:
    fold = ResponseFold()
    feed(fold, values)
    orjson.dumps(fold.kept())
    cost = fold.cost()
    assert cost is None or "e" not in cost.lower()
    try:
        calls = fold.calls()
    except Broken:
        return
    assert len({call.wire_id for call in calls}) == len(calls)
