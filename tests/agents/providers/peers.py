"""Bare servers for the transport: a function plays each connection byte by byte and sees what comes."""

import asyncio
import socket
import ssl
import struct
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def framed(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)


def sized(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    lines = b"".join(header + b"\r\n" for header in headers)
    return b"HTTP/1.1 %b\r\n%bContent-Length: %d\r\n\r\n%b" % (status, lines, len(body), body)


class Peer:
    """The server's side of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        self.reader = reader
        self.writer = writer
        self.number = number
        self.requests: list[tuple[bytes, bytes]] = []
        self.closed_at = 0.0
        self.closed = asyncio.Event()

    async def request(self) -> bytes | None:
        """The body of the next request; None when the other side has gone."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
            size = next(
                (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
            )
            body = await self.reader.readexactly(size)
        except (OSError, asyncio.IncompleteReadError):
            self._mark()
            return None
        self.requests.append((head, body))
        return body

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def gone(self) -> None:
        """Until the other side has closed or reset."""
        try:
            while await self.reader.read(65536):
                pass
        except OSError:
            pass
        self._mark()

    def reset(self) -> None:
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def _mark(self) -> None:
        self.closed_at = asyncio.get_running_loop().time()
        self.closed.set()


class Server:
    def __init__(self) -> None:
        self.port = 0
        self.peers: list[Peer] = []
        self.scheme = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{'localhost' if self.scheme == 'https' else '127.0.0.1'}:{self.port}/v1/x?y=1"


Play = Callable[[Peer], Awaitable[None]]


@asynccontextmanager
async def served(play: Play, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """Each connection is played by `play` and closed when it returns."""
    server = Server()
    tasks: list[asyncio.Task[None]] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer, len(server.peers))
        server.peers.append(peer)
        tasks.append(asyncio.current_task())  # type: ignore[arg-type]
        try:
            await play(peer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    listener = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls, limit=1 << 22, backlog=1024)
    server.port = listener.sockets[0].getsockname()[1]
    server.scheme = "https" if tls else "http"
    try:
        yield server
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def always(answer: bytes) -> Play:
    """The same answer to every request, on connections that stay open."""

    async def play(peer: Peer) -> None:
        while await peer.request() is not None:
            await peer.send(answer)

    return play


def once(*pieces: bytes, reset: bool = False) -> Play:
    """One answer in pieces, told apart on the wire as far as possible, and then the end of the connection."""

    async def play(peer: Peer) -> None:
        await peer.request()
        for piece in pieces:
            await peer.send(piece)
            await asyncio.sleep(0.002)
        if reset:
            peer.reset()

    return play


def certificate(directory: Path) -> tuple[Path, Path]:
    """A self-signed certificate for `localhost`, and its key."""
    cert, key = directory / "cert.pem", directory / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
               "-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", "/CN=localhost",
               "-addext", "subjectAltName=DNS:localhost"]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    return cert, key
