"""A bare websocket client, as cheap as it gets: a hundred of them must not be what is measured."""

import asyncio
import base64
import os
from collections.abc import Callable

_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10
# A mask of zeros leaves the bytes as they are; the protocol asks only that there is one.
_MASK = b"\x00\x00\x00\x00"


class Connection(asyncio.Protocol):
    """Calls `frame(bytes)` for each text frame. `opened` fails with ConnectionError if the handshake is refused."""

    def __init__(self, host: str, port: int, path: str, token: str, frame: Callable[[bytes], None]) -> None:
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        key = base64.b64encode(os.urandom(16)).decode()
        self._hello = (
            f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\nAuthorization: Bearer {token}\r\n\r\n"
        ).encode()
        self._frame: Callable[[bytes], None] | None = frame
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._hello)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.opened.done():
            self.opened.set_exception(ConnectionError("the handshake was cut"))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self.opened.done() and not self._shaken():
            return
        self._take_frames()

    def _shaken(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = bytes(self._buffer[:end])
        del self._buffer[: end + 4]
        if head.startswith(b"HTTP/1.1 101"):
            self.opened.set_result(None)
            return True
        self.opened.set_exception(ConnectionError(head[:200].decode("latin-1")))
        return False

    def _take_frames(self) -> None:
        buffer, at = self._buffer, 0
        while len(buffer) - at >= 2:
            size, start = buffer[at + 1], at + 2
            if size >= 126:
                wide = 2 if size == 126 else 8
                if len(buffer) < start + wide:
                    break
                size, start = int.from_bytes(buffer[start : start + wide], "big"), start + wide
            if len(buffer) < start + size:
                break
            self._take(buffer[at] & 15, bytes(buffer[start : start + size]))
            at = start + size
        del buffer[:at]

    def _take(self, code: int, data: bytes) -> None:
        if code == _TEXT and self._frame is not None:
            self._frame(data)
        elif code == _PING:
            self._write(_PONG, data)

    def send(self, text: bytes) -> None:
        self._write(_TEXT, text)

    def _write(self, code: int, data: bytes) -> None:
        if self._transport is not None:
            size = bytes([128 | len(data)]) if len(data) < 126 else b"\xfe" + len(data).to_bytes(2, "big")
            self._transport.write(bytes([128 | code]) + size + _MASK + data)

    def cut(self) -> None:
        """Gone without a word; nothing that is still on its way counts."""
        self._frame = None
        if self._transport is not None:
            self._transport.abort()

    def mute(self) -> None:
        """Never read again, but stay."""
        if self._transport is not None:
            self._transport.pause_reading()
