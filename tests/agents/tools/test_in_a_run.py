"""The real tools under the real loop: what one message asks for, and what an interrupt leaves."""

import asyncio
from pathlib import Path

import pytest

from agents.spec import Status
from agents.testing import ScriptedModel, asks, memory_run
from agents.tools.registry import default_tools
from tests.agents.engine.doubles import interrupt
from tests.agents.tools.conftest import Bench


@pytest.mark.case("A2-03")
async def test_an_interrupt_leaves_no_process_of_a_running_command(bench: Bench) -> None:
    stubborn = "echo $$ > started; trap '' TERM; (setsid sleep 600 &); sleep 600 | cat"
    model = ScriptedModel([asks(("run_command", {"command": stubborn}))])
    run = memory_run(model, tools=default_tools(), workspace=str(bench.path))
    driving = asyncio.create_task(run.drive())
    while not (bench.path / "started").exists():
        await asyncio.sleep(0.02)
    run.inbox.send(interrupt(run.spec.id))
    ended = await asyncio.wait_for(driving, 5)
    assert ended.status is Status.INTERRUPTED
    stopped = run.log.events[-1].data.stopped
    assert stopped["processes"] >= 3
    assert stopped["verified"] is True
    assert _carriers_of_run(run.spec.id) == []


@pytest.mark.case("A2-11")
async def test_edits_of_one_file_under_three_names_in_one_message_all_land(bench: Bench) -> None:
    (bench.path / "d1").mkdir()
    (bench.path / "d2").symlink_to("d1")
    (bench.path / "real.txt").write_text("one\ntwo\nthree\n")
    (bench.path / "link.txt").symlink_to("real.txt")
    model = ScriptedModel(
        [
            asks(
                ("edit_file", {"path": "real.txt", "old": "one", "new": "1"}),
                ("edit_file", {"path": "./link.txt", "old": "two", "new": "2"}),
                ("edit_file", {"path": "d1/../real.txt", "old": "three", "new": "3"}),
                ("write_file", {"path": "d1/new.txt", "content": "first"}),
                ("write_file", {"path": "d2/new.txt", "content": "second"}),
            ),
            "done",
        ]
    )
    run = memory_run(model, tools=default_tools(), workspace=str(bench.path))
    ended = await run.drive()
    assert ended.status is Status.COMPLETED
    assert (bench.path / "real.txt").read_text() == "1\n2\n3\n"
    assert (bench.path / "d1" / "new.txt").read_text() == "second"
    results = [
        e.data.result for e in run.log.events if e.kind == "call.completed" and e.data.operation == "execute_tool"
    ]
    assert any(result.startswith("Made d1/new.txt") for result in results[:-1])
    assert results[-1].startswith("Replaced d1/new.txt")  # the last word wins, and says what it replaced


def _carriers_of_run(run: str) -> list[int]:
    found = []
    for directory in Path("/proc").iterdir():
        try:
            if directory.name.isdigit() and f"PILOTHOUSE_RUN={run}".encode() in (directory / "environ").read_bytes():
                found.append(int(directory.name))
        except OSError:
            continue
    return found
