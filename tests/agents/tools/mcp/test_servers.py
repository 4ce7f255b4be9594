"""Real MCP servers: their tools, marks and classes; dead, mute, flooding and hanging ones; no leftovers."""

import asyncio
import time
from typing import Any

import psutil
import pytest

from agents.errors import ToolError
from agents.spec import ConcurrencyClass, Resume
from agents.tools.mcp import connection
from tests.agents.tools.conftest import Context, carriers
from tests.agents.tools.mcp.conftest import Behind, Kit, stdio


def context(kit: Kit, **changes: Any) -> Context:
    return Context(workspace=str(kit.path), **changes)


async def test_tools_have_legal_names_and_the_class_that_their_hints_give(kit: Kit):
    tools = await kit.connect(stdio())
    assert tools["mcp__t__add"].spec.concurrency is ConcurrencyClass.SAFE
    assert tools["mcp__t__add"].spec.resume is Resume.RERUN
    assert tools["mcp__t__where"].spec.concurrency is ConcurrencyClass.UNKNOWN
    assert tools["mcp__t__where"].spec.resume is Resume.UNKNOWN
    odd = next(name for name in tools if "odd" in name)
    assert odd.startswith("mcp__t__odd_name__") and odd.isascii()
    assert "Adds two numbers." in tools["mcp__t__add"].spec.description
    assert [(state.server, state.up) for state in kit.told] == [("t", True)]
    assert (await tools["mcp__t__add"].run({"a": 2, "b": 3}, context(kit))).text == "5"


async def test_a_server_runs_in_the_workspace_with_the_marks_of_the_run_and_only_named_variables(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GIVEN", "yes")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    tools = await kit.connect(stdio(env=["GIVEN"]))

    async def variable(name: str) -> str:
        return (await tools["mcp__t__environment"].run({"name": name}, context(kit))).text

    assert await variable("PILOTHOUSE_WORKER") == kit.worker
    assert [await variable("GIVEN"), await variable("OPENAI_API_KEY")] == ["yes", "(unset)"]
    assert (await tools["mcp__t__where"].run({}, context(kit))).text.endswith(str(kit.path))


async def test_only_the_tools_that_are_allowed_are_there(kit: Kit):
    assert list(await kit.connect(stdio(tools=["add", "nothing"]))) == ["mcp__t__add"]


async def test_the_end_leaves_no_process_not_even_one_that_fled(kit: Kit):
    tools = await kit.connect(stdio())
    fled = int((await tools["mcp__t__spawn"].run({}, context(kit))).text)
    assert psutil.pid_exists(fled) and carriers(kit.worker)
    report = await kit.servers[0].close(at_once=False)
    assert report.processes >= 1 and report.left == 0
    assert not carriers(kit.worker)


async def test_what_a_tool_refuses_is_an_error_result(kit: Kit):
    tools = await kit.connect(stdio())
    output = await tools["mcp__t__fail"].run({}, context(kit))
    assert output.is_error and "fail" in output.text


@pytest.mark.parametrize("where", ["stdio", "http"])
async def test_a_refusal_by_the_code_of_a_closed_connection_costs_no_server(kit: Kit, behind: Behind, where: str):
    tools = await kit.connect(stdio() if where == "stdio" else behind.config)
    name = "t" if where == "stdio" else "web"
    for _ in range(5):
        with pytest.raises(ToolError, match=r"refused the call: .*the index is not ready"):
            await tools[f"mcp__{name}__refuse"].run({}, context(kit))
    assert (await tools[f"mcp__{name}__add"].run({"a": 1, "b": 1}, context(kit))).text == "2"
    assert [state.up for state in kit.told] == [True]


async def test_a_long_result_is_cut_and_kept_whole(kit: Kit):
    tools = await kit.connect(stdio())
    output = await tools["mcp__t__big"].run({"size": 300_000}, context(kit))
    assert len(output.text) <= 100_000 and output.whole is not None and len(output.whole) == 300_000


async def test_a_message_beyond_all_bounds_ends_the_server_not_the_worker(kit: Kit):
    tools = await kit.connect(stdio())
    with pytest.raises(ToolError, match="more than"):
        await tools["mcp__t__big"].run({"size": 20_000_000}, context(kit))
    assert [state.up for state in kit.told] == [True, False]


async def test_a_server_that_dies_is_an_error_and_is_started_again_when_it_is_needed(kit: Kit):
    tools = await kit.connect(stdio())
    with pytest.raises(ToolError, match=r"code 3; it wrote: .*the disk is full"):
        await tools["mcp__t__die"].run({"code": 3}, context(kit))
    assert [state.up for state in kit.told] == [True, False]
    assert "code 3" in kit.told[-1].why
    assert (await tools["mcp__t__add"].run({"a": 1, "b": 1}, context(kit))).text == "2"
    assert [state.up for state in kit.told] == [True, False, True]


async def test_a_server_that_keeps_dying_is_given_up(kit: Kit, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("agents.tools.mcp.connection.REST_S", 0.0)
    tools = await kit.connect(stdio())
    for _ in range(6):
        with pytest.raises(ToolError, match="is down"):
            await tools["mcp__t__die"].run({"code": 1}, context(kit))
    assert len([state for state in kit.told if state.up]) == 4


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ({"name": "t", "command": "/nowhere/at/all"}, "No such file"),
        ({"name": "t", "command": "false"}, "ended with code 1"),
        (stdio("mute", timeout=0.5), "did not answer within 0.5 s"),
        (stdio("flood"), "more than"),
        ({"name": "t", "url": "http://127.0.0.1:9/mcp", "timeout": 2}, ""),
    ],
)
async def test_a_server_that_cannot_be_had_is_told_and_holds_up_nothing(kit: Kit, server: dict[str, Any], why: str):
    began = time.monotonic()
    assert await kit.connect(server) == {}
    assert time.monotonic() - began < 5
    assert [(state.up, why in state.why) for state in kit.told] == [(False, True)], kit.told


@pytest.mark.parametrize("hanging", ["stdio", "http"])
async def test_a_cancelled_call_returns_at_once_and_the_server_ends_with_it(kit: Kit, behind: Behind, hanging: str):
    tools = await kit.connect(stdio() if hanging == "stdio" else behind.config)
    name = next(name for name in tools if name.endswith("hang"))
    work = asyncio.create_task(tools[name].run({"note": "x"}, context(kit)))
    await asyncio.sleep(0.3)
    began = time.monotonic()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    await kit.servers[0].close(at_once=True)
    assert time.monotonic() - began < 0.5
    assert not carriers(kit.worker)


async def test_a_frozen_server_does_not_hold_up_the_cancel(kit: Kit):
    tools = await kit.connect(stdio())
    pid = int((await tools["mcp__t__where"].run({}, context(kit))).text.split()[0])
    psutil.Process(pid).suspend()
    work = asyncio.create_task(tools["mcp__t__add"].run({"a": 1, "b": 1}, context(kit)))
    await asyncio.sleep(0.1)
    began = time.monotonic()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert time.monotonic() - began < 0.1
    await kit.servers[0].close(at_once=True)
    assert not carriers(kit.worker)


async def test_tools_behind_an_address(kit: Kit, behind: Behind, monkeypatch: pytest.MonkeyPatch):
    tools = await kit.connect(behind.config)
    assert (await tools["mcp__web__add"].run({"a": 2, "b": 3}, context(kit))).text == "5"
    output = await tools["mcp__web__fail"].run({}, context(kit))
    assert output.is_error


async def test_a_server_behind_an_address_that_goes_is_an_error_and_comes_back(kit: Kit, behind: Behind):
    tools = await kit.connect(behind.config)
    work = asyncio.create_task(tools["mcp__web__hang"].run({"note": "x"}, context(kit)))
    await asyncio.sleep(0.3)
    behind.kill()
    with pytest.raises(ToolError):
        await asyncio.wait_for(work, 5)
    with pytest.raises(ToolError):
        await asyncio.wait_for(tools["mcp__web__add"].run({"a": 1, "b": 1}, context(kit)), 15)
    behind.start()
    assert (await tools["mcp__web__add"].run({"a": 1, "b": 1}, context(kit))).text == "2"


@pytest.mark.parametrize("rest", [0.0, connection.REST_S])
async def test_a_server_that_was_started_anew_is_met_again_though_it_forgot_the_session(
    kit: Kit, behind: Behind, rest: float, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(connection, "REST_S", rest)
    tools = await kit.connect(behind.config)
    behind.kill()
    behind.start()
    add = tools["mcp__web__add"]
    with pytest.raises(ToolError, match="is down: the session is over"):
        await add.run({"a": 1, "b": 1}, context(kit))
    assert (await add.run({"a": 1, "b": 1}, context(kit))).text == "2"
    assert [state.up for state in kit.told] == [True, False, True]


async def test_a_dry_run_calls_only_what_reads(kit: Kit):
    tools = await kit.connect(stdio())
    dry = context(kit, dry_run=True)
    assert (await tools["mcp__t__add"].run({"a": 1, "b": 1}, dry)).text == "2"
    output = await tools["mcp__t__spawn"].run({}, dry)
    assert output.status == "dry_run" and "spawn of the MCP server t" in output.text
