"""How much a viewer has been sent and not acknowledged. Pure: it decides, the viewer acts."""

from collections import deque
from typing import Literal

MOST_EVENTS = 1_000
MOST_BYTES = 1024 * 1024
TEXT_BYTES = 1024 * 1024

Verdict = Literal["go", "wait"]


class Window:
    """Daphne's `send` never pushes back, so what is in flight is bounded by the viewer's own acknowledgements."""

    def __init__(self, cursor: int) -> None:
        self.sent = cursor
        self.acked = cursor
        self.resynced = False
        self._flight: deque[tuple[int, int]] = deque()
        self._bytes = 0
        self._text_bytes = 0

    @property
    def events_left(self) -> int:
        return MOST_EVENTS - (self.sent - self.acked)

    @property
    def bytes_left(self) -> int:
        return MOST_BYTES - self._bytes

    @property
    def idle(self) -> bool:
        """Nothing is in flight: whatever comes next may go, be it as large as it is."""
        return self.sent == self.acked

    def sent_events(self, last: int, size: int) -> None:
        self.sent = last
        self._bytes += size
        self._flight.append((last, size))

    def text_fits(self, size: int) -> bool:
        """Live text may be dropped: the whole copy comes again. Counted, so that a stalled page costs no memory."""
        if self._text_bytes + size > TEXT_BYTES:
            return False
        self._text_bytes += size
        return True

    def ack(self, seq: int) -> bool:
        """Take an acknowledgement; False if it names what was never sent."""
        if seq > self.sent:
            return False
        self._text_bytes = 0
        self.acked = max(self.acked, seq)
        while self._flight and self._flight[0][0] <= seq:
            self._bytes -= self._flight.popleft()[1]
        self.resynced = False
        return True
