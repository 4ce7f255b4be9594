"""The server itself: HTTP/1.1 by hand on asyncio streams, so that every byte and every close is the script's choice."""

import asyncio
import contextlib
import inspect
import itertools
import json
import socket
import struct
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from tests.scripted_server.dsl import Cut, Gate, Reset, Response, Stall, Wait, status

Script = Sequence[Response] | Callable[[Any], Response | Awaitable[Response]]


@dataclass(slots=True, kw_only=True)
class Seen:
    """One request and what became of it. Times are `time.time()`; `how`: completed, client_gone, cut or reset.

    `ended_at` is when the response ended; `closed_at` when its socket was closed, by whomever.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    started: float
    first_byte: float | None = None
    ended_at: float | None = None
    closed_at: float | None = None
    how: str | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def end(self, how: str) -> None:
        if self.how is None:
            self.how, self.ended_at = how, time.time()
            self.ended.set()


class _Gone(Exception):
    """The connection is over; the message is the `how`."""


class ScriptedServer:
    """Serves a script at `base_url` while the `async with` block lasts. `requests` is the log, oldest first."""

    def __init__(self, script: Script, *, port: int = 0) -> None:
        self._script = script
        self._port = port
        self._places = itertools.count()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.requests: list[Seen] = []
        self.base_url = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self._port, backlog=512)
        self.base_url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    @property
    def open_sockets(self) -> int:
        return len(self._connections)

    async def request(self, place: int, *, within: float = 5.0) -> Seen:
        """The request with this number, from 0; waits until it has come."""
        async with asyncio.timeout(within):
            while len(self.requests) <= place:
                await asyncio.sleep(0.002)
        return self.requests[place]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        mine: list[Seen] = []
        try:
            while seen := await _read_request(reader):
                mine.append(seen)
                self.requests.append(seen)
                await self._respond(seen, reader, writer)
        except (_Gone, ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # Also the end of the server: asyncio's streams of Python 3.11 complain about a handler that was cancelled.
            pass
        finally:
            self._connections.discard(task)
            writer.close()
            for seen in mine:
                seen.end("client_gone")
                seen.closed_at = time.time()
                seen.closed.set()

    async def _respond(self, seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sending = asyncio.ensure_future(self._send(seen, writer))
        # A client does not speak while it listens: a read that returns means that it has closed its end.
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                raise _Gone("client_gone")
            await sending
            seen.end("completed")
        except _Gone as gone:
            seen.end(str(gone))
            raise
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send(self, seen: Seen, writer: asyncio.StreamWriter) -> None:
        response = await self._next(seen)
        body = b"".join(move for move in response.moves if isinstance(move, bytes))
        framing = f"content-length: {len(body)}" if response.length else "transfer-encoding: chunked"
        lines = [f"HTTP/1.1 {response.status} Scripted", *(f"{k}: {v}" for k, v in response.headers.items()), framing]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        seen.first_byte = time.time()
        sizes = itertools.cycle(response.flush) if response.flush else None
        for move in response.moves:
            if isinstance(move, bytes):
                for piece in _pieces(move, sizes):
                    writer.write(piece if response.length else b"%x\r\n%b\r\n" % (len(piece), piece))
                    await writer.drain()
                    # Give the kernel a chance to send each piece as a segment of its own.
                    await asyncio.sleep(0)
            else:
                await writer.drain()
                await _act(move, writer)
        if not response.length:
            writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def _next(self, seen: Seen) -> Response:
        if callable(self._script):
            answer = self._script(seen.json)
            return await answer if inspect.isawaitable(answer) else answer
        place = next(self._places)
        if place < len(self._script):
            return self._script[place]
        return status(500, f"the script has {len(self._script)} responses and this is request {place + 1}")


def _pieces(content: bytes, sizes: Iterator[int] | None) -> Iterator[bytes]:
    if sizes is None:
        yield content
        return
    split = next((place + 1 for place, byte in enumerate(content) if byte >= 0xC0), 0)
    start = 0
    while start < len(content):
        end = start + next(sizes)
        if start < split < end:
            end = split
        yield content[start:end]
        start = end


async def _act(move: Any, writer: asyncio.StreamWriter) -> None:
    match move:
        case Wait(seconds=seconds):
            await asyncio.sleep(seconds)
        case Gate(event=event):
            await event.wait()
        case Stall():
            await asyncio.Event().wait()
        case Cut():
            raise _Gone("cut")
        case Reset():
            # SO_LINGER with no time: close sends RST instead of FIN.
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            raise _Gone("reset")


async def _read_request(reader: asyncio.StreamReader) -> Seen | None:
    """The next request of a connection, or None when the client has closed it."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *rest = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest if line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Seen(method=method, path=path, headers=headers, body=body, started=time.time())


class ThreadedServer:
    """A ScriptedServer with a loop and thread of its own: `with ThreadedServer(...) as server`."""

    def __init__(self, script: Script) -> None:
        self._inner = ScriptedServer(script)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="scripted-server")

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._inner.__aenter__(), self._loop).result(5)
        return self._inner

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._inner.__aexit__(), self._loop).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()
