"""An interrupt ends waits, streams, tools and sub-agents at once, and says truthfully what became of each call."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from agents.commands import CommandKind
from agents.errors import ModelError, WireEvidence
from agents.ports import SpawnRequest, ToolContext
from agents.spec import ConcurrencyClass, Status
from agents.testing import FakeClock, MemorySpawner, ScriptedModel, asks, memory_run
from tests.agents.engine.doubles import FunctionTool, command, deaf, echo, gate, interrupt


class PatientClock(FakeClock):
    """Sleeps really do wait, for ever."""

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        await asyncio.Event().wait()


async def test_an_interrupt_during_a_stream_ends_the_run_at_once() -> None:
    async def hang(messages: object) -> str:
        await asyncio.Event().wait()
        return "never"

    run = memory_run(ScriptedModel(lambda m: hang(m)))
    driving = asyncio.create_task(run.drive())
    await run.log.until("call.started")
    run.inbox.send(interrupt(run.spec.id, "wrong branch"))
    ended = await asyncio.wait_for(driving, 1)
    assert ended.status is Status.INTERRUPTED
    final = run.log.events[-1].data
    assert (final.by, final.reason) == ("ada", "wrong branch")
    assert final.stopped["sockets"] == 1
    assert final.stopped["verified"] is True
    assert run.log.kinds()[-4:] == ["command.received", "run.stopping", "call.completed", "run.interrupted"]


async def test_an_interrupt_ends_a_back_off_wait_and_no_further_call_is_made() -> None:
    model = ScriptedModel(
        lambda _: ModelError("rate_limit", "x", WireEvidence(status=429, headers={"retry-after": "90"}))
    )
    run = memory_run(model, clock=PatientClock())
    driving = asyncio.create_task(run.drive())
    await run.log.until("call.retried")
    run.inbox.send(interrupt(run.spec.id))
    ended = await asyncio.wait_for(driving, 1)
    assert ended.status is Status.INTERRUPTED
    assert len(model.requests) == 1


async def test_every_unanswered_call_gets_a_truthful_result() -> None:
    tool, entered, _ = gate(concurrency=ConcurrencyClass.UNKNOWN)
    model = ScriptedModel([asks(("echo", {"say": "a"}), ("gate", {}), ("echo", {"say": "b"}))])
    run = memory_run(model, tools=[echo(), tool])
    driving = asyncio.create_task(run.drive())
    await entered.wait()
    run.inbox.send(interrupt(run.spec.id))
    await asyncio.wait_for(driving, 1)
    done = [c for c in run.log.of("call.completed") if c.operation == "execute_tool"]
    assert [c.status for c in done] == ["ok", "stopped", "not_started"]


async def test_a_deaf_thread_is_abandoned_told_and_delays_nothing() -> None:
    tool, entered, release = deaf()
    run = memory_run(ScriptedModel([asks(("deaf", {}))]), tools=[tool])
    driving = asyncio.create_task(run.drive())
    await asyncio.to_thread(entered.wait, 5)
    began = time.monotonic()
    run.inbox.send(interrupt(run.spec.id))
    await run.log.until("run.stopping")
    assert time.monotonic() - began < 0.05
    ended = await asyncio.wait_for(driving, 1)
    assert ended.status is Status.INTERRUPTED
    done = run.log.of("call.completed")[1]
    assert done.status == "effect_unknown"
    assert "running, effect unknown" in done.result
    release.set()
    late = await run.log.until("call.late")
    assert late.data.status == "ok"
    assert [k for k in run.log.kinds() if k.startswith("run.")][-1] == "run.interrupted"


async def test_five_presses_stop_the_run_once() -> None:
    tool, entered, _ = gate()
    run = memory_run(ScriptedModel([asks(("gate", {}))]), tools=[tool])
    driving = asyncio.create_task(run.drive())
    await entered.wait()
    for _press in range(5):
        run.inbox.send(interrupt(run.spec.id))
    await asyncio.wait_for(driving, 1)
    assert run.log.kinds().count("run.stopping") == 1
    assert run.log.kinds().count("run.interrupted") == 1


async def test_an_interrupt_that_waited_in_the_inbox_lets_no_model_call_happen() -> None:
    model = ScriptedModel(["never"])
    run = memory_run(model)
    run.inbox.send(interrupt(run.spec.id))
    ended = await run.drive()
    assert ended.status is Status.INTERRUPTED
    assert model.requests == []


async def test_an_interrupt_reaches_sub_agents_and_counts_them() -> None:
    async def delegate(args: Mapping[str, Any], context: ToolContext) -> str:
        child = await context.spawn(SpawnRequest(parent=context.run, call=context.call, task="child work"))
        end = await child.wait()
        return f"{end.status}: {end.final}"

    async def hang(messages: object) -> str:
        await asyncio.Event().wait()
        return ""

    tool = FunctionTool("delegate", delegate)
    parent = memory_run(ScriptedModel([asks(("delegate", {}), ("delegate", {}))]), tools=[tool])

    def ports_of_child(spec: Any, log: Any) -> Any:
        child = memory_run(ScriptedModel(lambda m: hang(m)), spec=spec, log=log)
        return child.running._ports

    spawner = MemorySpawner(parent.spec, ports_of_child)
    parent = memory_run(
        ScriptedModel([asks(("delegate", {}), ("delegate", {}))]), tools=[tool], spec=parent.spec, spawner=spawner
    )
    driving = asyncio.create_task(parent.drive())
    while len(spawner.children) < 2:
        await asyncio.sleep(0.001)
    for child in spawner.children:
        await child.log.until("call.started")
    parent.inbox.send(interrupt(parent.spec.id))
    await asyncio.wait_for(driving, 2)
    assert parent.log.events[-1].data.stopped["children"] == 2
    assert parent.log.events[-1].data.stopped["verified"] is True
    for child in spawner.children:
        assert child.log.kinds()[-1] == "run.interrupted"
        assert child.log.events[-1].data.by == "parent"
    assert [f.status for f in parent.log.of("child.finished")] == ["interrupted", "interrupted"]


async def test_a_question_is_answered_by_a_person_and_the_answer_is_the_result() -> None:
    async def ask(args: Mapping[str, Any], context: ToolContext) -> str:
        answer = await context.ask("v2 or v3?", ["v2", "v3"])
        return f"{answer.by} says: {answer.text}"

    model = ScriptedModel([asks(("ask", {})), "ok"])
    run = memory_run(model, tools=[FunctionTool("ask", ask, concurrency=ConcurrencyClass.NEVER)])
    driving = asyncio.create_task(run.drive())
    waiting = await run.log.until("run.waiting")
    assert waiting.data.choices == ["v2", "v3"]
    run.inbox.send(command(CommandKind.ANSWER, run.spec.id, call=waiting.call, text="v3"))
    assert (await driving).status is Status.COMPLETED
    assert model.requests[1][-1]["content"] == "ada says: v3"


async def test_a_long_wait_for_a_person_parks_the_run() -> None:
    async def ask(args: Mapping[str, Any], context: ToolContext) -> str:
        return (await context.ask("well?", None)).text

    tool = FunctionTool("ask", ask, concurrency=ConcurrencyClass.NEVER)
    run = memory_run(ScriptedModel([asks(("ask", {}))]), tools=[tool], park_after_s=0.05)
    ended = await asyncio.wait_for(run.drive(), 2)
    assert ended.how == "parked"
    assert "run.stopping" not in run.log.kinds()
    # Later, elsewhere: the answer is there, the question is asked again under the same call, the run goes on.
    again = memory_run(ScriptedModel(["done"]), tools=[tool], log=run.log, spec=run.spec, epoch=2)
    call = next(c["call"] for c in run.log.of("call.completed")[0].tool_calls)
    again.inbox.send(command(CommandKind.ANSWER, run.spec.id, call=call, text="yes"))
    assert (await again.drive()).status is Status.COMPLETED
    assert run.log.of("call.completed")[1].result == "yes"
