"""The window of a model over a long run: compressed before it is full and on overflow, undoable, counted, resumable."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import orjson
import pytest

from agents.engine.ledger import judged
from agents.engine.transcript import Transcript
from agents.errors import ModelError, WireEvidence
from agents.messages import AssistantMessage, ToolMessage, Usage
from agents.policy import summaries
from agents.policy.faults import known, sample_of
from agents.policy.limits import limits_from
from agents.ports import ChatAnswer
from agents.providers import connect
from agents.spec import ModelSpec, Status
from agents.testing import FakeClock, MemoryLog, MemoryModels, MemoryRun, ScriptedModel, asks, memory_run, memory_spec
from tests.agents.engine.doubles import FunctionTool, echo, steer
from tests.agents.engine.wires import complaint_about
from tests.scripted_server import ScriptedServer, ask_tools, say, status
from tests.scripted_server.dsl import PLAIN, usage

GOOD = "Done: the steps so far, all of them noted in notes.md. Found: the bug is in parse.py. Next: the next file. " * 4
LINES = "line of output, 漢字, {json: 1}\n"


def size_of(messages: Sequence[Any]) -> int:
    """Tokens as this provider counts them: by another rule than ours, and more of them."""
    return sum(len(orjson.dumps(message)) for message in messages) // 3


def is_summary(messages: Sequence[Any]) -> bool:
    return bool(messages[0]["content"].startswith(summaries.SYSTEM[:40]))


def prints(size: Any = lambda n: 900) -> FunctionTool:
    async def work(args: Any, context: Any) -> str:
        return f"{args['n']}:\n" + LINES * (size(args["n"]) // len(LINES))

    return FunctionTool("prints", work)


def windowed(window: int | None, **changes: Any) -> Any:
    return memory_spec(
        "Task ZX-41. Rule: never touch the prod folder.",
        model=ModelSpec(model="scripted", base_url="http://127.0.0.1:9/v1", window=window),
        limits=limits_from({"max_turns": 400}, "request"),
        **changes,
    )


def chatty(turns: int, summary: Any = GOOD, usage_of: Any = None) -> ScriptedModel:
    """A model that works for so many turns and writes summaries when it is asked for one."""
    count = iter(range(10_000))

    async def script(messages: Sequence[Any]) -> Any:
        if is_summary(messages):
            got = summary() if callable(summary) else summary
            return got if isinstance(got, str | ModelError) else await got
        n = next(count)
        message = asks(("prints", {"n": n})) if n < turns else AssistantMessage(text="All done.")
        return ChatAnswer(
            message=message,
            usage=Usage(input=size_of(messages), output=20),
            cost_usd="0.001",
            cost_source="reported",
            finish_reason="stop",
            ttft_ms=1,
        )

    return ScriptedModel(lambda messages: script(messages))


def run_of(model: Any, window: int | None = 8192, tools: Sequence[Any] = (), **changes: Any) -> MemoryRun:
    return memory_run(model, tools=tools or [prints()], spec=windowed(window, **changes))


def folded(log: MemoryLog, upto: int | None = None) -> Transcript:
    transcript = Transcript()
    for event in log.events[:upto]:
        transcript.apply(event.data, turn=event.turn, call=event.call, at=event.at, seq=event.seq)
    return transcript


class Provider:
    """The other end: a small window, strict about the history, and with a count of its own of what it is owed."""

    def __init__(self, turns: int, window: int = 16_384) -> None:
        self.turns = turns
        self.window = window
        self.answers = 0
        self.summaries = 0
        self.refused = 0
        self.owed = Decimal(0)
        self.wrong: list[str] = []

    def __call__(self, body: Any) -> Any:
        messages = body["messages"]
        if is_summary(messages):
            self.summaries += 1
            return say(GOOD, dialect=PLAIN, size=200, used=self._count(messages, 120))
        if (wrong := complaint_about(body)) is not None:
            self.wrong.append(wrong)
        if size_of(messages) > self.window:
            self.refused += 1
            return status(400, f"This model's maximum context length is {self.window} tokens, you sent more.")
        self.answers += 1
        used = self._count(messages, 40)
        if self.answers > self.turns:
            return say("All done.", dialect=PLAIN, used=used)
        calls = [("prints", {"n": self.answers}), ("echo", {"say": "ok"})]
        return ask_tools(*calls, text=f"Step {self.answers}.", dialect=PLAIN, used=used)

    def _count(self, messages: Sequence[Any], output: int) -> dict[str, Any]:
        tokens = size_of(messages)
        self.owed += (Decimal(tokens) * Decimal("0.50") + Decimal(output) * Decimal("1.50")) / 1_000_000
        return usage(tokens, output)


@pytest.mark.case("A3-09")
async def test_two_hundred_turns_in_a_window_of_16k_complete_and_are_paid_to_the_cent() -> None:
    provider = Provider(200)
    async with ScriptedServer(provider) as server:
        # A model of the catalog, which has a price.
        model = ModelSpec(model="bench", base_url=server.base_url, window=16_384, max_output_tokens=2048)
        spec = memory_spec(
            "Task ZX-41. Rule: never touch the prod folder.",
            model=model,
            prompt="You are careful. " * 40,
            limits=limits_from({"max_turns": 250, "max_cost": "5"}, "request"),
        )
        tools = [prints(lambda n: 600 + n * 37 % 1500), echo()]
        run = memory_run(connect(model, "sk-a"), tools=tools, clock=FakeClock(), spec=spec)
        run.inbox.send(steer(run.spec.id, "use python"))
        ended = await run.drive()
        last = server.requests[-1].json["messages"]
    assert ended.status is Status.COMPLETED
    assert provider.wrong == [] and provider.refused == 0
    assert provider.answers == 201
    compressions = run.log.of("context.compressed")
    assert 3 <= len(compressions) <= 40
    assert all(one.after_tokens < one.before_tokens and one.summary for one in compressions)
    assert provider.summaries == len(compressions)
    named = [e for e in run.log.events if e.kind == "call.started" and e.data.name == "compression"]
    assert len(named) == provider.summaries and all(e.turn is None for e in named)
    assert run.running.transcript.cost == provider.owed
    text = str(last)
    assert "Task ZX-41. Rule: never touch the prod folder." in text and "[User note: use python]" in text
    assert folded(run.log).messages == run.running.transcript.messages
    assert len([e for e in run.log.events if e.kind == "call.completed" and e.data.name == "prints"]) == 200


async def test_an_overflow_is_compressed_and_the_request_sent_again() -> None:
    provider = Provider(30, window=9_000)
    async with ScriptedServer(provider) as server:
        model = ModelSpec(model="m", base_url=server.base_url)
        run = memory_run(
            connect(model, "sk-a"), tools=[prints(), echo()], clock=FakeClock(), spec=memory_spec(model=model)
        )
        ended = await run.drive()
    assert ended.status is Status.COMPLETED
    assert provider.wrong == [] and provider.refused == 1
    kinds = run.log.kinds()
    at = kinds.index("call.retried")
    assert kinds[at - 1 : at + 6] == [
        "call.started", "call.retried", "call.started", "call.completed", "context.compressed", "call.completed",
        "batch.planned",
    ]  # fmt: skip
    assert [(r.error["reason"], r.action) for r in run.log.of("call.retried")] == [("context_overflow", "compress")]
    assert len(run.clock.sleeps) == 1 and 0 < run.clock.sleeps[0] < 1
    # What the overflow taught is kept to: later compressions come before the window is full.
    assert len(run.log.of("context.compressed")) >= 2


def test_a_refusal_without_a_word_is_an_overflow_where_the_window_is_full() -> None:
    plain = known("format_error", sample_of(WireEvidence()), "")
    bare = ModelError("format_error", "", WireEvidence(status=400), fault=plain)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert judged(bare, {"input_tokens": 7900, "context_window": 8192}, now).reason == "context_overflow"
    assert judged(bare, {"input_tokens": 790, "context_window": 8192}, now).reason == "format_error"
    assert judged(bare, {}, now).reason == "format_error"


@pytest.mark.parametrize("summary", ["", "assistant calls read_file", ModelError("server_error", "boom")])
async def test_a_summariser_that_is_no_use_costs_no_human_word_and_no_endless_asking(summary: Any) -> None:
    model = chatty(60, summary)
    run = run_of(model)
    run.inbox.send(steer(run.spec.id, "never delete notes.md"))
    ended = await run.drive()
    assert ended.status is Status.COMPLETED
    text = str(model.requests[-1])
    assert "never touch the prod folder" in text and "never delete notes.md" in text
    asked = sum(is_summary(request) for request in model.requests)
    assert 2 <= asked <= 24
    assert run.log.of("context.compressed")
    assert folded(run.log).messages == run.running.transcript.messages


async def test_results_that_make_way_say_where_the_whole_of_them_is_kept() -> None:
    model = chatty(10, "")
    run = run_of(model, tools=[prints(lambda n: 9000)])
    assert (await run.drive()).status is Status.COMPLETED
    stubs = next(one.stubs for one in run.log.of("context.compressed") if one.stubs)
    call, stub = next(iter(stubs.items()))
    result = next(m.text for m in folded(run.log).messages if isinstance(m, ToolMessage) and m.call == call)
    assert "Left out to make room" in result
    completed = next(e.data for e in run.log.events if e.kind == "call.completed" and e.call == call)
    assert completed.artifact["sha256"] == stub["sha256"] and stub["sha256"] in run.log.contents


async def test_a_result_is_cut_to_what_a_small_window_can_bear() -> None:
    model = chatty(1)
    run = run_of(model, window=4096, tools=[prints(lambda n: 20_000)])
    await run.drive()
    result = model.requests[-1][-1]["content"]
    assert len(result) < 2000
    completed = next(e.data for e in run.log.events if e.kind == "call.completed" and e.data.name == "prints")
    assert completed.truncated and len(run.log.contents[completed.artifact["sha256"]]) > 19_000


async def test_a_run_that_dies_after_any_event_of_a_compression_goes_on_with_the_same_history() -> None:
    whole = run_of(chatty(24))
    await whole.drive()
    first = next(n for n, e in enumerate(whole.log.events) if e.kind == "context.compressed")
    assert len(whole.log.of("context.compressed")) >= 1
    for upto in range(first - 4, first + 6):
        log = MemoryLog(whole.spec.id)
        log.events, log.bodies = whole.log.events[:upto], whole.log.bodies[:upto]
        turns = sum(e.kind == "call.completed" and e.data.name == "prints" for e in log.events)
        again = memory_run(chatty(24 - turns), tools=[prints()], log=log, spec=whole.spec, epoch=2)
        assert (await again.drive()).status is Status.COMPLETED, upto
        assert folded(log).messages == again.running.transcript.messages
        assert "Task ZX-41" in folded(log).messages[0].text


async def test_a_cheaper_model_writes_the_summaries_where_the_policy_names_one() -> None:
    big, cheap = chatty(24, "never asked"), ScriptedModel(lambda messages: GOOD)
    cheap.name = "cheap"
    clock = FakeClock()
    specs = [ModelSpec(model=name, base_url="http://127.0.0.1:9/v1", window=8192) for name in ("scripted", "cheap")]
    spec = windowed(8192, fallbacks=(specs[1],), policy_body={"compression_model": "cheap"})
    run = memory_run(MemoryModels({"a": big}, {"b": cheap}, clock=clock, specs=specs), tools=[prints()], spec=spec)
    assert (await run.drive()).status is Status.COMPLETED
    written = [e.data for e in run.log.events if e.kind == "call.started" and e.data.name == "compression"]
    assert written and {one.model for one in written} == {"cheap"}
    assert all(is_summary(request) for request in cheap.requests)
    assert {one.model for one in run.log.of("call.started") if one.operation == "chat" and one not in written} == {
        "scripted"
    }


async def test_a_compression_call_without_money_fails_over_to_shorter_results() -> None:
    broke = ModelError("billing", "Insufficient credits", WireEvidence(status=402))
    model = chatty(24, lambda: broke)
    run = run_of(model)
    assert (await run.drive()).status is Status.COMPLETED
    assert run.log.of("context.compressed")
    assert "run.waiting" not in run.log.kinds()


@pytest.mark.parametrize(("wanted", "refusals"), [(None, 30), (6000, 3)])
async def test_what_one_request_leaves_for_the_answer_is_no_cap_on_later_answers(
    wanted: int | None, refusals: int
) -> None:
    caps: list[tuple[int, int]] = []

    class Narrow(ScriptedModel):
        async def ask(self, request: Any, on_text: Any) -> ChatAnswer:
            size, cap = size_of([orjson.loads(part) for part in request.parts]), request.max_output_tokens or 6000
            if size + cap > 8192:
                said = f"This model's maximum context length is 8192 tokens and your request has {size} input tokens."
                raise ModelError("context_overflow", said, WireEvidence(status=400))
            caps.append((size, cap))
            return await super().ask(request, on_text)

    spec = windowed(None)
    spec = replace(spec, model=replace(spec.model, max_output_tokens=wanted))
    run = memory_run(Narrow(chatty(30)._script), tools=[prints()], spec=spec)
    assert (await run.drive()).status is Status.COMPLETED
    lowered = run.log.of("call.retried")
    assert lowered and {one.action for one in lowered} == {"lower_output"} and len(lowered) <= refusals
    # It knows the window from then on, and an answer may have again whatever is left beside a shorter history.
    assert run.log.of("context.compressed")
    assert all(cap > 3000 for _, cap in caps) and caps[-1][1] > 4000
