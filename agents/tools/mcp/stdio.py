"""An MCP server as a process of its own: lines of JSON over its pipes, bounded, and no process left behind.

The SDK has a transport like it. This one bounds each line, starts the server in the run's marks with nothing of the
worker's environment, and ends it as tools are ended here: TERM, grace, KILL, and a look whether anything is left.
"""

import asyncio
import contextlib
import logging
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from agents.ports import StopReport
from agents.tools import proctable
from agents.tools.captured import Captured
from agents.tools.processes import CALL_MARK, GRACE_S, new_stamp
from agents.tools.session import exited, finish, to_the_end

logger = logging.getLogger(__name__)

# One message; a result longer than this is no result for a model.
LONGEST_LINE = 8 * 1024 * 1024
STDERR_KEPT = 8 * 1024
# How long a server that nobody needs any more may take to leave by itself.
LEAVE_S = 0.2
Incoming = SessionMessage | Exception


@dataclass(slots=True, kw_only=True)
class Pipes:
    """`closed` is set when the server has gone; `why` then says how."""

    read: MemoryObjectReceiveStream[Incoming]
    write: MemoryObjectSendStream[SessionMessage]
    closed: asyncio.Event
    why: Callable[[], str]


@asynccontextmanager
async def launched(
    command: list[str],
    *,
    cwd: str,
    environment: Mapping[str, str],
    hurry: Callable[[], bool],
    ended: Callable[[StopReport], None],
) -> AsyncIterator[Pipes]:
    """The server while the context lasts. `hurry` tells at its end whether to end it at once; `ended` what was ended.

    Raises OSError or ValueError if it cannot be started.
    """
    process = _start(command, cwd, environment)
    stamp = new_stamp()
    proctable.stamp(process.pid, stamp)
    bridge = _Bridge(process)
    try:
        await bridge.open()
        yield bridge.pipes
    finally:
        await bridge.close(0.0 if hurry() else LEAVE_S)
        report, cancel = await to_the_end(lambda: finish(process, environment.get(CALL_MARK), stamp, GRACE_S))
        bridge.release()
        ended(report)
        if cancel is not None:
            raise cancel


def _start(command: list[str], cwd: str, environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, cwd=cwd, env=dict(environment), stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
    )


def _exit_code(process: "subprocess.Popen[bytes]") -> int | None:
    """Without reaping it: until it is finished its number must stay its own."""
    found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


class _Bridge:
    """Between a process's pipes and the streams of a session."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._errors = Captured(STDERR_KEPT)
        self._fault = ""
        self._to_session, read = anyio.create_memory_object_stream[Incoming](16)
        write, self._from_session = anyio.create_memory_object_stream[SessionMessage](0)
        self._tasks: list[asyncio.Task[None]] = []
        self._transports: list[asyncio.BaseTransport] = []
        self._input: asyncio.WriteTransport | None = None
        self.pipes = Pipes(read=read, write=write, closed=asyncio.Event(), why=self._why)

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        out = asyncio.StreamReader(limit=LONGEST_LINE)
        err = asyncio.StreamReader()
        for reader, pipe in ((out, self._process.stdout), (err, self._process.stderr)):
            transport, _ = await loop.connect_read_pipe(lambda r=reader: asyncio.StreamReaderProtocol(r), pipe)  # type: ignore[misc]
            self._transports.append(transport)
        writing, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, self._process.stdin)
        self._input = writing
        self._transports.append(writing)
        into = asyncio.StreamWriter(writing, protocol, None, loop)
        self._tasks = [
            asyncio.create_task(self._read(out), name="mcp stdout"),
            asyncio.create_task(self._drain(err), name="mcp stderr"),
            asyncio.create_task(self._write(into), name="mcp stdin"),
            asyncio.create_task(self._watch(), name="mcp process"),
        ]

    async def close(self, leave_s: float) -> None:
        """Close its input, which asks it to leave; what it says from now on is nobody's."""
        if self._input is not None:
            self._input.close()
        if leave_s and not self.pipes.closed.is_set():
            with contextlib.suppress(TimeoutError, asyncio.CancelledError):
                await asyncio.wait_for(exited(self._process), leave_s)
        for task in self._tasks:
            task.cancel()
        for stream in (self._to_session, self._from_session, self.pipes.read, self.pipes.write):
            stream.close()

    def release(self) -> None:
        for transport in self._transports:
            transport.close()

    def _why(self) -> str:
        code = _exit_code(self._process)
        told = self._fault or ("its process has ended" if code is None else f"its process has ended with code {code}")
        said = " ".join(self._errors.text().split())
        return f"{told}; it wrote: {said[-500:]}" if said else told

    def _gone(self, fault: str = "") -> None:
        self._fault = self._fault or fault
        self.pipes.closed.set()
        self._to_session.close()

    async def _read(self, out: asyncio.StreamReader) -> None:
        """Each line to the session. What is no message is passed over: servers print to their output by mistake."""
        try:
            while line := await out.readline():
                message = _message(line)
                if message is not None:
                    await self._to_session.send(message)
            await self._settled()
            self._gone()
        except ValueError:
            self._gone(f"it sent a message of more than {LONGEST_LINE} bytes")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            self._gone()

    async def _drain(self, err: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            while chunk := await err.read(4096):
                self._errors.add(chunk)

    async def _write(self, into: asyncio.StreamWriter) -> None:
        try:
            async for item in self._from_session:
                into.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await into.drain()
        except (anyio.ClosedResourceError, OSError):
            await self._settled()
            self._gone("" if _exit_code(self._process) is not None else "it does not read its input any more")

    async def _settled(self) -> None:
        """How it ended is known a moment after its pipes close."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(exited(self._process), LEAVE_S)

    async def _watch(self) -> None:
        """A server may end while something that it started keeps its pipes open."""
        await exited(self._process)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.pipes.closed.wait(), LEAVE_S)
        self._gone()


def _message(line: bytes) -> SessionMessage | None:
    try:
        read: Any = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        logger.debug("a line that is no message: %r", line[:200])
        return None
    return SessionMessage(read)
