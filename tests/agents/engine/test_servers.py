"""Servers of tools in a run: their state in the log, stops within the grace, and nothing left behind."""

import asyncio
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from agents.ids import new_id
from agents.spec import Status
from agents.testing import MemoryRun, ScriptedModel, asks, memory_run
from agents.tools.mcp.config import servers_of
from agents.tools.mcp.tools import McpServers
from tests.agents.engine.doubles import echo, interrupt
from tests.agents.tools.conftest import carriers
from tests.agents.tools.mcp.conftest import Behind, port, stdio

__all__ = ["port"]


@pytest.fixture
def worker() -> str:
    return new_id()


def with_servers(script: Any, path: Path, worker: str, *raw: dict[str, Any]) -> MemoryRun:
    marks = {"PILOTHOUSE_RUN": new_id(), "PILOTHOUSE_WORKER": worker}
    servers = McpServers(servers_of(raw), cwd=str(path), environment=marks)
    return memory_run(ScriptedModel(script), tools=[echo()], servers=servers)


def results(run: MemoryRun) -> list[tuple[str, str]]:
    return [(b.status, b.result) for b in run.log.of("call.completed") if b.operation == "execute_tool"]


async def test_a_run_uses_the_tools_of_its_servers_beside_its_own(tmp_path: Path, worker: str):
    two = asks(("echo", {"say": "hi"}), ("mcp__t__add", {"a": 1, "b": 2}), ("mcp__t__add", {"a": "one", "b": 2}))
    run = with_servers([two, "done"], tmp_path, worker, stdio())
    assert (await run.drive()).status is Status.COMPLETED
    assert [status for status, _ in results(run)] == ["error", "ok", "ok"]
    assert "do not fit" in results(run)[0][1] and results(run)[2][1] == "3"
    assert "add" in run.log.of("server.connected")[0].tools
    told = orjson.loads(run.log.contents[run.log.of("run.started")[0].tools["sha256"]])
    tools = [tool["name"] for tool in told]
    assert tools[0] == "echo" and "mcp__t__add" in tools
    assert not carriers(worker)


async def test_a_server_that_is_down_is_visible_and_the_run_goes_on(tmp_path: Path, worker: str):
    gone = {"name": "gone", "command": "/nowhere"}
    run = with_servers([asks(("mcp__gone__x", {})), "done"], tmp_path, worker, gone, stdio())
    assert (await run.drive()).status is Status.COMPLETED
    assert run.log.of("server.lost")[0].server == "gone"
    assert run.log.of("server.connected")[0].server == "t"
    assert results(run)[0][0] == "error"


async def test_a_server_that_dies_in_a_call_is_an_error_result(tmp_path: Path, worker: str):
    run = with_servers([asks(("mcp__t__die", {"code": 4})), "done"], tmp_path, worker, stdio())
    assert (await run.drive()).status is Status.COMPLETED
    assert results(run)[0][0] == "error" and "code 4" in results(run)[0][1]
    assert "code 4" in run.log.of("server.lost")[0].why


async def test_a_call_that_hangs_times_out(tmp_path: Path, worker: str):
    slow = asks(("mcp__t__hang", {"note": "x"}))
    run = with_servers([slow, "done"], tmp_path, worker, stdio(timeout=3))
    assert (await run.drive()).status is Status.COMPLETED
    assert results(run)[0] == ("timeout", "Timed out after 3 s.")


async def stopped_in(run: MemoryRun, kind: str, where: Any) -> float:
    """Seconds from the command to the end of the run."""
    drive = asyncio.create_task(run.drive())
    await run.log.until(kind, where, timeout=20)
    await asyncio.sleep(0.2)
    began = time.monotonic()
    run.inbox.send(interrupt(run.spec.id))
    assert (await drive).status is Status.INTERRUPTED
    return time.monotonic() - began


async def test_an_interrupt_ends_a_hanging_call_and_its_server(tmp_path: Path, worker: str):
    run = with_servers([asks(("mcp__t__hang", {"note": "x"}))], tmp_path, worker, stdio())
    assert await stopped_in(run, "call.started", lambda b: b.name == "mcp__t__hang") < 0.2
    stopped = run.log.of("run.interrupted")[0].stopped
    assert stopped["verified"] and stopped["processes"] == 1
    assert results(run)[0][0] == "stopped"
    assert not carriers(worker)


async def test_an_interrupt_ends_a_hanging_call_behind_an_address(tmp_path: Path, worker: str, port: int):
    behind = Behind(port)
    try:
        run = with_servers([asks(("mcp__web__hang", {"note": "x"}))], tmp_path, worker, behind.config)
        assert await stopped_in(run, "call.started", lambda b: b.name == "mcp__web__hang") < 0.2
    finally:
        behind.kill()


async def test_an_interrupt_while_a_server_does_not_answer_ends_the_run_at_once(tmp_path: Path, worker: str):
    run = with_servers(["done"], tmp_path, worker, stdio("mute"))
    drive = asyncio.create_task(run.drive())
    while not carriers(worker):
        await asyncio.sleep(0.02)
    began = time.monotonic()
    run.inbox.send(interrupt(run.spec.id))
    assert (await drive).status is Status.INTERRUPTED
    assert time.monotonic() - began < 0.3
    assert not carriers(worker)
