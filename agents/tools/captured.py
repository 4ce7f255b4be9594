"""Output of a process as it comes, kept within bounds: the beginning and the end, and how much was between."""

import codecs
from collections import deque


class Captured:
    """Keeps the first and the last `limit / 2` bytes."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.total = 0

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        room = self._half - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if chunk:
            self._tail.append(chunk)
            self._tail_size += len(chunk)
            while self._tail_size - len(self._tail[0]) >= self._half:
                self._tail_size -= len(self._tail.popleft())

    @property
    def full(self) -> bool:
        return self.total > 2 * self._half

    def text(self) -> str:
        """Decoded as UTF-8, with a line where bytes are missing. Characters cut by that gap are left out whole."""
        tail = b"".join(self._tail)
        missing = self.total - len(self._head) - min(len(tail), self._half)
        if missing <= 0:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(self._head))
        tail = tail[-self._half :]
        start = next((n for n in range(min(4, len(tail))) if tail[n] & 0xC0 != 0x80), 0)
        return f"{head}\n[... {missing} bytes left out ...]\n{tail[start:].decode('utf-8', 'replace')}"
