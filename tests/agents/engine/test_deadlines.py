"""The clocks of a run: wall clock and working time, at a border and in the middle of a call."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from agents.commands import CommandKind
from agents.engine.local import SystemClock
from agents.policy.limits import limits_from
from agents.ports import ToolContext
from agents.spec import Status
from agents.testing import FakeClock, ScriptedModel, asks, memory_run, memory_spec
from tests.agents.engine.doubles import FunctionTool, command, gate


async def test_a_run_trips_in_the_middle_of_a_tool_when_its_time_is_up() -> None:
    tool, entered, _ = gate()
    run = memory_run(
        ScriptedModel([asks(("gate", {})), "never"]),
        tools=[tool],
        clock=SystemClock(),
        limits=limits_from({"max_seconds": 1}, "request"),
    )
    began = time.monotonic()
    ended = await run.drive()
    assert entered.is_set()
    assert (ended.status, run.log.events[-1].data.fuse) == (Status.TRIPPED, "max_seconds")
    assert time.monotonic() - began < 5
    assert [c.status for c in run.log.of("call.completed") if c.operation == "execute_tool"] == ["stopped"]


async def test_a_raised_clock_lets_the_running_call_go_on() -> None:
    tool, entered, release = gate()
    run = memory_run(
        ScriptedModel([asks(("gate", {})), "done"]),
        tools=[tool],
        clock=SystemClock(),
        limits=limits_from({"max_seconds": "0.4"}, "request"),
    )
    driving = asyncio.create_task(run.drive())
    await entered.wait()
    run.inbox.send(command(CommandKind.RAISE, run.spec.id, limits={"max_seconds": 60}))
    await run.log.until("fuse.raised")
    await asyncio.sleep(0.6)  # past the old limit
    assert not driving.done()
    release.set()
    assert (await driving).status is Status.COMPLETED


async def test_waiting_for_a_person_is_no_working_time() -> None:
    clock = FakeClock()

    async def ask(args: Mapping[str, Any], context: ToolContext) -> str:
        return (await context.ask("Which?", None)).text

    async def work(args: Mapping[str, Any], context: ToolContext) -> str:
        clock.advance(40)
        return "worked"

    answers = [asks(("ask", {})), asks(("work", {"n": 1})), asks(("work", {"n": 2})), asks(("work", {"n": 3})), "done"]
    spec = memory_spec(policy="own", policy_body={"fuses": {"max_working_seconds": 100}})
    run = memory_run(
        ScriptedModel(answers), tools=[FunctionTool("ask", ask), FunctionTool("work", work)], clock=clock, spec=spec
    )
    driving = asyncio.create_task(run.drive())
    asked = await run.log.until("run.waiting")
    clock.advance(5_000)
    run.inbox.send(command(CommandKind.ANSWER, run.spec.id, call=asked.call, text="this one"))
    ended = await driving
    assert (ended.status, run.log.events[-1].data.fuse) == (Status.TRIPPED, "max_working_seconds")
    assert len(run.log.of("call.completed")) == 8


async def test_time_without_a_worker_is_no_working_time_and_a_resumed_run_keeps_its_clock() -> None:
    clock = FakeClock()

    async def work(args: Mapping[str, Any], context: ToolContext) -> str:
        clock.advance(60)
        return "worked"

    spec = memory_spec(policy="own", policy_body={"fuses": {"max_working_seconds": 100}})
    script = ScriptedModel(lambda messages: asks(("work", {"n": len(messages)})) if len(messages) < 5 else "done")
    first = memory_run(script, tools=[FunctionTool("work", work)], clock=clock, spec=spec)
    await first.drive()
    half = type(first.log)(spec.id)
    upto = next(n for n, e in enumerate(first.log.events) if e.kind == "turn.completed") + 1
    half.events[:], half.bodies[:] = first.log.events[:upto], first.log.bodies[:upto]
    later = FakeClock(half.events[-1].at)
    later.advance(10_000)
    clock = later
    resumed = memory_run(
        ScriptedModel(["done"]), tools=[FunctionTool("work", work)], clock=later, spec=spec, log=half, epoch=2
    )
    assert (await resumed.drive()).status is Status.COMPLETED


async def test_a_policy_that_cannot_be_read_does_not_run_without_a_guard() -> None:
    spec = memory_spec(policy="own", policy_body={"rules": {"no_such_rule": {"stop": 1}}})
    run = memory_run(ScriptedModel(["done"]), spec=spec)
    ended = await run.drive()
    assert ended.status is Status.FAILED
    assert "no_such_rule" in run.log.events[-1].data.error["message"]
