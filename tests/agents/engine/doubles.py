"""Small tools for engine tests: each does one plain thing and says when it runs."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.commands import Command, CommandKind
from agents.ids import new_id
from agents.ports import ToolContext, ToolOutput, ToolSpec
from agents.spec import ConcurrencyClass, Resume

ANY = {"type": "object", "properties": {}, "additionalProperties": True}


@dataclass
class FunctionTool:
    """A tool around an async function of (args, context)."""

    name: str
    work: Callable[[Mapping[str, Any], ToolContext], Any]
    concurrency: ConcurrencyClass = ConcurrencyClass.SAFE
    resume: Resume = Resume.RERUN
    timeout_s: float = 30.0
    ran: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=self.name,
            description="a test tool",
            parameters=ANY,
            concurrency=self.concurrency,
            resume=self.resume,
            timeout_s=self.timeout_s,
        )

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        self.ran.append(args)
        made = await self.work(args, context)
        return made if isinstance(made, ToolOutput) else ToolOutput(text=str(made))


def echo(name: str = "echo", **changes: Any) -> FunctionTool:
    async def work(args: Mapping[str, Any], context: ToolContext) -> str:
        return f"echo {args.get('say', '')}"

    return FunctionTool(name, work, **changes)


def gate(name: str = "gate", **changes: Any) -> tuple[FunctionTool, asyncio.Event, asyncio.Event]:
    """A tool that tells when it has been entered and ends when it is let go."""
    entered, release = asyncio.Event(), asyncio.Event()

    async def work(args: Mapping[str, Any], context: ToolContext) -> str:
        entered.set()
        await release.wait()
        return "through"

    return FunctionTool(name, work, **changes), entered, release


def deaf(name: str = "deaf") -> tuple[FunctionTool, threading.Event, threading.Event]:
    """Blocking Python in a thread that ignores its cancel token until a test lets it go."""
    entered, release = threading.Event(), threading.Event()

    def block() -> str:
        entered.set()
        release.wait(30)
        return "late"

    async def work(args: Mapping[str, Any], context: ToolContext) -> str:
        return str(await context.in_thread(block))

    return FunctionTool(name, work, concurrency=ConcurrencyClass.UNKNOWN, resume=Resume.UNKNOWN), entered, release


def command(kind: CommandKind, run: str, **args: Any) -> Command:
    return Command(id=new_id(), kind=kind, run=run, by="ada", reason=args.pop("reason", None), args=args)


def steer(run: str, note: str) -> Command:
    return command(CommandKind.STEER, run, note=note)


def interrupt(run: str, reason: str = "enough") -> Command:
    return command(CommandKind.INTERRUPT, run, reason=reason)
