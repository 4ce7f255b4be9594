"""Approvals in a run: asked for alone, decided once, never taken from an old consent, never from silence."""

import asyncio
from dataclasses import replace
from typing import Any

import orjson

from agents.commands import CommandKind
from agents.kinds import CallStarted, RunContinued
from agents.spec import ConcurrencyClass, Resume, Status
from agents.testing import MemoryRun, ScriptedModel, asks, memory_run, memory_spec
from tests.agents.engine.doubles import FunctionTool, command, echo, interrupt

RULES = {"approvals": [{"tool": "push", "why": "pushing is watched"}]}


def push(**changes: Any) -> FunctionTool:
    return echo("push", **{"concurrency": ConcurrencyClass.UNKNOWN, "resume": Resume.UNKNOWN, **changes})


def watched(script: Any, *tools: FunctionTool, rules: Any = RULES, **more: Any) -> MemoryRun:
    return memory_run(ScriptedModel(script), tools=tools, spec=memory_spec(policy_body=rules), **more)


def decide(run: MemoryRun, call: str, decision: str, **args: Any) -> None:
    run.inbox.send(command(CommandKind.ANSWER, run.spec.id, call=call, decision=decision, **args))


async def asked(run: MemoryRun, times: int = 1) -> Any:
    """The run.waiting event of the so-manieth approval."""
    while len(found := [e for e in run.log.events if e.kind == "run.waiting"]) < times:
        await asyncio.sleep(0)
    return found[-1]


def results(run: MemoryRun) -> dict[str, tuple[str, str]]:
    return {b.name: (b.status, b.result) for b in run.log.of("call.completed") if b.operation == "execute_tool"}


async def test_an_approved_call_runs_as_it_was_asked_for():
    tool = push()
    run = watched([asks(("push", {"say": "main"})), "done"], tool)
    drive = asyncio.create_task(run.drive())
    event = await asked(run)
    assert (event.data.reason, event.data.name) == ("approval", "push")
    assert event.data.text == "push main (pushing is watched)"
    assert orjson.loads(event.data.args) == {"say": "main"}
    assert tool.ran == []
    decide(run, event.call, "approve")
    assert (await drive).status is Status.COMPLETED
    assert tool.ran == [{"say": "main"}]
    assert [e.kind for e in run.log.events if e.call == event.call] == [
        "run.waiting",
        "run.continued",
        "call.started",
        "call.completed",
    ]
    assert run.log.of("run.continued")[0].decision == "approve"


async def test_a_denied_call_does_not_run_and_the_model_reads_who_and_why():
    tool = push()
    run = watched([asks(("push", {})), "done"], tool)
    drive = asyncio.create_task(run.drive())
    decide(run, (await asked(run)).call, "deny", reason="not on a Friday")
    assert (await drive).status is Status.COMPLETED
    status, text = results(run)["push"]
    assert status == "denied" and "a person (ada) denied" in text and "not on a Friday" in text
    assert tool.ran == [] and not [b for b in run.log.of("call.started") if b.name == "push"]


async def test_where_nobody_can_be_asked_no_person_is_said_to_have_denied():
    tool = push()
    run = watched([asks(("push", {})), "done"], tool)
    drive = asyncio.create_task(run.drive())
    event = await asked(run)
    nobody = replace(command(CommandKind.ANSWER, run.spec.id, call=event.call, decision="deny"), by="system")
    run.inbox.send(nobody)
    await drive
    assert results(run)["push"][0] == "denied" and "nobody can be asked" in results(run)["push"][1]


async def test_an_edited_call_runs_with_the_new_arguments_and_the_model_is_told():
    tool = push()
    run = watched([asks(("push", {"say": "main"})), "done"], tool)
    drive = asyncio.create_task(run.drive())
    decide(run, (await asked(run)).call, "edit", args={"say": "branch"})
    await drive
    assert tool.ran == [{"say": "branch"}]
    status, text = results(run)["push"]
    assert status == "ok" and text.startswith('[ada changed the arguments of this call before it ran: {"say"')
    started = next(b for b in run.log.of("call.started") if b.name == "push")
    assert orjson.loads(started.args) == {"say": "branch"}


async def test_arguments_that_do_not_fit_are_asked_for_again():
    class Strict(FunctionTool):
        @property
        def spec(self) -> Any:
            schema = {"type": "object", "properties": {"say": {"type": "string"}}, "required": ["say"]}
            return replace(FunctionTool.spec.fget(self), parameters=schema)  # type: ignore[attr-defined]

    made = push()
    tool = Strict(made.name, made.work, made.concurrency, made.resume)
    run = watched([asks(("push", {"say": "a"})), "done"], tool)
    drive = asyncio.create_task(run.drive())
    decide(run, (await asked(run)).call, "edit", args={"say": 3})
    again = await asked(run, 2)
    assert "do not fit" in again.data.text
    decide(run, again.call, "edit", args={"say": "[redacted:api_key]"})
    again = await asked(run, 3)
    assert "marker in place of a secret" in again.data.text
    decide(run, again.call, "approve")
    await drive
    assert tool.ran == [{"say": "a"}]
    assert [b.decision for b in run.log.of("run.continued")] == ["edit", "edit", "approve"]
    assert [bool(b.problem) for b in run.log.of("run.continued")] == [True, True, False]


async def test_two_calls_of_a_batch_are_asked_for_one_after_the_other_and_the_others_run_beside():
    tool, free = push(), echo("free")
    four = asks(("free", {}), ("push", {"say": "1"}), ("free", {}), ("push", {"say": "2"}))
    run = watched([four, "done"], tool, free)
    drive = asyncio.create_task(run.drive())
    first = await asked(run)
    assert len(free.ran) == 1 and tool.ran == []
    decide(run, first.call, "approve")
    second = await asked(run, 2)
    assert second.call != first.call and len(free.ran) == 2
    decide(run, second.call, "deny")
    await drive
    assert tool.ran == [{"say": "1"}]


async def test_a_consent_is_used_up_by_one_call():
    tool = push()
    run = watched([asks(("push", {"say": "x"})), asks(("push", {"say": "x"})), "done"], tool)
    drive = asyncio.create_task(run.drive())
    decide(run, (await asked(run)).call, "approve")
    again = await asked(run, 2)
    assert len(tool.ran) == 1
    decide(run, again.call, "approve")
    await drive
    assert len(tool.ran) == 2


async def test_a_wait_that_grows_long_parks_the_run_and_denies_nothing():
    tool = push()
    run = watched([asks(("push", {})), "done"], tool, park_after_s=0.02)
    assert (await run.drive()).how == "parked"
    assert not [b for b in run.log.of("call.completed") if b.name == "push"]
    later = memory_run(ScriptedModel(["done"]), tools=[tool], spec=run.spec, log=run.log, epoch=2)
    decide(later, run.log.of("run.waiting")[0].call, "approve")
    assert (await later.drive()).status is Status.COMPLETED
    assert len(tool.ran) == 1


async def cut_after(run: MemoryRun, kind: type) -> MemoryRun:
    """The run as another worker finds it whose predecessor died right after its last event of this kind."""
    at = max(n for n, event in enumerate(run.log.events) if isinstance(event.data, kind))
    del run.log.events[at + 1 :], run.log.bodies[at + 1 :]
    return run


async def test_a_recorded_consent_holds_for_the_next_worker():
    tool = push()
    run = watched([asks(("push", {"say": "a"})), "done"], tool)
    drive = asyncio.create_task(run.drive())
    decide(run, (await asked(run)).call, "edit", args={"say": "b"})
    await drive
    await cut_after(run, RunContinued)
    later = memory_run(ScriptedModel(["done"]), tools=[tool], spec=run.spec, log=run.log, epoch=2)
    await later.drive()
    assert tool.ran == [{"say": "b"}, {"say": "b"}]
    assert len(run.log.of("run.waiting")) == 1


async def test_a_call_that_had_started_is_asked_for_again_before_it_is_rerun():
    tool = push(concurrency=ConcurrencyClass.SAFE, resume=Resume.RERUN)
    run = watched([asks(("push", {"say": "a"})), "done"], tool)
    drive = asyncio.create_task(run.drive())
    decide(run, (await asked(run)).call, "approve")
    await drive
    await cut_after(run, CallStarted)
    while run.log.events[-1].data.name != "push":
        run.log.events.pop()
        await cut_after(run, CallStarted)
    later = memory_run(ScriptedModel(["done"]), tools=[tool], spec=run.spec, log=run.log, epoch=2)
    drive = asyncio.create_task(later.drive())
    again = await asked(later, 2)
    assert len(tool.ran) == 1
    decide(later, again.call, "deny")
    await drive
    assert len(tool.ran) == 1


async def test_an_interrupt_ends_the_wait_at_once():
    tool = push()
    run = watched([asks(("push", {})), "done"], tool)
    drive = asyncio.create_task(run.drive())
    await asked(run)
    run.inbox.send(interrupt(run.spec.id))
    ended = await asyncio.wait_for(drive, 0.2)
    assert ended.status is Status.INTERRUPTED and tool.ran == []
    assert results(run)["push"][0] == "not_started"


async def test_a_policy_whose_rules_cannot_be_read_runs_nothing():
    run = watched([asks(("push", {}))], push(), rules={"approvals": [{"tool": 3}]})
    assert (await run.drive()).status is Status.FAILED
    assert run.log.of("run.failed")[0].error["reason"] == "bad_approvals"


async def test_a_dry_run_asks_for_nothing_that_would_not_be_done():
    tool = push()
    run = memory_run(
        ScriptedModel([asks(("push", {})), "done"]), tools=[tool], spec=memory_spec(policy_body=RULES, dry_run=True)
    )
    assert (await run.drive()).status is Status.COMPLETED
    assert "run.waiting" not in run.log.kinds()
