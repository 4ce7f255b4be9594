"""A run that is asked to leave its worker goes at a border between calls; what is worth finishing is finished."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from agents.spec import ConcurrencyClass, Resume, Status
from agents.testing import MemoryRun, ScriptedModel, asks, memory_run
from agents.tools.clarify import Clarify
from tests.agents.engine.doubles import echo, gate


async def _goes_on(first: MemoryRun, *answers: Any, tools: list[Any]) -> tuple[MemoryRun, ScriptedModel]:
    model = ScriptedModel(list(answers))
    again = memory_run(model, tools=tools, log=first.log, spec=first.spec, epoch=2)
    assert (await again.drive()).status is Status.COMPLETED
    return again, model


async def test_the_running_call_ends_here_and_the_next_one_runs_elsewhere() -> None:
    slow, entered, go_on = gate(concurrency=ConcurrencyClass.UNKNOWN, resume=Resume.UNKNOWN)
    after = echo(concurrency=ConcurrencyClass.UNKNOWN, resume=Resume.UNKNOWN)
    run = memory_run(ScriptedModel([asks(("gate", {}), ("echo", {"say": "x"}))]), tools=[slow, after])
    driving = asyncio.create_task(run.drive())
    await entered.wait()
    run.running.drain(at_border=True)
    done, _ = await asyncio.wait({driving}, timeout=0.05)
    assert not done
    go_on.set()
    assert (await asyncio.wait_for(driving, 2)).how == "drained"
    assert [body.status for body in run.log.of("call.completed")] == ["ok", "ok"]
    assert len(after.ran) == 0
    await _goes_on(run, "done", tools=[slow, after])
    assert (len(slow.ran), len(after.ran)) == (1, 1)
    assert [body.status for body in run.log.of("call.completed")] == ["ok", "ok", "ok", "ok"]


async def test_an_answer_that_is_being_written_is_finished_and_its_calls_run_elsewhere() -> None:
    asked, answer = asyncio.Event(), asyncio.Event()
    tool = echo(concurrency=ConcurrencyClass.UNKNOWN, resume=Resume.UNKNOWN)

    class Slow(ScriptedModel):
        async def ask(self, *args: Any, **more: Any) -> Any:
            asked.set()
            await answer.wait()
            return await super().ask(*args, **more)

    model = Slow([asks(("echo", {"say": "x"})), "never"])
    run = memory_run(model, tools=[tool])
    driving = asyncio.create_task(run.drive())
    await asked.wait()
    run.running.drain(at_border=True)
    answer.set()
    assert (await asyncio.wait_for(driving, 2)).how == "drained"
    assert (len(model.requests), len(tool.ran)) == (1, 0)
    await _goes_on(run, "done", tools=[tool])
    assert len(tool.ran) == 1


async def test_the_last_answer_ends_the_run_where_it_is() -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    class Slow(ScriptedModel):
        async def ask(self, *args: Any, **more: Any) -> Any:
            asked.set()
            await answer.wait()
            return await super().ask(*args, **more)

    run = memory_run(Slow(["done"]))
    driving = asyncio.create_task(run.drive())
    await asked.wait()
    run.running.drain(at_border=True)
    answer.set()
    assert (await asyncio.wait_for(driving, 2)).status is Status.COMPLETED


async def test_a_run_that_only_waits_goes_at_once() -> None:
    model = ScriptedModel([asks(("clarify", {"question": "Which?"}))])
    run = memory_run(model, tools=[Clarify()])
    driving = asyncio.create_task(run.drive())
    await asyncio.wait_for(run.log.until("run.waiting"), 2)
    run.running.drain(at_border=True)
    assert (await asyncio.wait_for(driving, 2)).how == "drained"


async def test_of_calls_side_by_side_the_last_to_end_lets_the_run_go() -> None:
    slow, entered, go_on = gate(concurrency=ConcurrencyClass.SAFE)
    quick = echo(concurrency=ConcurrencyClass.SAFE)
    run = memory_run(ScriptedModel([asks(("gate", {}), ("echo", {"say": "x"}))]), tools=[slow, quick])
    driving = asyncio.create_task(run.drive())
    await entered.wait()
    run.running.drain(at_border=True)
    go_on.set()
    assert (await asyncio.wait_for(driving, 2)).how == "drained"
    assert [body.status for body in run.log.of("call.completed")] == ["ok", "ok", "ok"]


@pytest.mark.parametrize("altered", [True, False])
async def test_calls_that_hold_a_secret_run_before_the_run_goes(altered: bool) -> None:
    slow, entered, go_on = gate(concurrency=ConcurrencyClass.UNKNOWN, resume=Resume.UNKNOWN)
    after = echo(concurrency=ConcurrencyClass.UNKNOWN, resume=Resume.UNKNOWN)
    secret: Mapping[str, str] = {"password": "hunter2-hunter2-hunter2"} if altered else {"say": "x"}
    run = memory_run(ScriptedModel([asks(("gate", {}), ("echo", secret))]), tools=[slow, after])
    driving = asyncio.create_task(run.drive())
    await entered.wait()
    run.running.drain(at_border=True)
    go_on.set()
    assert (await asyncio.wait_for(driving, 2)).how == "drained"
    assert len(after.ran) == int(altered)


async def test_a_call_whose_beginning_is_being_written_runs_before_the_run_goes() -> None:
    tool = echo(concurrency=ConcurrencyClass.UNKNOWN, resume=Resume.UNKNOWN)
    run = memory_run(ScriptedModel([asks(("echo", {"say": "x"}))]), tools=[tool])
    emit = run.log.emit

    def emit_and_leave(*drafts: Any) -> Any:
        written = emit(*drafts)
        if any(draft.kind == "call.started" and draft.body.name == "echo" for draft in drafts):
            run.running.drain(at_border=True)
        return written

    run.log.emit = emit_and_leave  # type: ignore[method-assign]
    assert (await run.drive()).how == "drained"
    assert [body.status for body in run.log.of("call.completed")] == ["ok", "ok"]
    assert len(tool.ran) == 1
