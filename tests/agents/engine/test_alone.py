"""The loop alone over real HTTP: events in order, notes, questions and interrupts, and lines a person can read."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agents import kinds, providers
from agents.drill.server import DrillServer
from agents.engine.alone import LoneRun, Setting
from agents.engine.console import line
from agents.events import Event
from agents.spec import Limits, ModelSpec, Status
from agents.tools.registry import Registry, default_tools


@pytest.fixture(scope="module")
def server() -> Iterator[DrillServer]:
    with DrillServer() as running:
        yield running


class Watcher:
    """Keeps the events, and lets a test act on the first of a kind."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.acts: dict[str, Any] = {}

    def __call__(self, event: Event, body: bytes) -> None:
        self.events.append(event)
        if act := self.acts.pop(event.kind, None):
            asyncio.get_running_loop().call_soon(act)

    def lines(self) -> str:
        root = self.events[0].run
        return "\n".join(text for event in self.events if (text := line(event, root)))


async def answer(question: str, choices: Sequence[str]) -> tuple[str, str]:
    return choices[1], "ada"


def lone_run(server: DrillServer, model: str, workspace: Path, watcher: Watcher, task: str = "go") -> LoneRun:
    spec = ModelSpec(model=model, base_url=server.base_url)
    setting = Setting(
        task=task,
        model=spec,
        prompt="You are a test agent.",
        tools=Registry(default_tools()),
        workspace=str(workspace),
        limits=Limits(),
    )
    return LoneRun(setting, providers.connect(spec, None), watcher, answer)


async def test_tour_completes_and_reads_well(server: DrillServer, tmp_path: Path) -> None:
    watcher = Watcher()
    ended = await lone_run(server, "tour", tmp_path, watcher).drive()
    assert ended.status is Status.COMPLETED and "Leave it at that" in ended.final
    text = watcher.lines()
    for word in (
        "started   tour",
        "tool      run_command",
        "waiting   question",
        "command   answer by ada",
        "completed",
    ):
        assert word in text


async def test_note_reaches_the_model_and_changes_what_it_does(server: DrillServer, tmp_path: Path) -> None:
    watcher = Watcher()
    run = lone_run(server, "tour", tmp_path, watcher)
    watcher.acts["batch.planned"] = lambda: run.steer("answer now", by="ada")
    ended = await run.drive()
    assert "as you asked" in ended.final
    assert "note      answer now (by ada)" in watcher.lines()


async def test_interrupt_reaches_every_sub_agent(server: DrillServer, tmp_path: Path) -> None:
    watcher = Watcher()
    run = lone_run(server, "family", tmp_path, watcher, "go seconds=60 marker=alone")
    driving = asyncio.ensure_future(run.drive())
    async with asyncio.timeout(20):
        while sum(_is_command(event) for event in watcher.events) < 2:
            await asyncio.sleep(0.01)
    run.interrupt(by="ada", reason="enough")
    ended = await driving
    assert ended.status is Status.INTERRUPTED and ended.stopped is not None
    assert ended.stopped["children"] == 2 and ended.stopped["verified"]
    ends = [event for event in watcher.events if event.kind == "run.interrupted"]
    assert len(ends) == 3 and ends[-1].run == run.spec.id


def _is_command(event: Event) -> bool:
    return isinstance(event.data, kinds.CallStarted) and event.data.name == "run_command"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (kinds.RunCompleted(final="done\x1b[2J"), "completed done\\x1b[2J"),
        (kinds.RunExhausted(limit="max_turns", final="so far", final_by="model"), "out of turns; summary: so far"),
        (kinds.RunTripped(step=4, fuse="max_steps"), "tripped   max_steps at step 4"),
        (kinds.RunFailedEvent(error={"reason": "auth", "message": "no"}), "failed    auth: no"),
        (kinds.SteerRefused(command="c", code="no_turn_left"), "note      refused: no_turn_left"),
        (kinds.TurnCompleted(), None),
    ],
)
def test_line_of_an_event_is_plain_text(body: kinds.Body, said: str | None) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    event = Event(run="r", root="r", seq=1, at=at, ts=at, kind=body.kind, turn=1, call=None, data=body)
    assert line(event, "r") == (f"00:00:00  {said}" if said else None)
    if said:
        assert line(event, "another") == f"00:00:00  [r] {said}"
