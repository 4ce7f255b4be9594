"""The pen of one run: every event goes through it, into the fold and into the log, in one order."""

from collections.abc import Awaitable

from agents.engine.transcript import Transcript
from agents.events import draft
from agents.kinds import FINAL_KINDS, Body
from agents.ports import Clock, EventSink


class Journal:
    """Writes events. Awaiting what `write` returns waits until the event is durable; raises Fenced if it cannot be."""

    def __init__(self, sink: EventSink, clock: Clock, transcript: Transcript) -> None:
        self._sink = sink
        self._clock = clock
        self.transcript = transcript
        self._ended = False
        self._last: Awaitable[int]

    def write(self, body: Body, *, turn: int | None = None, call: str | None = None) -> Awaitable[int]:
        if self._ended and body.kind != "call.late":
            return self._last  # the end has been written: whatever comes now changes nothing any more
        at = self._clock.now()
        item = draft(body, at=at, turn=turn, call=call)
        self.transcript.apply(body, turn=turn, call=call, at=at)
        self._ended = self._ended or body.kind in FINAL_KINDS
        self._last = self._sink.emit(item)
        return self._last
