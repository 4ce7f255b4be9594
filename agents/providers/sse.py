"""Server-sent events out of bytes: any chunking of the same bytes gives the same events.

Lines end in LF, CR or CRLF and in nothing else (WHATWG HTML, section 9.2): the Unicode separators that `str.splitlines`
and httpx' line iterator also split on are ordinary text here. Data stays bytes, so a character cut by a chunk edge
cannot be damaged; whoever parses the data decodes it whole.
"""

from typing import NamedTuple

BOM = b"\xef\xbb\xbf"
MAX_EVENT_BYTES = 32 * 1024 * 1024


class SseEvent(NamedTuple):
    """`name` is the event field (empty when there was none), `data` the data lines joined with LF."""

    name: str
    data: bytes


class TooLarge(ValueError):
    """One event grew past MAX_EVENT_BYTES: this is no event stream that we could hold."""


class SseDecoder:
    """Feed it the bytes as they come; `end` gives what an unterminated last event held."""

    __slots__ = ("_after_cr", "_data", "_held", "_name", "_pieces", "_started")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # the unfinished line, in pieces: joining on every feed would be quadratic
        self._held = 0
        self._data: list[bytes] = []
        self._name = ""
        self._after_cr = False
        self._started = False

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that these bytes complete. Raises TooLarge."""
        if self._after_cr and chunk:
            # The CR that ended the last chunk already ended its line; an LF now is the second half of that CRLF.
            self._after_cr = False
            if chunk[0] == 10:
                chunk = chunk[1:]
        if not self._started:
            chunk = self._without_bom(chunk)
        if b"\r" in chunk:
            self._after_cr = chunk[-1] == 13
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self._held += len(chunk)
        if self._held > MAX_EVENT_BYTES:
            raise TooLarge(f"an event larger than {MAX_EVENT_BYTES} bytes")
        if b"\n" not in chunk:
            if chunk:
                self._pieces.append(chunk)
            return []
        if self._pieces:
            self._pieces.append(chunk)
            chunk = b"".join(self._pieces)
            self._pieces.clear()
        lines = chunk.split(b"\n")
        rest = lines.pop()
        events = self._take(lines)
        if rest:
            self._pieces.append(rest)
        if events or not self._data:
            self._held = len(rest) + sum(map(len, self._data))
        return events

    def _take(self, lines: list[bytes]) -> list[SseEvent]:
        events: list[SseEvent] = []
        data = self._data
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif not line:
                if data:
                    events.append(SseEvent(self._name, data[0] if len(data) == 1 else b"\n".join(data)))
                    data.clear()
                self._name = ""
            elif (stray := self._field(line)) is not None:
                events.append(stray)
        return events

    def _field(self, line: bytes) -> SseEvent | None:
        """Take in a field. What is none, but a line of JSON or an `error:`, is an event: by the standard it would be
        ignored, and the end mark behind it would make half an answer a whole one."""
        name, _, value = line.partition(b":")
        if name == b"event":
            self._name = value.removeprefix(b" ").decode("utf-8", "replace")
        elif name == b"data":
            self._data.append(value.removeprefix(b" "))
        elif name == b"error":
            return SseEvent("error", value.strip())
        elif line.startswith(b"{"):
            return SseEvent("", line)
        # Comments have an empty name. `id` and `retry` are for reconnecting clients; an answer cannot be resumed.
        return None

    def _without_bom(self, chunk: bytes) -> bytes:
        """Drop one byte order mark at the very start; hold its first bytes back until it is known to be one."""
        head = b"".join(self._pieces) + chunk
        self._pieces.clear()
        self._held = 0
        if len(head) < len(BOM) and BOM.startswith(head):
            if head:
                self._pieces.append(head)
            return b""
        self._started = True
        return head.removeprefix(BOM)

    @property
    def rest(self) -> bytes:
        """The data of the event that is still open, as if the stream ended here; empty when none is open."""
        data = list(self._data)
        line = b"".join(self._pieces)
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        return b"\n".join(data)

    def rest_is(self, mark: bytes) -> bool:
        """Whether the open event consists of `mark` alone. Cheap: asked after every feed."""
        return 0 < self._held <= 64 and self.rest.strip() == mark

    def end(self) -> list[SseEvent]:
        """What the open event holds at the end of the stream. The standard drops it; servers rely on its being read."""
        data = self.rest
        stray = self._field(b"".join(self._pieces)) if self._pieces and self._pieces[0][:1] in (b"{", b"e") else None
        name, self._name = self._name, ""
        self._data.clear()
        self._pieces.clear()
        found = [SseEvent(name, data)] if data else []
        return [*found, stray] if stray is not None else found
