"""What attempts have cost: cached and reasoning tokens, streams that broke off, and what nobody counted."""

import asyncio
from decimal import Decimal
from pathlib import Path

import orjson
import pytest

from agents.errors import ModelError, Spent, spent_by
from agents.messages import Usage
from agents.policy.budgets import text_tokens
from agents.ports import ChatModel, ChatRequest
from agents.providers import Stalls, connect
from agents.providers.prices import flat
from agents.providers.usage import anthropic_usage, openai_usage, read_openai
from agents.spec import ModelSpec
from tests.agents.providers.scripted import DONE, Play, chunk, event, provider

PRICE = flat("3.00", "15.00", "0.30", "3.75", version="table 1")
TASK = "Chart the harbour. " * 20
PROMPT = [orjson.dumps({"role": "user", "content": TASK})]


@pytest.fixture(autouse=True)
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model `m` has that price, wherever it is."""
    path = tmp_path / "models.toml"
    rates = 'input = "3.00", output = "15.00", cache_read = "0.30", cache_write = "3.75"'
    path.write_text(f'[[model]]\nname = "m"\nversion = "table 1"\nprice = {{ {rates} }}\n')
    monkeypatch.setenv("MODEL_CATALOG", str(path))


def model_at(base_url: str, *, name: str = "m", kind: str = "openai", stalls: Stalls | None = None) -> ChatModel:
    return connect(ModelSpec(model=name, base_url=base_url, provider=kind), None, stalls=stalls or Stalls(connect_s=5))


async def failed(model: ChatModel) -> Spent:
    with pytest.raises(ModelError) as caught:
        await model.ask(ChatRequest(parts=PROMPT, tools=None), lambda text: None)
    spent = spent_by(caught.value)
    assert spent is not None
    assert caught.value.usage == spent.usage
    return spent


async def interrupted(model: ChatModel, at_text: int) -> Spent:
    """What is told of an attempt that is cancelled once so much text has come."""
    heard: list[str] = []
    enough = asyncio.Event()

    def on_text(piece: str) -> None:
        heard.append(piece)
        if len("".join(heard)) >= at_text:
            enough.set()

    asking = asyncio.ensure_future(model.ask(ChatRequest(parts=PROMPT, tools=None), on_text))
    await asyncio.wait_for(enough.wait(), 10)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await asking
    spent = spent_by(caught.value)
    assert spent is not None
    return spent


# --- counted ---


@pytest.mark.case("A7-01")
def test_cached_tokens_are_charged_once_and_at_their_own_price() -> None:
    told = {"prompt_tokens": 2000, "completion_tokens": 100, "total_tokens": 2100}
    inside = openai_usage({**told, "prompt_tokens_details": {"cached_tokens": 1500}})
    beside = anthropic_usage(
        {
            "input_tokens": 500,
            "cache_read_input_tokens": 1500,
            "cache_creation_input_tokens": 300,
            "output_tokens": 100,
        }
    )
    assert inside == Usage(input=500, cache_read=1500, output=100)
    assert beside == Usage(input=500, cache_read=1500, cache_write=300, output=100)
    assert (PRICE.of(inside), PRICE.of(beside)) == ("0.00345", "0.004575")


@pytest.mark.case("A7-01")
def test_more_cached_tokens_than_the_prompt_holds_leave_no_fresh_ones_and_a_mark() -> None:
    raw = {"prompt_tokens": 2000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 2500}}
    usage, notes = read_openai(raw)
    assert usage == Usage(input=0, cache_read=2000, output=100)
    assert "cache_exceeds_prompt" in notes


@pytest.mark.case("A7-01")
def test_a_gateway_that_counts_the_cache_beside_the_prompt_is_known_by_its_total() -> None:
    told = {"prompt_tokens": 500, "completion_tokens": 100, "total_tokens": 2100}
    raw = {**told, "prompt_tokens_details": {"cached_tokens": 1500}}
    assert read_openai(raw) == (Usage(input=500, cache_read=1500, output=100), ())


@pytest.mark.case("A7-02")
def test_the_total_decides_whether_reasoning_is_inside_the_output_or_beside_it() -> None:
    told = {"prompt_tokens": 2008, "completion_tokens": 266, "total_tokens": 2274}
    inside = {**told, "completion_tokens_details": {"reasoning_tokens": 261}}
    assert read_openai(inside) == (Usage(input=2008, output=266, reasoning=261), ())
    native = {"promptTokenCount": 64, "candidatesTokenCount": 135, "thoughtsTokenCount": 78, "totalTokenCount": 277}
    assert read_openai(native) == (Usage(input=64, output=213, reasoning=78), ())
    unnamed = {"prompt_tokens": 64, "completion_tokens": 135, "total_tokens": 277}
    assert read_openai(unnamed) == (Usage(input=64, output=213, reasoning=78), ("reasoning_by_total",))


@pytest.mark.case("A7-02")
def test_a_total_that_fits_no_rule_is_noted_and_changes_no_count() -> None:
    details = {"completion_tokens_details": {"reasoning_tokens": 5}}
    for total in (10, 9999, 10**11):
        usage, notes = read_openai({"prompt_tokens": 20, "completion_tokens": 7, "total_tokens": total, **details})
        assert (usage, notes) == (Usage(input=20, output=7, reasoning=5), ("total_mismatch",))


@pytest.mark.case("A7-02")
async def test_a_count_without_total_and_details_says_that_the_split_is_unknown() -> None:
    usage = {"prompt_tokens": 20, "completion_tokens": 7}
    stream = chunk({"content": "hi"}, "stop") + event({"choices": [], "usage": usage}) + DONE
    async with provider(Play([stream])) as served:
        answer = await model_at(served.base_url).ask(ChatRequest(parts=PROMPT, tools=None), lambda text: None)
    assert (answer.usage, answer.usage_notes) == (Usage(input=20, output=7), ("reasoning_unknown",))
    assert (answer.cost_usd, answer.cost_source, answer.price_version) == ("0.000165", "price_table", "table 1")


# --- not counted ---


@pytest.mark.case("A7-04")
async def test_every_interrupted_stream_is_booked_by_its_text_and_none_of_them_is_free() -> None:
    words = [f"word{n} " for n in range(800)]
    text = "".join(words)
    async with provider(Play([chunk({"content": word}) for word in words], hold=True)) as served:
        model = model_at(served.base_url)
        spent = [await interrupted(model, len(text)) for _ in range(5)]
    for one in spent:
        assert one.usage is not None
        assert one.usage.output == text_tokens(text)
        assert one.usage.input >= text_tokens(TASK)
        assert (one.cost_source, one.estimated, one.price_version) == ("estimated", True, "table 1")
        assert one.cost_usd == PRICE.of(one.usage)
    assert sum(Decimal(one.cost_usd or 0) for one in spent) > Decimal("0.10")


@pytest.mark.case("A7-04")
async def test_what_the_first_event_has_counted_is_taken_from_it_and_thoughts_count_as_output() -> None:
    counted = {"input_tokens": 700, "cache_read_input_tokens": 90, "output_tokens": 2}
    thought = "the wind, the tide, the moon " * 30
    events = [
        {"type": "message_start", "message": {"type": "message", "usage": counted}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": thought}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "Aye"}},
    ]
    async with provider(Play([event(value) for value in events], hold=True)) as served:
        spent = await interrupted(model_at(served.base_url, kind="anthropic"), 3)
    assert spent.usage == Usage(input=700, cache_read=90, output=text_tokens(thought + "Aye"))
    assert spent.cost_source == "estimated"


@pytest.mark.case("A7-04")
async def test_what_never_reached_the_provider_is_a_known_zero_and_what_it_never_answered_is_unknown() -> None:
    async with provider(Play([])) as served:
        nowhere = served.base_url
    assert await failed(model_at(nowhere)) == Spent(usage=None, cost_usd="0", cost_source="none")
    async with provider(Play([], head=b"", hold=True)) as served:
        silent = model_at(served.base_url, stalls=Stalls(byte_silence_s=0.05))
        assert await failed(silent) == Spent(usage=None, cost_usd=None, cost_source="unknown")


@pytest.mark.case("A7-10")
async def test_each_attempt_tells_what_it_cost_whether_it_broke_was_refused_or_succeeded() -> None:
    half = [chunk({"content": "tide "}) for _ in range(50)]
    counted = event({"choices": [], "usage": {"prompt_tokens": 400, "completion_tokens": 50, "total_tokens": 450}})
    refused = Play([b'{"error":{"message":"busy"}}'], head=b"HTTP/1.1 503 Busy\r\n")
    whole = Play([chunk({"content": "ok"}, "stop") + counted + DONE])
    async with provider(Play(half), Play([*half, counted]), refused, whole) as served:
        model = model_at(served.base_url)
        broken, late, busy = [await failed(model) for _ in range(3)]
        answer = await model.ask(ChatRequest(parts=PROMPT, tools=None), lambda text: None)
    assert broken.usage is not None
    assert (broken.cost_source, broken.usage.output) == ("estimated", text_tokens("tide " * 50))
    assert (late.cost_source, late.usage) == ("price_table", Usage(input=400, output=50))
    assert (busy.cost_source, busy.cost_usd) == ("none", "0")
    assert (answer.cost_source, answer.cost_usd) == ("price_table", "0.00195")


async def test_an_answer_that_nobody_counted_is_estimated_and_says_so() -> None:
    async with provider(Play([chunk({"content": "Aye, captain."}, "stop") + DONE])) as served:
        answer = await model_at(served.base_url).ask(ChatRequest(parts=PROMPT, tools=None), lambda text: None)
    assert answer.usage is not None
    assert (answer.estimated, answer.cost_source) == (True, "estimated")
    assert answer.usage.output == text_tokens("Aye, captain.")
    assert answer.cost_usd == PRICE.of(answer.usage)


@pytest.mark.case("A7-06")
async def test_without_a_price_tokens_are_counted_and_the_cost_is_unknown_and_not_zero() -> None:
    async with provider(Play([chunk({"content": "Aye, captain."}, "stop") + DONE])) as served:
        model = model_at(served.base_url, name="new-model-x")
        answer = await model.ask(ChatRequest(parts=PROMPT, tools=None), lambda text: None)
    assert (answer.cost_usd, answer.cost_source, answer.price_version) == (None, "unknown", None)
    assert answer.usage is not None
    assert answer.usage.output > 0
