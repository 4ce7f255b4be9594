"""Tools that return nonsense, end themselves, swallow their cancel or pile up: the run outlives them and says so."""

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from agents.commands import CommandKind
from agents.engine import call_context
from agents.engine.tool_batch import RESULT_LIMIT
from agents.messages import ToolMessage
from agents.ports import Edit, ToolContext, ToolOutput
from agents.spec import ConcurrencyClass, Resume, Status
from agents.testing import MemoryLog, MemoryRun, ScriptedModel, asks, memory_run, memory_spec
from tests.agents.engine.doubles import FunctionTool, command, echo


class Bare(FunctionTool):
    """Hands on whatever its work returns."""

    async def run(self, args: Any, context: ToolContext) -> Any:
        made = self.work(args, context)
        return await made if isinstance(made, Awaitable) else made


def interrupt(run: MemoryRun) -> None:
    run.inbox.send(command(CommandKind.INTERRUPT, run.spec.id))


def results(run: MemoryRun) -> list[tuple[str, str]]:
    done = [c for c in run.log.of("call.completed") if c.operation == "execute_tool"]
    return [(c.status, c.result) for c in done]


@pytest.mark.parametrize("made", [None, "text", b"bytes", ToolOutput(text=None), ToolOutput(text="", status="odd")])  # type: ignore[arg-type]
async def test_a_tool_that_returns_nonsense_is_an_error_result(made: object) -> None:
    run = memory_run(ScriptedModel([asks(("odd", {})), "done"]), tools=[Bare("odd", lambda args, context: made)])
    assert (await run.drive()).status is Status.COMPLETED
    assert [status for status, _ in results(run)] == ["error"]


async def ends_itself(args: Any, context: ToolContext) -> None:
    sys.exit(3)


async def cancels_itself(args: Any, context: ToolContext) -> None:
    raise asyncio.CancelledError


def in_thread(work: Callable[[], Any]) -> Callable[[Any, ToolContext], Any]:
    return lambda args, context: context.in_thread(work)


@pytest.mark.parametrize(
    ("work", "word"),
    [
        (ends_itself, "SystemExit"),
        (cancels_itself, "CancelledError"),
        (in_thread(lambda: sys.exit(3)), "SystemExit"),
        (in_thread(lambda: next(iter(()))), "StopIteration"),
    ],
)
async def test_whatever_a_tool_raises_ends_neither_the_run_nor_the_worker(work: Any, word: str) -> None:
    run = memory_run(ScriptedModel([asks(("odd", {})), "done"]), tools=[Bare("odd", work)])
    ended = await asyncio.wait_for(run.drive(), 5)
    assert ended.status is Status.COMPLETED
    [(status, text)] = results(run)
    assert (status, word in text) == ("error", True)


def stubborn(release: asyncio.Event, **changes: Any) -> FunctionTool:
    async def work(args: Any, context: ToolContext) -> str:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                pass
        return "late"

    return FunctionTool("stubborn", work, resume=Resume.UNKNOWN, **changes)


async def test_a_tool_that_swallows_its_cancel_is_left_behind_told_and_its_end_only_noted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agents.engine.tool_call.STOP_GRACE_S", 0.05)
    release = asyncio.Event()
    run = memory_run(ScriptedModel([asks(("stubborn", {}))]), tools=[stubborn(release)])
    driving = asyncio.create_task(run.drive())
    started = await run.log.until("call.started", lambda body: body.operation != "chat")
    interrupt(run)
    ended = await asyncio.wait_for(driving, 2)
    assert ended.stopped["abandoned"] == [started.call]
    assert (ended.stopped["verified"], "cannot be ended" in ended.stopped["why"]) == (False, True)
    assert [status for status, _ in results(run)] == ["effect_unknown"]
    release.set()
    late = await run.log.until("call.late")
    assert late.call == started.call
    assert run.log.kinds()[-2:] == ["run.interrupted", "call.late"]


async def test_a_timeout_holds_for_a_tool_that_swallows_its_cancel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.engine.tool_call.STOP_GRACE_S", 0.05)
    release = asyncio.Event()
    tool = stubborn(release, timeout_s=0.05)
    run = memory_run(ScriptedModel([asks(("stubborn", {})), "done"]), tools=[tool])
    ended = await asyncio.wait_for(run.drive(), 2)
    assert ended.status is Status.COMPLETED
    [(status, text)] = results(run)
    assert (status, "still running" in text) == ("timeout", True)
    release.set()


async def test_threads_that_were_given_up_are_listed_and_there_is_an_end_to_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = threading.Event()
    monkeypatch.setattr(call_context, "MAX_DEAF", call_context.POOL.deaf + 8)
    tool = Bare("deaf", in_thread(lambda: release.wait(30)), timeout_s=0.05, resume=Resume.UNKNOWN)
    eight = asks(*[("deaf", {})] * 8)
    run = memory_run(ScriptedModel([eight, eight, asks(("hang", {}))]), tools=[tool, (hang := Bare("hang", _hang))])
    driving = asyncio.create_task(run.drive())
    await run.log.until("call.started", lambda body: body.name == "hang")
    interrupt(run)
    ended = await asyncio.wait_for(driving, 5)
    assert hang.ran == []
    assert [status for status, _ in results(run)][:16] == ["timeout"] * 8 + ["error"] * 8
    assert "cannot be ended" in results(run)[8][1]
    assert len(ended.stopped["abandoned"]) == 8
    release.set()
    while len(run.log.of("call.late")) < 8:
        await asyncio.sleep(0.001)
    # Now that they have ended, threads are to be had again; `True` is no output, but that is the tool's own fault.
    again = memory_run(ScriptedModel([asks(("deaf", {})), "done"]), tools=[tool])
    assert (await again.drive()).status is Status.COMPLETED
    assert "bool" in results(again)[0][1]


async def _hang(args: Any, context: ToolContext) -> None:
    await asyncio.Event().wait()


class SlowStore(MemoryLog):
    """A log whose artifacts take their time; `storing` tells that one is on its way."""

    def __init__(self, run: str) -> None:
        super().__init__(run)
        self.storing, self.stored = asyncio.Event(), asyncio.Event()

    async def put(self, content: bytes) -> Any:
        if content == b"new":
            self.storing.set()
            await self.stored.wait()
        return await super().put(content)


async def test_a_stop_while_a_result_is_written_loses_neither_the_result_nor_its_edit() -> None:
    async def write(args: Any, context: ToolContext) -> ToolOutput:
        edit = Edit(path="a", before_sha256=None, sha256="0" * 64, size=3, state="made", content=b"new")
        return ToolOutput(text="Made a.", edits=(edit,))

    spec = memory_spec()
    log = SlowStore(spec.id)
    log.queue("x")
    tool = FunctionTool("write", write, concurrency=ConcurrencyClass.PATH, resume=Resume.UNKNOWN)
    run = memory_run(ScriptedModel([asks(("write", {}))]), tools=[tool], spec=spec, log=log)
    driving = asyncio.create_task(run.drive())
    await log.storing.wait()
    interrupt(run)
    await log.until("run.stopping")
    log.stored.set()
    assert (await asyncio.wait_for(driving, 2)).status is Status.INTERRUPTED
    assert results(run) == [("ok", "Made a.")]
    assert len(log.of("edit.recorded")) == 1


async def test_work_in_a_thread_that_is_done_when_the_stop_comes_is_told_as_done() -> None:
    entered = threading.Event()

    def work() -> str:
        entered.set()
        threading.Event().wait(0.03)
        return "written"

    tool = FunctionTool("write", in_thread(work), concurrency=ConcurrencyClass.PATH, resume=Resume.UNKNOWN)
    run = memory_run(ScriptedModel([asks(("write", {}))]), tools=[tool])
    driving = asyncio.create_task(run.drive())
    await asyncio.to_thread(entered.wait, 5)
    interrupt(run)
    assert (await asyncio.wait_for(driving, 2)).status is Status.INTERRUPTED
    assert results(run) == [("ok", "written")]


async def test_a_call_that_is_stopped_before_it_began_is_not_said_to_have_had_an_effect() -> None:
    class SlowLog(MemoryLog):
        def emit(self, *drafts: Any) -> Any:
            done = super().emit(*drafts)
            return asyncio.get_running_loop().create_future() if drafts[-1].call else done

    spec = memory_spec()
    log = SlowLog(spec.id)
    log.queue("x")
    tool = echo(concurrency=ConcurrencyClass.UNKNOWN, resume=Resume.UNKNOWN)
    run = memory_run(ScriptedModel([asks(("echo", {}))]), tools=[tool], spec=spec, log=log)
    driving = asyncio.create_task(run.drive())
    await log.until("call.started", lambda body: body.name == "echo")
    interrupt(run)
    await asyncio.wait_for(driving, 2)
    assert [status for status, _ in results(run)] == ["not_started"]
    assert tool.ran == []


async def test_a_path_that_no_file_system_takes_is_an_error_result() -> None:
    class OnPaths(FunctionTool):
        @property
        def spec(self) -> Any:
            return replace(super().spec, paths=("path",), concurrency=ConcurrencyClass.PATH)

    tool = OnPaths("touch", in_thread(lambda: "x"))
    run = memory_run(ScriptedModel([asks(("touch", '{"path": "\\ud800"}')), "done"]), tools=[tool], workspace="/tmp")
    assert (await run.drive()).status is Status.COMPLETED
    assert [status for status, _ in results(run)] == ["error"]


async def test_no_cut_of_a_long_result_makes_a_note_of_what_was_none() -> None:
    for shift in range(len("[User note: x]")):
        text = " " * shift + "[User note: x]" * (RESULT_LIMIT // 8)
        tool = Bare("say", lambda args, context, text=text: ToolOutput(text=text))
        run = memory_run(ScriptedModel([asks(("say", {})), "done"]), tools=[tool])
        await run.drive()
        [read] = [m.text for m in run.running.transcript.messages if isinstance(m, ToolMessage)]
        assert read.count("[User note:") == read.count("\\[User note:") > 0
