"""Each failure of a provider over real HTTP: the events, the requests that the server saw, the waits and the exit."""

from collections.abc import Sequence
from typing import Any

import pytest

from agents.policy.limits import limits_from
from agents.providers import Stalls, connect
from agents.spec import ConcurrencyClass, ModelSpec, Status
from agents.testing import FakeClock, MemoryModels, MemoryRun, memory_run, memory_spec
from tests.agents.engine.doubles import echo
from tests.agents.engine.wires import complaint_about
from tests.scripted_server import (
    Response,
    ScriptedServer,
    ask_tools,
    chunk,
    cut,
    html,
    reset,
    say,
    stall,
    status,
    stream,
    wait,
)

BEGUN = ["run.queued", "run.started", "turn.started", "call.started"]
DONE = ["call.completed", "turn.completed", "run.completed"]
FAILED = ["call.completed", "run.failed"]
CLAUDE_SAYS = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"1","role":"assistant","content":[],'
    b'"usage":{"input_tokens":9,"output_tokens":1}}}\n\n'
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text",'
    b'"text":""}}\n\n'
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta",'
    b'"text":"Done."}}\n\n'
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},'
    b'"usage":{"output_tokens":3}}\n\n'
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
)


def model_at(server: ScriptedServer, key: str = "sk-a", name: str = "m", **changes: Any) -> Any:
    return connect(ModelSpec(model=name, base_url=server.base_url), key, **changes)


def over(server: ScriptedServer, tools: Sequence[Any] = (), **changes: Any) -> MemoryRun:
    """A run with one model and one key, which belongs to no pool."""
    return memory_run(model_at(server, **changes), tools=tools, clock=FakeClock())


def pooled(places: Sequence[dict[str, Any]], tools: Sequence[Any] = (), **changes: Any) -> MemoryRun:
    """A run whose models have pools of keys; the first place is its own model, the rest are fallbacks."""
    clock = FakeClock()
    specs = [
        ModelSpec(model=next(iter(place.values())).name, base_url=f"http://127.0.0.1:{n + 1}/v1", **changes)
        for n, place in enumerate(places)
    ]
    spec = memory_spec(model=specs[0], fallbacks=tuple(specs[1:]))
    return memory_run(MemoryModels(*places, clock=clock, specs=specs), tools=tools, clock=clock, spec=spec)


def keys_of(server: ScriptedServer) -> list[str]:
    return [seen.headers["authorization"].removeprefix("Bearer ") for seen in server.requests]


def told(run: MemoryRun) -> list[tuple[str, str]]:
    return [(one.error["reason"], one.action) for one in run.log.of("call.retried")]


async def test_a_limit_with_a_named_wait_is_waited_out() -> None:
    async with ScriptedServer([status(429, retry_after=7), say("Done.")]) as server:
        run = over(server)
        ended = await run.drive()
        assert len(server.requests) == 2
        assert server.requests[0].json["messages"] == server.requests[1].json["messages"]
    assert ended.status is Status.COMPLETED
    assert run.log.kinds() == [*BEGUN, "call.retried", *DONE]
    assert told(run) == [("rate_limit", "retry")]
    assert 7 <= run.clock.sleeps[0] <= 8
    retried = run.log.of("call.retried")[0]
    assert retried.until > "2026-01-01T00:00:07" and retried.attempt == 1


async def test_a_limit_of_one_key_goes_on_with_the_other() -> None:
    async with ScriptedServer([status(429, retry_after=30), say("Done.")]) as server:
        run = pooled([{"a": model_at(server, "sk-a"), "b": model_at(server, "sk-b")}])
        ended = await run.drive()
        assert keys_of(server) == ["sk-a", "sk-b"]
    assert ended.status is Status.COMPLETED
    assert run.log.kinds() == [*BEGUN, "call.retried", "credential.rotated", *DONE]
    assert told(run) == [("rate_limit", "rotate")]
    rotated = run.log.of("credential.rotated")[0]
    assert (rotated.from_, rotated.to, rotated.reason, rotated.cooldown_s) == ("a", "b", "rate_limit", 30)
    assert len(run.clock.sleeps) == 1 and 0 < run.clock.sleeps[0] < 1


async def test_a_dead_key_is_reported_and_the_next_one_used_for_good() -> None:
    answers = [status(401), ask_tools(("echo", {"say": "hi"})), say("Done.")]
    async with ScriptedServer(answers) as server:
        run = pooled([{"a": model_at(server, "sk-a"), "b": model_at(server, "sk-b")}], tools=[echo()])
        models = run.models
        ended = await run.drive()
        assert keys_of(server) == ["sk-a", "sk-b", "sk-b"]
    assert ended.status is Status.COMPLETED
    assert [(r.credential, r.reason) for r in models.reports] == [("a", "auth"), ("b", None), ("b", None)]
    assert run.log.of("call.started")[-1].credential == "b"


async def test_a_transient_402_is_a_limit() -> None:
    passing = status(402, "Too many requests in flight for this plan, try again in 2 minutes")
    async with ScriptedServer([passing, say("Done.")]) as server:
        run = over(server)
        ended = await run.drive()
    assert ended.status is Status.COMPLETED
    assert run.log.kinds() == [*BEGUN, "call.retried", *DONE]
    assert told(run) == [("rate_limit", "retry")]
    assert run.clock.sleeps == [120.0]


async def test_a_final_402_fails_if_the_policy_says_so() -> None:
    async with ScriptedServer([status(402, "Insufficient credits")] * 2) as server:
        spec = memory_spec(policy_body={"on_quota": "fail"})
        run = memory_run(model_at(server), clock=FakeClock(), spec=spec)
        ended = await run.drive()
        assert len(server.requests) == 1
    assert ended.status is Status.FAILED
    assert run.log.kinds() == [*BEGUN, *FAILED]
    assert run.log.events[-1].data.error["reason"] == "billing"
    assert "Insufficient credits" in run.log.events[-1].data.error["message"]
    assert run.clock.sleeps == []


async def test_an_overloaded_model_is_left_for_the_next_one() -> None:
    async with ScriptedServer([status(529, "Overloaded")] * 3) as busy, ScriptedServer([say("Done.")]) as other:
        run = pooled([{"a": model_at(busy, name="big")}, {"b": model_at(other, "sk-b", name="small")}])
        ended = await run.drive()
        assert (len(busy.requests), len(other.requests)) == (3, 1)
        assert other.requests[0].json["model"] == "small"
    assert ended.status is Status.COMPLETED
    assert run.log.kinds() == [*BEGUN, *["call.retried"] * 3, "model.fell_back", *DONE]
    assert told(run) == [("overloaded", "retry"), ("overloaded", "retry"), ("overloaded", "fall_back")]
    fell = run.log.of("model.fell_back")[0]
    assert (fell.from_, fell.to, fell.reason) == ("big", "small", "overloaded")
    assert len(run.clock.sleeps) == 3 and all(wait > 0 for wait in run.clock.sleeps)


async def test_the_first_model_is_tried_again_some_minutes_later() -> None:
    async def tick(args: Any, context: Any) -> str:
        run.clock.advance(200)
        return "tock"

    tool = echo("tick")
    tool.work = tick
    busy_then_back = [*[status(529, "Overloaded")] * 3, say("Done.")]
    two = [ask_tools(("tick", {})), ask_tools(("tick", {}))]
    async with ScriptedServer(busy_then_back) as busy, ScriptedServer(two) as other:
        run = pooled([{"a": model_at(busy, name="big")}, {"b": model_at(other, "sk-b", name="small")}], tools=[tool])
        ended = await run.drive()
    assert ended.final == "Done."
    chats = [one.model for one in run.log.of("call.started") if one.operation == "chat"]
    assert chats == ["big", "small", "big"]


async def test_another_wire_gets_the_same_history_in_its_own_form() -> None:
    first = ask_tools(("echo", {"say": "hi"}), text="Look.", ids=["functions.echo:0"])
    async with (
        ScriptedServer([first, *[status(503, "at capacity")] * 3]) as one,
        ScriptedServer([Response(headers={"content-type": "text/event-stream"}, moves=[CLAUDE_SAYS])]) as other,
    ):
        claude = connect(ModelSpec(model="claude", base_url=other.base_url, provider="anthropic"), "sk-b")
        run = pooled([{"a": model_at(one)}, {"b": claude}], tools=[echo()])
        ended = await run.drive()
        sent = other.requests[0].json
    assert ended.final == "Done."
    assert [m["role"] for m in sent["messages"]] == ["user", "assistant", "user"]
    use, result = sent["messages"][1]["content"][-1], sent["messages"][2]["content"][0]
    assert use["type"] == "tool_use" and use["id"] == result["tool_use_id"] == "functions_echo_0"
    assert sent["tools"][0]["input_schema"]["type"] == "object"


async def test_a_closing_summary_names_the_tools_only_where_the_wire_wants_them() -> None:
    tools = b'"content_block":{"type":"tool_use","id":"t","name":"echo","input":{}}}'
    asks = (
        b'event: message_start\ndata: {"type":"message_start","message":{"id":"1","role":"assistant","content":[],'
        b'"usage":{"input_tokens":9,"output_tokens":1}}}\n\n'
        b'event: content_block_start\ndata: {"type":"content_block_start","index":0,' + tools + b"\n\n"
        b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"tool_use"},'
        b'"usage":{"output_tokens":3}}\n\n'
        b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    )
    events = {"content-type": "text/event-stream"}
    answers = [Response(headers=events, moves=[asks]), Response(headers=events, moves=[CLAUDE_SAYS])]
    async with ScriptedServer(answers) as server:
        claude = connect(ModelSpec(model="claude", base_url=server.base_url, provider="anthropic"), "sk-b")
        limits = limits_from({"max_turns": 1}, "request")
        run = memory_run(claude, tools=[echo()], clock=FakeClock(), limits=limits)
        ended = await run.drive()
        sent = server.requests[1].json
    assert ended.status is Status.EXHAUSTED and ended.final == "Done."
    assert sent["tools"] and sent["tool_choice"] == {"type": "none"}
    async with ScriptedServer([ask_tools(("echo", {})), say("Done.")]) as server:
        run = memory_run(model_at(server), tools=[echo()], clock=FakeClock(), limits=limits)
        assert (await run.drive()).final == "Done."
        assert "tools" not in server.requests[1].json


async def test_a_refused_history_is_repaired_once_and_sent_again() -> None:
    thinking = stream(
        chunk({"role": "assistant", "reasoning_content": "hm"}),
        chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "echo", "arguments": "{}"}}]}),
        chunk({}, finish="tool_calls"),
        "[DONE]",
    )
    refused = status(400, "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.")
    async with ScriptedServer([thinking, refused, say("Done.")]) as server:
        run = over(server, [echo()])
        ended = await run.drive()
        before, after = (server.requests[n].json["messages"] for n in (1, 2))
    assert ended.status is Status.COMPLETED
    assert told(run) == [("invalid_tool_call_history", "repair")]
    assert run.log.of("call.retried")[0].changes == ["provider fields of 1 answers left out"]
    assert before[2]["reasoning_content"] == "hm" and "reasoning_content" not in after[2]
    assert complaint_about(server.requests[2].json) is None


async def test_a_history_that_stays_refused_fails_the_run() -> None:
    refused = status(400, "An assistant message with 'tool_calls' must be followed by tool messages")
    async with ScriptedServer([refused] * 3) as server:
        run = over(server)
        ended = await run.drive()
        assert len(server.requests) == 2
    assert ended.status is Status.FAILED
    assert run.log.kinds() == [*BEGUN, "call.retried", *FAILED]
    assert run.log.events[-1].data.error["reason"] == "invalid_tool_call_history"


async def test_a_log_with_a_call_that_nobody_answered_is_put_right_before_it_is_sent() -> None:
    two = [ask_tools(("echo", {"say": n}), ids=[n]) for n in ("w1", "w2")]
    async with ScriptedServer([*two, say("Done.")]) as server:
        first = over(server, [echo()])
        await first.drive()
    log = first.log
    lost = next(e for e in log.events if e.kind == "call.completed" and e.data.operation == "execute_tool")
    cut_at = next(n for n, e in enumerate(log.events) if e.kind == "turn.started" and e.turn == 3)
    log.events = [event for event in log.events[:cut_at] if event is not lost]
    async with ScriptedServer([say("Done.")]) as server:
        run = memory_run(model_at(server), tools=[echo()], log=log, spec=first.spec, epoch=2)
        ended = await run.drive()
        sent = server.requests[0].json
    assert ended.status is Status.COMPLETED
    assert complaint_about(sent) is None
    results = {m["tool_call_id"]: m["content"] for m in sent["messages"] if m["role"] == "tool"}
    assert "unknown" in results["w1"] and results["w2"] == "echo w2"


async def test_an_error_inside_a_200_is_told_withdrawn_and_retried() -> None:
    failure = {"choices": [], "error": {"code": 502, "message": "upstream at capacity"}}
    broken = stream(chunk({"role": "assistant", "content": "Let me"}), failure, "[DONE]")
    async with ScriptedServer([broken, say("Done.")]) as server:
        run = over(server)
        ended = await run.drive()
    assert ended.final == "Done."
    assert run.log.kinds() == [*BEGUN, "call.retried", *DONE]
    assert run.live.gone == [(run.log.events[3].call, 1)]
    assert run.log.of("call.retried")[0].usage["output"] > 0


async def test_a_stream_cut_in_the_middle_of_a_call_runs_nothing_and_is_retried() -> None:
    half = {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "write_file", "arguments": '{"pa'}}]}
    tool = echo("write_file", concurrency=ConcurrencyClass.PATH)
    async with ScriptedServer([stream(chunk(half), cut()), say("Done.")]) as server:
        run = over(server, [tool])
        ended = await run.drive()
    assert ended.status is Status.COMPLETED
    assert tool.ran == []
    assert run.log.kinds() == [*BEGUN, "call.retried", *DONE]
    assert told(run)[0][0] in ("malformed_response", "connection")


@pytest.mark.parametrize(
    ("answer", "stalls"),
    [
        (stream(chunk({"role": "assistant"}), stall()), Stalls(byte_silence_s=0.1, no_progress_s=30)),
        (
            stream(chunk({"role": "assistant"}), *[b": ping\n\n", wait(0.03)] * 40, stall()),
            Stalls(byte_silence_s=30, no_progress_s=0.2),
        ),
    ],
    ids=["silent", "pings only"],
)
async def test_a_stream_that_says_nothing_is_given_up_and_asked_again(answer: Any, stalls: Stalls) -> None:
    async with ScriptedServer([answer, say("Done.")]) as server:
        run = over(server, stalls=stalls)
        ended = await run.drive()
        assert server.requests[0].how == "client_gone"
    assert ended.status is Status.COMPLETED
    assert run.log.kinds() == [*BEGUN, "call.retried", *DONE]
    assert told(run) == [("timeout", "retry")]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(html(502), "server_error"), (Response(moves=[reset()]), "connection")],
    ids=["HTML 502", "reset"],
)
async def test_a_broken_way_is_tried_three_times_and_then_fails(answer: Any, reason: str) -> None:
    async with ScriptedServer([answer] * 4) as server:
        run = over(server)
        ended = await run.drive()
        assert len(server.requests) == 3
    assert ended.status is Status.FAILED
    assert run.log.kinds() == [*BEGUN, "call.retried", "call.retried", *FAILED]
    assert told(run) == [(reason, "retry")] * 2
    first, second = run.clock.sleeps
    assert 0.5 <= first <= 1 <= second <= 2
    assert run.log.events[-1].data.error["reason"] == reason


async def test_an_output_limit_that_the_provider_names_is_kept_to() -> None:
    refused = status(400, "max_tokens is too large: 32000. This model supports at most 16384 completion tokens.")
    async with ScriptedServer([refused, ask_tools(("echo", {})), say("Done.")]) as server:
        model = connect(ModelSpec(model="m", base_url=server.base_url, max_output_tokens=32_000), "sk-a")
        spec = memory_spec(model=ModelSpec(model="m", base_url=server.base_url, max_output_tokens=32_000))
        run = memory_run(model, tools=[echo()], clock=FakeClock(), spec=spec)
        ended = await run.drive()
        assert [seen.json["max_tokens"] for seen in server.requests] == [32_000, 16_384, 16_384]
    assert ended.status is Status.COMPLETED
    assert told(run) == [("format_error", "lower_output")]
    assert run.log.of("call.retried")[0].changes == ["an answer may have 16384 tokens"]


@pytest.mark.case("A7-10")
async def test_each_attempt_has_its_cost_and_a_spent_limit_ends_the_retries() -> None:
    partial = stream(
        chunk({"content": "word " * 400}), chunk(usage={"prompt_tokens": 50, "completion_tokens": 400}), cut()
    )

    async with ScriptedServer([partial] * 4) as server:
        run = memory_run(model_at(server), clock=FakeClock(), limits=limits_from({"max_tokens": 1700}, "request"))
        ended = await run.drive()
        assert len(server.requests) == 2
    assert ended.status is Status.TRIPPED
    assert run.running.transcript.tokens == 900
    assert run.log.of("call.completed")[0].status == "error"
