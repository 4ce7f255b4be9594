"""Each run ends in one of its intended exits, with exactly one final event."""

from decimal import Decimal

import pytest

from agents.errors import ModelError, WireEvidence
from agents.messages import AssistantMessage, Usage
from agents.ports import ChatAnswer
from agents.spec import Limit, Limits, Status
from agents.testing import ScriptedModel, asks, memory_run
from tests.agents.engine.doubles import echo


def limit(**values: object) -> Limits:
    return Limits(**{name: Limit(value=Decimal(str(v)), source="request") for name, v in values.items()})


async def test_an_answer_without_tool_calls_completes_the_run() -> None:
    run = memory_run(ScriptedModel(["All done."]))
    ended = await run.drive()
    assert ended.status is Status.COMPLETED
    assert run.log.events[-1].data.final == "All done."
    assert run.log.kinds() == [
        "run.queued", "run.started", "turn.started", "call.started", "call.completed", "turn.completed",
        "run.completed",
    ]  # fmt: skip


async def test_tool_results_go_back_to_the_model_in_the_order_asked() -> None:
    model = ScriptedModel([asks(("echo", {"say": "one"}), ("echo", {"say": "two"})), "ok"])
    run = memory_run(model, tools=[echo()])
    await run.drive()
    assert [m["content"] for m in model.requests[1] if m["role"] == "tool"] == ["echo one", "echo two"]


async def test_the_turn_budget_ends_in_a_summary_by_the_model() -> None:
    model = ScriptedModel([asks(("echo", {})), asks(("echo", {})), "Two echoes done, nothing left."])
    run = memory_run(model, tools=[echo()], limits=limit(max_turns=2))
    ended = await run.drive()
    assert ended.status is Status.EXHAUSTED
    assert run.log.events[-1].data.final == "Two echoes done, nothing left."
    assert run.log.events[-1].data.final_by == "model"
    assert "turn budget" in model.requests[-1][-1]["content"]
    assert [e.turn for e in run.log.events if e.kind == "turn.started"] == [1, 2]


async def test_a_failed_summary_still_exhausts_with_an_honest_one_from_the_log() -> None:
    refusal = ModelError("auth", "bad key", WireEvidence(status=401))
    model = ScriptedModel([asks(("echo", {}), text="looking"), refusal])
    run = memory_run(model, tools=[echo()], limits=limit(max_turns=1))
    ended = await run.drive()
    assert ended.status is Status.EXHAUSTED
    final = run.log.events[-1].data
    assert final.final_by == "log"
    assert "1 turns and 1 tool calls" in final.final
    assert "looking" in final.final


async def test_a_transient_failure_is_waited_out_and_told() -> None:
    slow_down = ModelError("rate_limit", "slow down", WireEvidence(status=429, headers={"retry-after": "7"}))
    run = memory_run(ScriptedModel([slow_down, "fine"]))
    ended = await run.drive()
    assert ended.status is Status.COMPLETED
    retried = run.log.of("call.retried")
    assert retried[0].error["reason"] == "rate_limit"
    assert retried[0].wait_s >= 7
    assert run.clock.sleeps == [retried[0].wait_s]


async def test_nothing_is_retried_for_ever() -> None:
    run = memory_run(ScriptedModel(lambda _: ModelError("server_error", "boom", WireEvidence(status=500))))
    ended = await run.drive()
    assert ended.status is Status.FAILED
    assert len(run.log.of("call.retried")) == 2
    assert run.log.events[-1].data.error["reason"] == "server_error"
    assert all(wait > 0 for wait in run.clock.sleeps)


async def test_a_wrong_key_fails_at_once_with_a_next_step() -> None:
    run = memory_run(ScriptedModel([ModelError("auth", "Incorrect API key", WireEvidence(status=401))]))
    ended = await run.drive()
    assert ended.status is Status.FAILED
    assert run.log.of("call.retried") == []
    assert "Incorrect API key" in run.log.events[-1].data.error["message"]


async def test_a_hostile_retry_after_is_capped() -> None:
    run = memory_run(
        ScriptedModel([ModelError("rate_limit", "x", WireEvidence(status=429, headers={"retry-after": "86400"})), "k"])
    )
    await run.drive()
    assert run.clock.sleeps[0] <= 120


async def test_an_unknown_tool_gets_a_helpful_result_and_the_run_goes_on() -> None:
    model = ScriptedModel([asks(("fly", {})), "ok"])
    run = memory_run(model, tools=[echo()])
    ended = await run.drive()
    assert ended.status is Status.COMPLETED
    answer = model.requests[1][-1]["content"]
    assert "no tool named 'fly'" in answer
    assert "echo" in answer


@pytest.mark.parametrize("raw", ['{"path": ', "[]", "null", '"x"', '{"a":1}{"b":2}'])
async def test_broken_arguments_never_run_the_tool(raw: str) -> None:
    tool = echo()
    model = ScriptedModel([asks(("echo", raw)), "ok"])
    run = memory_run(model, tools=[tool])
    await run.drive()
    assert tool.ran == []
    assert run.log.of("call.completed")[1].status == "error"
    assert run.log.of("call.completed")[1].args == raw


async def test_no_call_of_a_message_cut_at_the_limit_runs() -> None:
    tool = echo()
    message = asks(("echo", {"say": "whole"}), ("echo", '{"say": "ha'))
    cut = ChatAnswer(
        message=message, usage=Usage(), cost_usd=None, cost_source="unknown", finish_reason="length", ttft_ms=1,
        cut=True,
    )  # fmt: skip
    model = ScriptedModel([cut, "ok"])
    run = memory_run(model, tools=[tool])
    await run.drive()
    assert tool.ran == []
    assert all("cut off" in m["content"] for m in model.requests[1] if m["role"] == "tool")
    assert sum(m["role"] == "tool" for m in model.requests[1]) == 2


async def test_being_cut_again_and_again_fails_with_that_cause() -> None:
    def always_cut(messages: object) -> ChatAnswer:
        return ChatAnswer(
            message=asks(("echo", "{")), usage=Usage(), cost_usd=None, cost_source="unknown", finish_reason="length",
            ttft_ms=1, cut=True,
        )  # fmt: skip

    run = memory_run(ScriptedModel(always_cut), tools=[echo()])
    ended = await run.drive()
    assert ended.status is Status.FAILED
    assert run.log.events[-1].data.error["reason"] == "output_cut"


async def test_a_tool_that_raises_is_an_error_result() -> None:
    async def explode(args: object, context: object) -> str:
        raise ValueError("W\x00s")

    tool = echo("explode")
    tool.work = explode
    model = ScriptedModel([asks(("explode", {})), "ok"])
    run = memory_run(model, tools=[tool])
    assert (await run.drive()).status is Status.COMPLETED
    done = run.log.of("call.completed")[1]
    assert done.status == "error"
    assert "\x00" not in done.result
    assert done.altered == {"nul": 1}


async def test_a_spent_token_fuse_trips_before_the_next_call() -> None:
    model = ScriptedModel(lambda _: asks(("echo", {})), usage=Usage(input=1500, output=600))
    run = memory_run(model, tools=[echo()], limits=limit(max_tokens=2000))
    ended = await run.drive()
    assert ended.status is Status.TRIPPED
    assert run.log.events[-1].data.fuse == "max_tokens"
    assert len(model.requests) == 1


async def test_a_step_fuse_lets_no_call_of_the_batch_run_that_would_pass_it() -> None:
    tool = echo()
    model = ScriptedModel(lambda _: asks(("echo", {}), ("echo", {})))
    run = memory_run(model, tools=[tool], limits=limit(max_steps=3))
    ended = await run.drive()
    assert ended.status is Status.TRIPPED
    assert len(tool.ran) == 2
    ends = [c.status for c in run.log.of("call.completed") if c.operation == "execute_tool"]
    assert sorted(ends[-2:]) == ["blocked", "not_started"]


async def test_a_repeated_wire_id_is_made_unique_and_each_call_gets_its_own_result() -> None:
    twin = asks(("echo", {"say": "a"}), ("echo", {"say": "b"}))
    twin = AssistantMessage(
        text="",
        tool_calls=tuple(type(c)(call=c.call, wire_id="dup_1", name=c.name, args=c.args) for c in twin.tool_calls),
    )
    again = asks(("echo", {"say": "c"}))
    again = AssistantMessage(
        text="",
        tool_calls=tuple(type(c)(call=c.call, wire_id="dup_1", name=c.name, args=c.args) for c in again.tool_calls),
    )
    model = ScriptedModel([twin, again, "ok"])
    run = memory_run(model, tools=[echo()])
    await run.drive()
    results = {m["tool_call_id"]: m["content"] for m in model.requests[-1] if m["role"] == "tool"}
    assert results == {"dup_1": "echo a", "dup_1_2": "echo b", "dup_1_3": "echo c"}
    asked = [c["id"] for m in model.requests[-1] if m["role"] == "assistant" for c in m["tool_calls"]]
    assert asked == list(results)
