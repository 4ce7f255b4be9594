"""One socket's sender: whatever queued while the last send ran goes out as one frame, within what was acknowledged."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from django.conf import settings
from django.utils import timezone

from control.dashboard import frames
from control.dashboard.feed import Format, RunFeed, rest_s
from control.dashboard.window import Window
from control.runs.meter import METER

# A page that keeps up acknowledges within a round trip; only who stays silent this long is told to start again.
ACK_GRACE_S = 0.5
TEXTS_KEPT = 64

Send = Callable[[bytes], Awaitable[None]]
Check = Callable[[], Awaitable[bool]]


class SessionEnded(Exception):
    """The session or token behind this socket is no longer good."""


class Viewer:
    """Follows one run from a cursor. `send` writes one frame; `still_allowed` is asked with every heartbeat."""

    def __init__(self, *, feed: RunFeed, format: Format, cursor: int, send: Send, still_allowed: Check) -> None:
        self.format: Format = format
        self._feed = feed
        self._send = send
        self._still_allowed = still_allowed
        self._window = Window(cursor)
        self._wake = asyncio.Event()
        self._acked = asyncio.Event()
        self._texts: deque[bytes] = deque()
        self._side = 0
        self._loop = asyncio.get_running_loop()
        self._clock = self._loop.time
        self._beat_at = self._clock() + settings.HEARTBEAT_SECONDS
        self._alarm: asyncio.TimerHandle | None = None

    # --- what the feed and the socket tell ----------------------------------------------------------------------------

    def woken(self) -> None:
        self._wake.set()

    def text(self, frame: bytes) -> None:
        if self._window.resynced:
            return
        if len(self._texts) >= TEXTS_KEPT or not self._window.text_fits(len(frame)):
            self._texts.clear()
            return
        self._texts.append(frame)
        self._wake.set()

    def withdrawn(self, call: str, frame: bytes) -> None:
        if not self._window.resynced:
            self._texts.append(frame)
            self._wake.set()

    def ack(self, seq: int) -> bool:
        known = self._window.ack(seq)
        self._acked.set()
        self._wake.set()
        return known

    # --- sending ------------------------------------------------------------------------------------------------------

    async def run(self, last_seq: int, epoch: int) -> None:
        """Send until cancelled. Raises SessionEnded."""
        try:
            await self._run(last_seq, epoch)
        finally:
            if self._alarm is not None:
                self._alarm.cancel()

    async def _run(self, last_seq: int, epoch: int) -> None:
        self._alarm = self._loop.call_at(self._beat_at, self._wake.set)
        await self._send(frames.hello(last_seq, epoch))
        for frame in self._feed.whole_texts():
            self.text(frame)
        while True:
            self._wake.clear()
            # A loop's timers may come a little early, within the resolution of its clock.
            if self._clock() >= self._beat_at - 0.001:
                await self._beat()
            if not await self._send_what_is_there():
                # For news, or for the alarm of the next heartbeat.
                await self._wake.wait()
            elif self._feed.further(self.format, self._window.sent):
                # Who has much to catch up with leaves room for the others.
                await asyncio.sleep(rest_s())

    async def _send_what_is_there(self) -> bool:
        window = self._window
        chunk = await self._feed.take(
            self.format, window.sent, window.events_left, window.bytes_left, force=window.idle
        )
        if chunk is not None and chunk.last == window.sent:
            await self._until_acknowledged()
            return True
        if chunk is not None:
            frame = frames.events(chunk.data) if self.format == "json" else frames.patch_frame(chunk.last, chunk.data)
            window.sent_events(chunk.last, len(frame))
            await self._send(frame)
        sent_more = await self._send_loose()
        return chunk is not None or sent_more

    async def _send_loose(self) -> bool:
        """Live text and side parts, which have no place in the order of events."""
        texts, self._texts = self._texts, deque()
        for frame in texts:
            await self._send(frame)
        if self.format == "html" and self._side < self._feed.side.version:
            version = self._feed.side.version
            data = self._feed.side_since(self._side)
            self._side = version
            await self._send(frames.side_frame(data))
        return bool(texts)

    async def _until_acknowledged(self) -> None:
        """There is more but no room. A page in good health acknowledges now; else one resync, then silence."""
        self._acked.clear()
        try:
            await asyncio.wait_for(self._acked.wait(), ACK_GRACE_S)
            return
        except TimeoutError:
            pass
        if not self._window.resynced:
            self._window.resynced = True
            METER.resyncs += 1
            self._texts.clear()
            await self._send(frames.resync(self._window.sent))
        while not self._acked.is_set():
            try:
                await asyncio.wait_for(self._acked.wait(), settings.HEARTBEAT_SECONDS)
            except TimeoutError:
                await self._check()

    async def _beat(self) -> None:
        await self._check()
        self._beat_at = self._clock() + settings.HEARTBEAT_SECONDS
        self._alarm = self._loop.call_at(self._beat_at, self._wake.set)
        await self._send(frames.heartbeat(self._feed.head, timezone.now()))

    async def _check(self) -> None:
        if not await self._still_allowed():
            raise SessionEnded
