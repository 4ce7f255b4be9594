"""A call's context without an engine: real files and processes, everything else a small double."""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from agents.ids import new_id
from agents.ports import Answer, Child, SpawnRequest, StopReport, Tool, ToolOutput
from agents.tools.processes import end_marked
from agents.tools.registry import Registry, default_tools, parse_args


@dataclass
class Token:
    cancelled: bool = False


@dataclass
class Held:
    """A lease that is lost when a test says so."""

    answer: bool = True

    def held(self) -> bool:
        return self.answer


@dataclass
class Context:
    """Implements `ports.ToolContext`."""

    workspace: str
    run: str = field(default_factory=new_id)
    call: str = field(default_factory=new_id)
    dry_run: bool = False
    lease: Held = field(default_factory=Held)
    cancel: Token = field(default_factory=Token)
    environment: Mapping[str, str] = field(default_factory=dict)
    reports: list[StopReport] = field(default_factory=list)
    asked: list[tuple[str, Sequence[str] | None]] = field(default_factory=list)
    spawned: list[SpawnRequest] = field(default_factory=list)
    child: Callable[[SpawnRequest], Child] | None = None

    async def ask(self, question: str, choices: Sequence[str] | None) -> Answer:
        self.asked.append((question, choices))
        return Answer(text="the blue one", by="kim")

    async def spawn(self, request: SpawnRequest) -> Child:
        self.spawned.append(request)
        assert self.child is not None
        return self.child(request)

    async def in_thread(self, work: Callable[[], Any]) -> Any:
        try:
            return await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, work))
        except asyncio.CancelledError:
            self.cancel.cancelled = True
            raise

    def processes_ended(self, report: StopReport) -> None:
        self.reports.append(report)


class Bench:
    """Calls tools by name with arguments as a model would send them."""

    def __init__(self, workspace: Path) -> None:
        self.path = workspace
        self.registry = Registry(default_tools())

    def context(self, **changes: Any) -> Context:
        return Context(workspace=str(self.path), **changes)

    def tool(self, name: str) -> Tool:
        tool = self.registry.get(name)
        assert tool is not None
        return tool

    async def call(self, name: str, context: Context | None = None, /, **args: Any) -> ToolOutput:
        return await self.tool(name).run(args, context or self.context())

    async def call_raw(self, name: str, raw: str) -> ToolOutput:
        tool = self.tool(name)
        return await tool.run(parse_args(tool.spec, raw), self.context())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return Bench(workspace)


@pytest.fixture
def mark() -> Iterator[str]:
    """A worker id for the environment of a test's processes; whatever still carries it at the end is ended."""
    worker = new_id()
    yield worker
    end_marked("PILOTHOUSE_WORKER", worker, 0.1)


def carriers(mark: str) -> list[int]:
    """Live processes with this worker id in their environment, found independently of the code under test."""
    found = []
    for process in psutil.process_iter():
        try:
            mine = process.pid != os.getpid() and process.environ().get("PILOTHOUSE_WORKER") == mark
            if mine and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found
