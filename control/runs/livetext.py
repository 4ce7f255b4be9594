"""Live text: what models are writing now, gathered for a moment, made safe, published, never logged."""

import asyncio
import time
from dataclasses import dataclass, field

import orjson

from agents.policy.redaction import make_safe
from control.runs.bus import TEXT, Bus

GATHER_S = 0.04
# The whole text again, for readers that came late or missed a piece; rarer while nothing new comes or when it is long.
WHOLE_EVERY_S = 1.0
WHOLE_UNCHANGED_S = 5.0
WHOLE_BYTES_PER_S = 64 * 1024
# A word may turn out to be a secret only when it is complete: the last one is held back, up to this length.
HOLD_BACK = 256


@dataclass(slots=True, kw_only=True)
class _Stream:
    """The text of one attempt. `sent` counts the characters that readers have, as they have them (made safe)."""

    run: str
    call: str
    attempt: int
    pieces: list[str] = field(default_factory=list)
    fresh: list[str] = field(default_factory=list)
    length: int = 0
    sent: int = 0
    whole_at: float = 0.0
    changed: bool = False


class LiveTexts:
    """All streams of one worker; everything happens on its loop."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._streams: dict[str, _Stream] = {}
        self._timer: asyncio.TimerHandle | None = None

    def of(self, run: str) -> "RunText":
        """The port that one run's engine writes to."""
        return RunText(self, run)

    def delta(self, run: str, call: str, attempt: int, text: str) -> None:
        stream = self._streams.get(run)
        if stream is None or stream.call != call or stream.attempt != attempt:
            # A run has one model call at a time; the event of the last one has its whole text.
            stream = self._streams[run] = _Stream(run=run, call=call, attempt=attempt, whole_at=time.monotonic())
        stream.fresh.append(text)
        stream.length += len(text)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(GATHER_S, self._flush)

    def withdrawn(self, run: str, call: str, attempt: int) -> None:
        stream = self._streams.get(run)
        if stream is not None and stream.call == call and stream.attempt == attempt:
            del self._streams[run]
        self._publish({"run": run, "type": "withdrawn", "call": call, "attempt": attempt})

    def forget(self, run: str) -> None:
        """The call or the run has ended; what is still gathered stands in its event."""
        self._streams.pop(run, None)

    def forget_call(self, run: str, call: str | None) -> None:
        stream = self._streams.get(run)
        if stream is not None and stream.call == call:
            del self._streams[run]

    def _flush(self) -> None:
        now = time.monotonic()
        for stream in self._streams.values():
            self._flush_one(stream, now)
        self._timer = None
        if self._streams:
            self._timer = asyncio.get_running_loop().call_later(GATHER_S, self._flush)

    def _flush_one(self, stream: _Stream, now: float) -> None:
        every = max(
            WHOLE_EVERY_S if stream.changed or stream.fresh else WHOLE_UNCHANGED_S, stream.length / WHOLE_BYTES_PER_S
        )
        due = now - stream.whole_at >= every
        if not stream.fresh and not due:
            return
        ready, held = _up_to_last_word("".join(stream.fresh))
        stream.fresh = [held] if held else []
        if ready:
            stream.pieces.append(ready)
            stream.changed = True
        if due:
            whole = "".join(stream.pieces)
            stream.pieces = [whole]
            stream.whole_at, stream.changed = now, False
            stream.sent = 0
            ready = whole
        if ready:
            self._send(stream, make_safe(ready).text)

    def _send(self, stream: _Stream, text: str) -> None:
        self._publish(
            {
                "run": stream.run,
                "type": "delta",
                "call": stream.call,
                "attempt": stream.attempt,
                "offset": stream.sent,
                "text": text,
            }
        )
        stream.sent += len(text)

    def _publish(self, message: dict[str, object]) -> None:
        self._bus.publish(TEXT, orjson.dumps(message))


class RunText:
    """Implements `ports.LiveText` for one run."""

    __slots__ = ("_run", "_texts")

    def __init__(self, texts: LiveTexts, run: str) -> None:
        self._texts = texts
        self._run = run

    def delta(self, call: str, attempt: int, offset: int, text: str) -> None:
        # `offset` counts raw characters; readers count safe ones, which the stream keeps itself.
        self._texts.delta(self._run, call, attempt, text)

    def withdrawn(self, call: str, attempt: int) -> None:
        self._texts.withdrawn(self._run, call, attempt)


def _up_to_last_word(text: str) -> tuple[str, str]:
    """`text` cut behind its last white space; an unfinished word longer than a secret may be is not held back."""
    if not text or text[-1].isspace():
        return text, ""
    word = text.split()[-1] if not text.isspace() else ""
    if len(word) > HOLD_BACK:
        return text, ""
    return text[: len(text) - len(word)], word
