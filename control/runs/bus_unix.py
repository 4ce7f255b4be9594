"""The bus of one machine: a Unix socket that the web process serves and everybody else connects to.

A frame is 4 bytes of length, 1 byte of topic length, the topic, the message. A frame with an empty topic carries the
wanted topics, joined by commas; the server answers it with an empty frame once they are in effect.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import os
import socket
import struct
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

from control.runs.bus import Deliver, Reader, Subscription
from control.runs.bus_outbox import Message, Outbox

_HEAD = struct.Struct(">IB")
MAX_FRAME = 16 * 1024 * 1024
# A reader that is this far behind is cut off; it connects again and asks the database.
MAX_BEHIND = 8 * 1024 * 1024
# sun_path is 108 bytes on Linux and 104 on macOS.
MAX_PATH = 100


def socket_path(wanted: Path) -> Path:
    """`wanted`, or a path short enough for a socket in a private directory when that one is too long."""
    if len(os.fsencode(wanted)) <= MAX_PATH:
        return wanted
    private = Path(tempfile.gettempdir()) / f"pilothouse-{os.getuid()}"
    private.mkdir(mode=0o700, exist_ok=True)
    if private.stat().st_uid != os.getuid():
        raise PermissionError(f"{private} belongs to another user; set DATA_DIR to a shorter path")
    return private / (hashlib.sha256(os.fsencode(wanted)).hexdigest()[:24] + ".sock")


def frame(topic: str, message: bytes) -> bytes:
    name = topic.encode()
    return _HEAD.pack(1 + len(name) + len(message), len(name)) + name + message


class Frames:
    """Bytes in any cut to `(topic, message, whole frame)`; raises ValueError on what cannot be a frame."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[str, bytes, bytes]]:
        buffer = self._buffer
        buffer += data
        found: list[tuple[str, bytes, bytes]] = []
        at = 0
        while len(buffer) - at >= _HEAD.size:
            length, name = _HEAD.unpack_from(buffer, at)
            if length > MAX_FRAME or name >= length:
                raise ValueError("not a frame of the bus")
            end = at + 4 + length
            if len(buffer) < end:
                break
            start = at + _HEAD.size
            topic = buffer[start : start + name].decode()
            found.append((topic, bytes(buffer[start + name : end]), bytes(buffer[at:end])))
            at = end
        if at:
            del buffer[:at]
        return found


class _Peer(asyncio.Protocol):
    """The server's end of one connection."""

    def __init__(self, server: "UnixBusServer") -> None:
        self._server = server
        self._frames = Frames()
        self._transport: asyncio.WriteTransport | None = None
        self.topics: frozenset[str] = frozenset()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport
        self._server.peers.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.peers.discard(self)
        self._transport = None

    def data_received(self, data: bytes) -> None:
        try:
            frames = self._frames.feed(data)
        except (ValueError, UnicodeDecodeError):
            self.abort()
            return
        for topic, message, whole in frames:
            if topic:
                self._server.fan_out(topic, message, whole)
            else:
                self.topics = frozenset(message.decode().split(","))
                self.send(frame("", b""))

    def send(self, data: bytes) -> None:
        if self._transport is None:
            return
        if self._transport.get_write_buffer_size() > MAX_BEHIND:
            self.abort()
            return
        self._transport.write(data)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class _Local:
    """A subscription inside the serving process: no socket, no copy."""

    def __init__(self, server: "UnixBusServer", topics: Iterable[str], deliver: Deliver) -> None:
        self._server = server
        self.topics = frozenset(topics)
        self.deliver = deliver
        server.local.add(self)

    def close(self) -> None:
        self._server.local.discard(self)


_serving: "UnixBusServer | None" = None


class UnixBusServer:
    """Serves the socket on the running loop. One process serves a path; a second one waits until the first is gone."""

    RETRY_S = 0.5

    def __init__(self, path: Path) -> None:
        self.path = path
        self.peers: set[_Peer] = set()
        self.local: set[_Local] = set()
        self.loop: asyncio.AbstractEventLoop | None = None
        self._lock: int | None = None
        self._server: asyncio.AbstractServer | None = None

    async def start(self) -> None:
        """Returns when this process serves. The lock file dies with its holder, so a stale socket is taken over."""
        global _serving
        self._lock = os.open(f"{self.path}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                await asyncio.sleep(self.RETRY_S)
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        self.loop = asyncio.get_running_loop()
        self._server = await self.loop.create_unix_server(lambda: _Peer(self), str(self.path))
        self.path.chmod(0o600)
        _serving = self

    async def stop(self) -> None:
        global _serving
        if _serving is self:
            _serving = None
        if self._server is not None:
            self._server.close()
            with contextlib.suppress(FileNotFoundError):
                self.path.unlink()
        for peer in tuple(self.peers):
            peer.abort()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def fan_out(self, topic: str, message: bytes, whole: bytes | None = None) -> None:
        for subscription in tuple(self.local):
            if topic in subscription.topics:
                subscription.deliver(topic, message)
        for peer in tuple(self.peers):
            if topic in peer.topics:
                whole = whole or frame(topic, message)
                peer.send(whole)


class _UnixLink(asyncio.Protocol):
    """A reader's connection to the server."""

    def __init__(self, topics: Iterable[str], deliver: Deliver) -> None:
        loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = loop.create_future()
        self.ready: asyncio.Future[None] = loop.create_future()
        self._topics = ",".join(topics)
        self._deliver = deliver
        self._frames = Frames()
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport
        transport.write(frame("", self._topics.encode()))

    def data_received(self, data: bytes) -> None:
        try:
            frames = self._frames.feed(data)
        except (ValueError, UnicodeDecodeError):
            self.close()
            return
        for topic, message, _ in frames:
            if topic:
                self._deliver(topic, message)
            elif not self.ready.done():
                self.ready.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)
        if not self.ready.done():
            self.ready.set_exception(ConnectionError("the bus closed the connection"))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class UnixBus:
    """The bus over the socket at `path`; in the serving process it calls the server directly."""

    SEND_TIMEOUT_S = 0.5

    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket: socket.socket | None = None
        self._socket_lock = threading.Lock()  # guards _socket: the outbox thread against close()
        self._outbox = Outbox("bus sender", self._send)

    def publish(self, topic: str, message: bytes) -> None:
        server = _serving
        if server is not None and server.path == self._path and server.loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has just closed
                server.loop.call_soon_threadsafe(server.fan_out, topic, message)
                return
        self._outbox.put(topic, message)

    async def subscribe(self, topics: Iterable[str], deliver: Deliver) -> Subscription:
        wanted = tuple(topics)
        server = _serving
        if server is not None and server.path == self._path and server.loop is asyncio.get_running_loop():
            return _Local(server, wanted, deliver)
        reader = Reader(self._connector(wanted), deliver)
        await reader.start()
        return reader

    def close(self, timeout_s: float = 0.5) -> None:
        self._outbox.close(timeout_s)
        self._hang_up()

    def _connector(self, topics: Sequence[str]) -> Callable[[Deliver], Awaitable[_UnixLink]]:
        async def connect(deliver: Deliver) -> _UnixLink:
            loop = asyncio.get_running_loop()
            _, link = await loop.create_unix_connection(lambda: _UnixLink(topics, deliver), str(self._path))
            try:
                await link.ready
            except BaseException:
                link.close()
                raise
            return link

        return connect

    def _send(self, batch: Sequence[Message]) -> None:
        data = b"".join([frame(topic, message) for topic, message in batch])
        try:
            with self._socket_lock:
                if self._socket is None:
                    self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                    self._socket.settimeout(self.SEND_TIMEOUT_S)
                    self._socket.connect(str(self._path))
                self._socket.sendall(data)
        except OSError:
            # A part of a frame may be on its way: only a new connection starts at a frame's edge.
            self._hang_up()
            raise

    def _hang_up(self) -> None:
        with self._socket_lock:
            if self._socket is not None:
                self._socket.close()
                self._socket = None
