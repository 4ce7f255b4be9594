"""Whole runs over real HTTP: what the wire does, what the run makes of it, and when the sockets close."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest

from agents.engine.local import SystemClock
from agents.providers import connect
from agents.spec import ConcurrencyClass, ModelSpec, Status
from agents.testing import FakeClock, MemoryRun, memory_run
from tests.agents.engine.doubles import echo, interrupt
from tests.scripted_server import ScriptedServer, ask_tools, chunk, cut, html, raw, say, stall, status, stream


def over(server: ScriptedServer, tools: Sequence[Any] = (), clock: Any = None) -> MemoryRun:
    model = connect(ModelSpec(model="m", base_url=server.base_url), "sk-test")
    return memory_run(model, tools=tools, clock=clock or FakeClock())


async def test_the_key_is_sent_and_the_answer_completes_the_run() -> None:
    async with ScriptedServer([say("北京 🙂 done")]) as server:
        run = over(server)
        ended = await run.drive()
        assert ended.final == "北京 🙂 done"
        assert server.requests[0].headers["authorization"] == "Bearer sk-test"
        assert run.log.of("call.completed")[0].usage["input"] == 10


@pytest.mark.case("A1-07")
async def test_an_error_inside_the_stream_withdraws_the_half_answer_and_is_retried() -> None:
    failure = {"choices": [], "error": {"code": 502, "message": "upstream at capacity"}}
    broken = stream(chunk({"role": "assistant", "content": "Let me"}), failure, "[DONE]")
    async with ScriptedServer([broken, say("All good.")]) as server:
        run = over(server)
        ended = await run.drive()
    assert ended.final == "All good."
    retried = run.log.of("call.retried")
    assert "upstream at capacity" in retried[0].error["message"]
    assert run.live.gone == [(run.log.events[3].call, 1)]
    assert list(run.live.texts.values()) == ["All good."]
    assert "Let me" not in str(run.running.transcript.messages)


@pytest.mark.case("A1-06")
async def test_a_tool_call_cut_in_the_middle_never_runs() -> None:
    tool = echo("write_file", concurrency=ConcurrencyClass.PATH)
    half = stream(
        chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "write_file", "arguments": '{"pa'}}]}), cut()
    )
    async with ScriptedServer([half, say("ok")]) as server:
        run = over(server, [tool])
        ended = await run.drive()
    assert ended.status is Status.COMPLETED
    assert tool.ran == []
    assert len(run.log.of("call.retried")) == 1


@pytest.mark.case("A1-14")
async def test_calls_run_whatever_the_finish_reason_says_and_an_empty_answer_is_bounded() -> None:
    three = ask_tools(
        ("echo", {"say": "1"}), ("echo", {"say": "2"}), ("echo", {"say": "3"}), text="Look.", finish="stop"
    )
    empty = stream(chunk({"content": ""}, finish="tool_calls"), "[DONE]")
    tool = echo()
    async with ScriptedServer([three, empty, empty, empty]) as server:
        run = over(server, [tool])
        ended = await run.drive()
        assert len(server.requests) == 4
    assert [args["say"] for args in tool.ran] == ["1", "2", "3"]
    assert ended.status is Status.FAILED
    assert "empty" in run.log.events[-1].data.error["message"].lower()


@pytest.mark.case("A1-15")
async def test_output_cut_at_the_limit_runs_nothing_and_fails_after_a_bounded_number_of_tries() -> None:
    def cut_off() -> Any:
        return ask_tools(("echo", {"say": "whole"}), ("echo", '{"say": "ha'), finish="length")

    tool = echo()
    async with ScriptedServer([cut_off(), cut_off(), cut_off(), cut_off()]) as server:
        run = over(server, [tool])
        ended = await run.drive()
        sent = server.requests[1].json["messages"]
        assert len(server.requests) == 3
    assert tool.ran == []
    assert sum("cut off" in str(m["content"]) for m in sent if m["role"] == "tool") == 2
    assert ended.status is Status.FAILED
    assert run.log.events[-1].data.error["reason"] == "output_cut"


@pytest.mark.case("A1-12")
async def test_a_split_name_that_no_tool_has_gets_the_list_of_names() -> None:
    split = stream(
        chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "edit_ex", "arguments": "{}"}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"name": "isting_file"}}]}, finish="tool_calls"),
        "[DONE]",
    )
    async with ScriptedServer([split, say("ok")]) as server:
        run = over(server, [echo()])
        ended = await run.drive()
        result = server.requests[1].json["messages"][-1]["content"]
    assert ended.status is Status.COMPLETED
    assert "edit_existing_file" in result
    assert "echo" in result


@pytest.mark.case("A2-09")
async def test_a_reused_wire_id_loses_no_result_in_the_same_message_or_later() -> None:
    twice = ask_tools(("echo", {"say": "a"}), ("echo", {"say": "b"}), ids=["dup_1", "dup_1"], index=True)
    later = ask_tools(("echo", {"say": "c"}), ids=["dup_1"])
    async with ScriptedServer([twice, later, say("ok")]) as server:
        run = over(server, [echo()])
        await run.drive()
        sent = server.requests[2].json["messages"]
    asked = [c["id"] for m in sent if m["role"] == "assistant" for c in m["tool_calls"]]
    results = {m["tool_call_id"]: m["content"] for m in sent if m["role"] == "tool"}
    assert len(set(asked)) == 3
    assert list(results) == asked
    assert list(results.values()) == ["echo a", "echo b", "echo c"]
    calls = [e.call for e in run.log.events if e.kind == "call.started" and e.data.operation == "execute_tool"]
    assert len(set(calls)) == 3


@pytest.mark.case("A4-01")
@pytest.mark.parametrize("hint", ["90", "Wed, 21 Oct 2099 07:28:00 GMT", "86400"])
async def test_an_interrupt_ends_a_wait_for_the_rate_limit_at_once(hint: str) -> None:
    async with ScriptedServer([status(429, retry_after=hint) for _ in range(3)]) as server:
        run = over(server, clock=SystemClock())
        driving = asyncio.create_task(run.drive())
        retried = await run.log.until("call.retried")
        assert 80 <= retried.data.wait_s <= 120
        assert retried.data.until > "2026"
        pressed = time.monotonic()
        run.inbox.send(interrupt(run.spec.id))
        ended = await driving
        assert time.monotonic() - pressed < 0.5
        assert ended.status is Status.INTERRUPTED
        assert len(server.requests) == 1
    assert "run.failed" not in run.log.kinds()
    assert [c.status for c in run.log.of("call.completed")] == ["stopped"]


async def test_an_interrupt_closes_the_socket_of_a_stream_at_once() -> None:
    async with ScriptedServer([say("Once upon a time", after=[stall()])]) as server:
        run = over(server, clock=SystemClock())
        driving = asyncio.create_task(run.drive())
        seen = await server.request(0)
        await run.log.until("call.started")
        while not run.live.texts:
            await asyncio.sleep(0.001)
        pressed = time.monotonic()
        run.inbox.send(interrupt(run.spec.id))
        await asyncio.wait_for(seen.closed.wait(), 1)
        assert time.monotonic() - pressed < 0.2
        ended = await driving
        assert ended.stopped["sockets"] == 1
    assert run.log.of("call.completed")[0].text.startswith("Once")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(status(401), "auth"), (html(200, "Welcome"), "malformed_response"), (status(404), "model_not_found")],
)
async def test_an_answer_that_is_no_answer_fails_the_run_with_a_reason(answer: Any, reason: str) -> None:
    async with ScriptedServer([answer] * 3) as server:
        run = over(server)
        ended = await run.drive()
    assert ended.status is Status.FAILED
    assert run.log.events[-1].data.error["reason"] == reason


async def test_a_server_that_is_not_there_fails_after_bounded_waits() -> None:
    model = connect(ModelSpec(model="m", base_url="http://127.0.0.1:9/v1"), None)
    run = memory_run(model)
    ended = await run.drive()
    assert ended.status is Status.FAILED
    assert run.log.events[-1].data.error["reason"] == "connection"
    assert len(run.clock.sleeps) == 2


@pytest.mark.case("A2-02")
async def test_half_a_character_from_the_model_breaks_no_later_request() -> None:
    body = (
        b'data: {"choices":[{"index":0,"delta":{"content":"lone \\ud83d pair \\ud83d\\ude00","tool_calls":'
        b'[{"index":0,"id":"a","function":{"name":"echo","arguments":"{\\"say\\": \\"x\\\\ude00\\"}"}}]},'
        b'"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'
    )
    async with ScriptedServer([raw(body), say("ok")]) as server:
        run = over(server, [echo()])
        ended = await run.drive()
        sent = server.requests[1].body.decode()
    assert ended.status is Status.COMPLETED
    assert "😀" in sent
    assert "\\ud83d " not in sent


async def test_reasoning_goes_back_to_the_model_that_wrote_it() -> None:
    thinking = stream(
        chunk({"role": "assistant", "reasoning_content": "hm, echo"}),
        chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "echo", "arguments": "{}"}}]}),
        chunk({}, finish="tool_calls"),
        "[DONE]",
    )
    async with ScriptedServer([thinking, say("ok")]) as server:
        run = over(server, [echo()])
        await run.drive()
        asked = next(m for m in server.requests[1].json["messages"] if m["role"] == "assistant")
    assert asked["reasoning_content"] == "hm, echo"
