"""A run resumes at its last complete call: finished stays, reads rerun, other started calls are effect unknown."""

import asyncio

import pytest

from agents.commands import CommandKind
from agents.engine.transcript import Transcript
from agents.policy.limits import limits_from
from agents.spec import ConcurrencyClass, Resume, Status
from agents.testing import MemoryLog, MemoryRun, ScriptedModel, asks, memory_run
from tests.agents.engine.doubles import command, echo, gate


def crash(run: MemoryRun, upto: int) -> MemoryLog:
    """The log as a dead worker left it after `upto` events."""
    log = MemoryLog(run.spec.id)
    log.events = run.log.events[:upto]
    log.bodies = run.log.bodies[:upto]
    return log


def fold(log: MemoryLog) -> Transcript:
    transcript = Transcript()
    for event in log.events:
        transcript.apply(event.data, turn=event.turn, call=event.call, at=event.at)
    return transcript


async def test_started_calls_with_an_effect_are_told_as_unknown_and_not_run_again() -> None:
    tool, entered, _ = gate(concurrency=ConcurrencyClass.UNKNOWN, resume=Resume.UNKNOWN)
    first = memory_run(ScriptedModel([asks(("gate", {}))]), tools=[tool])
    driving = asyncio.create_task(first.drive())
    await entered.wait()
    log = crash(first, len(first.log.events))
    driving.cancel()
    model = ScriptedModel(["ok"])
    again = memory_run(model, tools=[tool], log=log, spec=first.spec, epoch=2)
    assert (await again.drive()).status is Status.COMPLETED
    assert len(tool.ran) == 1
    assert log.of("call.completed")[1].status == "effect_unknown"
    assert "unknown" in model.requests[0][-1]["content"]


async def test_a_run_may_die_after_any_event_and_still_ends_complete_with_no_effect_twice() -> None:
    tool = echo(concurrency=ConcurrencyClass.UNKNOWN, resume=Resume.UNKNOWN)
    reader = echo("reader")
    script = [asks(("echo", {"say": "1"}), ("reader", {})), asks(("echo", {"say": "2"})), "done"]

    def by_turn(messages: list[dict[str, object]]) -> object:
        return script[sum(m["role"] == "assistant" for m in messages)]

    whole = memory_run(ScriptedModel(by_turn), tools=[tool, reader])
    await whole.drive()
    for upto in range(1, len(whole.log.events)):
        tool.ran.clear()
        log = crash(whole, upto)
        finished = {e.call for e in log.events if e.kind == "call.completed"}
        started = {e.call for e in log.events if e.kind == "call.started" and e.data.name == "echo"}
        again = memory_run(ScriptedModel(by_turn), tools=[tool, reader], log=log, spec=whole.spec, epoch=2)
        ended = await again.drive()
        assert ended.status is Status.COMPLETED, upto
        assert ended.final == "done"
        assert len(tool.ran) == 2 - len(started), upto
        statuses = [c.status for c in log.of("call.completed") if c.name == "echo"]
        assert statuses.count("effect_unknown") == len(started - finished), upto
        assert len([c for c in log.of("call.completed") if c.operation == "execute_tool"]) == 3, upto


async def test_the_fold_of_the_log_equals_what_the_live_run_sent() -> None:
    model = ScriptedModel([asks(("echo", {"say": "x"}), text="thinking"), "done"])
    run = memory_run(model, tools=[echo()])
    await run.drive()
    rebuilt = fold(run.log)
    assert rebuilt.messages == run.running.transcript.messages
    assert [model.encode_message(m) for m in rebuilt.messages][:3] == [
        model.encode_message(m) for m in run.running.transcript.messages
    ][:3]


@pytest.mark.parametrize("press", ["stop", "drain"])
async def test_a_drained_run_goes_on_from_its_log_where_a_stopped_one_does_not(press: str) -> None:
    tool, entered, _ = gate(concurrency=ConcurrencyClass.UNKNOWN, resume=Resume.UNKNOWN)
    run = memory_run(ScriptedModel([asks(("gate", {}))]), tools=[tool])
    driving = asyncio.create_task(run.drive())
    await entered.wait()
    if press == "stop":
        run.running.stop(by="ada")
    else:
        run.running.drain()
    ended = await asyncio.wait_for(driving, 2)
    assert ended.how == ("final" if press == "stop" else "drained")
    if press == "drain":
        model = ScriptedModel(["went on"])
        again = memory_run(model, tools=[tool], log=run.log, spec=run.spec, epoch=2)
        assert (await again.drive()).status is Status.COMPLETED
        assert "Stopped after" in model.requests[0][-1]["content"]


async def test_a_fenced_run_writes_nothing_more_and_ends_its_tools() -> None:
    tool, entered, _ = gate()
    run = memory_run(ScriptedModel([asks(("gate", {}))]), tools=[tool])
    driving = asyncio.create_task(run.drive())
    await entered.wait()
    run.log.fenced = True
    seen = len(run.log.events)
    run.running.fenced()
    ended = await asyncio.wait_for(driving, 2)
    assert ended.how == "fenced"
    assert len(run.log.events) == seen


@pytest.mark.parametrize("how", ["dies", "drained", "parked"])
async def test_a_paused_run_stays_paused_when_its_worker_goes(how: str) -> None:
    tool = echo()
    first = memory_run(ScriptedModel([asks(("echo", {}))]), tools=[tool], park_after_s=0.01 if how == "parked" else 600)
    first.inbox.send(command(CommandKind.PAUSE, first.spec.id))
    driving = asyncio.create_task(first.drive())
    await first.log.until("run.waiting")
    if how == "dies":
        driving.cancel()
    elif how == "drained":
        first.running.drain()
    if how != "dies":
        assert (await driving).how == how
    log = crash(first, len(first.log.events))
    again = memory_run(ScriptedModel(["done"]), tools=[tool], log=log, spec=first.spec, epoch=2)
    driving = asyncio.create_task(again.drive())
    while len(log.of("run.waiting")) < 2:
        await asyncio.sleep(0)
        assert not driving.done()
    again.inbox.send(command(CommandKind.UNPAUSE, first.spec.id))
    assert (await driving).status is Status.COMPLETED


async def test_a_parked_pause_that_was_ended_is_over() -> None:
    first = memory_run(ScriptedModel([]), park_after_s=0.01)
    first.inbox.send(command(CommandKind.PAUSE, first.spec.id, when="before_call"))
    assert (await first.drive()).how == "parked"
    again = memory_run(ScriptedModel(["done"]), log=first.log, spec=first.spec, epoch=2)
    again.inbox.send(command(CommandKind.UNPAUSE, first.spec.id))
    assert (await again.drive()).status is Status.COMPLETED
    assert len(first.log.of("run.waiting")) == 1
    assert not fold(first.log).paused


async def test_a_raised_limit_stays_raised_when_the_worker_changes() -> None:
    script = [asks(("echo", {})), asks(("echo", {})), "done"]
    first = memory_run(ScriptedModel(script), tools=[echo()], limits=limits_from({"max_steps": 1}, "request"))
    first.inbox.send(command(CommandKind.RAISE, first.spec.id, limits={"max_steps": "5"}))
    first.inbox.send(command(CommandKind.PAUSE, first.spec.id))
    driving = asyncio.create_task(first.drive())
    await first.log.until("run.waiting")
    first.running.drain()
    assert (await driving).how == "drained"
    again = memory_run(ScriptedModel(script[1:]), tools=[echo()], log=first.log, spec=first.spec, epoch=2)
    again.inbox.send(command(CommandKind.UNPAUSE, first.spec.id))
    assert (await again.drive()).status is Status.COMPLETED
    limit = again.running.control.limits.max_steps
    assert limit is not None and limit.source == "raised"
