"""Commands that cross each other, the end of the run, or the birth of a sub-agent."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from agents.commands import CommandKind
from agents.engine.local import SystemClock
from agents.errors import ModelError, WireEvidence
from agents.kinds import FINAL_KINDS
from agents.ports import Child, SpawnRequest, ToolContext
from agents.spec import ConcurrencyClass, Resume, Status
from agents.testing import MemoryLog, MemoryRun, MemorySpawner, ScriptedModel, asks, memory_run, memory_spec
from tests.agents.engine.doubles import FunctionTool, command, echo


def send(run: MemoryRun, kind: CommandKind, **args: Any) -> None:
    run.inbox.send(command(kind, run.spec.id, **args))


class Slow(MemoryLog):
    """A log in which events of one kind become durable only when a test says so."""

    def __init__(self, run: str, kind: str) -> None:
        super().__init__(run)
        self.queue("do it")
        self.slow = kind
        self.emitted, self.durable = asyncio.Event(), asyncio.Event()

    def emit(self, *drafts: Any) -> Any:
        done = super().emit(*drafts)
        if not any(item.kind == self.slow for item in drafts):
            return done
        self.emitted.set()

        async def later() -> int:
            await self.durable.wait()
            return await done

        return asyncio.ensure_future(later())


def others() -> set["asyncio.Task[Any]"]:
    return asyncio.all_tasks() - {asyncio.current_task()}  # type: ignore[arg-type]


async def test_an_interrupt_of_a_paused_run_leaves_no_task_behind() -> None:
    before = others()
    run = memory_run(ScriptedModel(["never"]))
    send(run, CommandKind.PAUSE, when="before_call")
    driving = asyncio.create_task(run.drive())
    await run.log.until("run.waiting")
    send(run, CommandKind.INTERRUPT)
    assert (await driving).status is Status.INTERRUPTED
    for _turn_of_the_loop in range(3):
        await asyncio.sleep(0)
    assert others() <= before


async def test_an_unpause_in_the_moment_of_parking_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    run = memory_run(ScriptedModel(["done"]), park_after_s=60)
    send(run, CommandKind.PAUSE, when="before_call")
    patient = asyncio.wait

    async def over(waited: Any, **how: Any) -> Any:
        """The patience ends, and in the same turn of the loop the person acts."""
        if how.get("timeout") != 60:
            return await patient(waited, **how)
        await asyncio.sleep(0)
        run.running.control.accept(command(CommandKind.UNPAUSE, run.spec.id))
        return set(), set(waited)

    monkeypatch.setattr("agents.engine.control.asyncio.wait", over)
    assert (await run.drive()).status is Status.COMPLETED


@pytest.mark.parametrize("kind", [CommandKind.STEER, CommandKind.INTERRUPT, CommandKind.PAUSE])
async def test_what_comes_while_the_end_is_written_changes_nothing_any_more(kind: CommandKind) -> None:
    spec = memory_spec()
    log = Slow(spec.id, "run.completed")
    run = memory_run(ScriptedModel(["done"]), spec=spec, log=log)
    driving = asyncio.create_task(run.drive())
    await log.emitted.wait()
    send(run, kind, note="too late")
    for _turn_of_the_loop in range(3):
        await asyncio.sleep(0)
    log.durable.set()
    assert (await driving).status is Status.COMPLETED
    assert log.kinds()[-1] == "run.completed"


async def test_one_end_and_one_result_per_call_wherever_the_interrupt_meets_the_run() -> None:
    for moment in range(60):
        run = memory_run(ScriptedModel([asks(("echo", {}), ("echo", {})), "done"]), tools=[echo()])
        driving = asyncio.create_task(run.drive())
        for _turn_of_the_loop in range(moment):
            await asyncio.sleep(0)
        send(run, CommandKind.INTERRUPT)
        await driving
        kinds = run.log.kinds()
        assert [kind for kind in kinds if kind in FINAL_KINDS] == kinds[-1:]
        done = [event.call for event in run.log.events if event.kind == "call.completed"]
        asked = [call["call"] for body in run.log.of("call.completed") for call in body.tool_calls or ()]
        assert len(done) == len(set(done))
        assert set(asked) <= set(done)


async def _hang(messages: object) -> str:
    await asyncio.Event().wait()
    return ""


async def _delegate(args: Mapping[str, Any], context: ToolContext) -> str:
    child = await context.spawn(SpawnRequest(parent=context.run, call=context.call, task="child work"))
    return (await child.wait()).final


@pytest.mark.parametrize("moment", ["made but not handed out", "handed out but not durable"])
async def test_a_child_born_in_the_moment_of_the_stop_is_stopped_and_listed(moment: str) -> None:
    spec = memory_spec()
    log = Slow(spec.id, "child.started" if "durable" in moment else "never")
    made, handed = asyncio.Event(), asyncio.Event()

    class Spawner(MemorySpawner):
        async def spawn(self, request: SpawnRequest) -> Child:
            child = await super().spawn(request)
            made.set()
            if "made" in moment:
                await handed.wait()
            return child

    spawner = Spawner(spec, lambda spec, log: memory_run(ScriptedModel(_hang), spec=spec, log=log).running._ports)
    tool = FunctionTool("delegate", _delegate)
    run = memory_run(ScriptedModel([asks(("delegate", {}))]), tools=[tool], spec=spec, log=log, spawner=spawner)
    driving = asyncio.create_task(run.drive())
    await (made if "made" in moment else log.emitted).wait()
    send(run, CommandKind.INTERRUPT)
    await log.until("run.stopping")
    handed.set()
    ended = await asyncio.wait_for(driving, 3)
    assert ended.stopped["children"] == 1
    [child] = spawner.children
    assert child.log.kinds()[-1] == "run.interrupted"
    assert [kind for kind in log.kinds() if kind.startswith("child.")] == ["child.started", "child.finished"]


async def test_a_call_whose_secret_the_log_hides_is_not_run_with_the_marker_after_a_resume() -> None:
    async def ask(args: Mapping[str, Any], context: ToolContext) -> str:
        return (await context.ask("Go on?", None)).text

    question = FunctionTool("ask", ask, concurrency=ConcurrencyClass.NEVER)
    login = echo("login", concurrency=ConcurrencyClass.UNKNOWN, resume=Resume.UNKNOWN)
    asked = asks(("ask", {}), ("login", {"password": "tr0ub4dor&3"}), ("login", {"say": "plain"}))
    first = memory_run(ScriptedModel([asked]), tools=[question, login], park_after_s=0.001)
    assert (await first.drive()).how == "parked"
    second = memory_run(ScriptedModel(["done"]), tools=[question, login], spec=first.spec, log=first.log)
    send(second, CommandKind.ANSWER, call=first.log.of("run.waiting")[0].call, text="yes")
    assert (await second.drive()).status is Status.COMPLETED
    assert login.ran == [{"say": "plain"}]
    done = [c for c in second.log.of("call.completed") if c.name == "login"]
    assert sorted(c.status for c in done) == ["not_started", "ok"]
    assert "Send the call again" in next(c.result for c in done if c.status == "not_started")


async def test_a_raise_that_makes_no_sense_does_not_end_the_run() -> None:
    run = memory_run(ScriptedModel(["done"]))
    send(run, CommandKind.RAISE, limits={"max_turns": "many"})
    assert (await run.drive()).status is Status.COMPLETED


async def test_an_unpause_that_a_pause_follows_at_once_parks_nothing() -> None:
    for park_after_s in (0, 60):
        run = memory_run(ScriptedModel(["done"]), park_after_s=park_after_s)
        send(run, CommandKind.PAUSE, when="before_call")
        driving = asyncio.create_task(run.drive())
        await run.log.until("run.waiting")
        send(run, CommandKind.UNPAUSE)
        send(run, CommandKind.PAUSE, when="before_call")
        for _turn_of_the_loop in range(5):
            await asyncio.sleep(0)
        assert not driving.done() and not run.log.of("run.continued")
        send(run, CommandKind.UNPAUSE)
        assert (await driving).status is Status.COMPLETED


async def test_a_pause_right_behind_the_unpause_of_a_quota_wait_holds_the_run() -> None:
    broke = ModelError("billing", "Insufficient credits", WireEvidence(status=402))
    run = memory_run(ScriptedModel([broke, "done"]), park_after_s=60, clock=SystemClock())
    driving = asyncio.create_task(run.drive())
    await run.log.until("run.waiting")
    send(run, CommandKind.UNPAUSE)
    send(run, CommandKind.PAUSE, when="before_call")
    while len(run.log.of("run.waiting")) < 2:
        await asyncio.sleep(0)
        assert not driving.done()
    send(run, CommandKind.UNPAUSE)
    assert (await driving).status is Status.COMPLETED
    assert [one.reason for one in run.log.of("run.waiting")] == ["quota", "pause"]
