"""Questions to people and work for sub-agents."""

import asyncio
from dataclasses import dataclass, field

import pytest

from agents.errors import SpawnRefused, ToolError
from agents.ports import Child, ChildEnd, SpawnRequest
from agents.spec import Status
from tests.agents.tools.conftest import Bench


@dataclass
class FakeChild:
    """A child that ends when it is told to."""

    status: Status = Status.COMPLETED
    final: str = "found it"
    run: str = "child-1"
    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: bool = False

    async def wait(self) -> ChildEnd:
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.stopped = True
            raise
        return ChildEnd(run=self.run, status=self.status, final=self.final)


async def test_a_question_waits_for_a_person(bench: Bench) -> None:
    context = bench.context()
    output = await bench.call("clarify", context, question="Which?", choices=["red", "blue"])
    assert output.text == "the blue one"
    assert context.asked == [("Which?", ["red", "blue"])]


async def test_a_dry_run_asks_nobody_and_starts_nobody(bench: Bench) -> None:
    context = bench.context(dry_run=True)
    assert (await bench.call("clarify", context, question="Which?")).status == "dry_run"
    assert (await bench.call("delegate", context, task="look")).status == "dry_run"
    assert (context.asked, context.spawned) == ([], [])


async def test_the_answer_of_a_sub_agent_is_the_result(bench: Bench) -> None:
    context = bench.context(child=lambda _: child)
    child = FakeChild()
    child.may_end.set()
    output = await bench.call("delegate", context, task="look", agent="scout")
    assert output.text == "found it"
    assert context.spawned == [SpawnRequest(parent=context.run, call=context.call, task="look", agent="scout")]


@pytest.mark.parametrize(
    ("status", "is_error", "told"),
    [
        (Status.EXHAUSTED, False, "used up its turns"),
        (Status.INTERRUPTED, True, "was stopped"),
        (Status.TRIPPED, True, "was stopped by its guard"),
        (Status.FAILED, True, "failed"),
        (Status.LOST, True, "was lost"),
    ],
)
async def test_a_sub_agent_that_did_not_complete_is_told_as_such(
    bench: Bench, status: Status, is_error: bool, told: str
) -> None:
    child = FakeChild(status=status, final="so far")
    child.may_end.set()
    output = await bench.call("delegate", bench.context(child=lambda _: child), task="look")
    assert told in output.text
    assert output.text.endswith("so far")
    assert output.is_error is is_error
    assert output.status == ("stopped" if status is Status.INTERRUPTED else None)


async def test_a_detached_sub_agent_is_not_waited_for(bench: Bench) -> None:
    output = await bench.call("delegate", bench.context(child=lambda _: FakeChild()), task="look", detached=True)
    assert "child-1" in output.text


async def test_a_cancel_reaches_the_sub_agent(bench: Bench) -> None:
    child = FakeChild()
    task = asyncio.create_task(bench.call("delegate", bench.context(child=lambda _: child), task="look"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert child.stopped


async def test_a_refused_sub_agent_is_a_result_not_a_crash(bench: Bench) -> None:
    def refuse(_: SpawnRequest) -> Child:
        raise SpawnRefused("too_many", "this tree has 32 sub-agents already")

    with pytest.raises(ToolError, match="No sub-agent was started: this tree has 32"):
        await bench.call("delegate", bench.context(child=refuse), task="look")
