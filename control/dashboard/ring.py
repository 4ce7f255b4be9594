"""The last frames of one run in one format: what viewers who keep up are served from, without asking the database."""

from collections import deque
from dataclasses import dataclass

MOST_EVENTS = 1_000
MOST_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Chunk:
    """What leads from `after` to `last`; `data` are the pieces, joined by commas."""

    after: int
    last: int
    data: bytes


class Ring:
    """Bounded by events and by bytes; whoever is further behind reads the log instead."""

    def __init__(self) -> None:
        self._chunks: deque[Chunk] = deque()
        self._bytes = 0

    def add(self, chunk: Chunk) -> None:
        self._chunks.append(chunk)
        self._bytes += len(chunk.data)
        while self._chunks and (self._bytes > MOST_BYTES or chunk.last - self._chunks[0].after > MOST_EVENTS):
            self._bytes -= len(self._chunks.popleft().data)

    def clear(self) -> None:
        self._chunks.clear()
        self._bytes = 0

    def take(self, cursor: int, events: int, size: int, *, overlap: bool = False, force: bool = False) -> Chunk | None:
        """All that follows the cursor, as far as room allows, joined into one. None if the ring does not reach back.

        With `overlap` a chunk may begin before the cursor: patches may be applied twice, events may not. An empty chunk
        (`last == cursor`) means that there is something but no room for it; with `force` the first one always fits.
        """
        parts: list[bytes] = []
        last = cursor
        total = 0
        for chunk in self._chunks:
            if chunk.last <= last:
                continue
            if chunk.after > last or (chunk.after < last and not overlap):
                return None if not parts else Chunk(cursor, last, b",".join(parts))
            if (chunk.last - cursor > events or total + len(chunk.data) > size) and not (force and last == cursor):
                break
            if chunk.data:
                parts.append(chunk.data)
            total += len(chunk.data)
            last = chunk.last
        else:
            if last == cursor:
                return None
        return Chunk(cursor, last, b",".join(parts))
