"""The two sockets: one run's log as it grows, and the fleet's rows. Nothing but acknowledgements comes in."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs

import orjson
from channels.exceptions import StopConsumer
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.utils import timezone

from control.dashboard import fleet_feed, frames
from control.dashboard.feed import Format, RunFeed
from control.dashboard.gate import Admitted, admit
from control.dashboard.hub import Hub, hub
from control.dashboard.viewer import SessionEnded, Viewer
from control.dashboard.window import MOST_BYTES
from control.runs.meter import METER
from control.runs.models import Run

# Close codes of our own range; a refusal before the handshake is HTTP 403.
CURSOR_AHEAD = 4400
SESSION_ENDED = 4401
TOO_MUCH = 4413
LARGEST_IN = 4096

Receive = Callable[[], Awaitable[dict[str, Any]]]

logger = logging.getLogger(__name__)


class Socket(AsyncWebsocketConsumer):  # type: ignore[misc]
    """What both have in common: the gate, the format, one sending task that ends with the socket."""

    hub: Hub
    format: Format
    admitted: Admitted
    query: dict[str, list[str]]
    sending: asyncio.Task[None] | None = None

    async def __call__(self, scope: Any, receive: Receive, send: Callable[[Any], Awaitable[None]]) -> None:
        """One message after the other. Channels' own loop makes a task for each, and goes to a thread to close old
        connections of a database that nobody here asks from there: most of what an acknowledgement would cost."""
        self.scope, self.base_send, self.channel_layer = scope, send, None
        with suppress(StopConsumer):
            while True:
                message = await receive()
                await getattr(self, message["type"].replace(".", "_"))(message)

    async def enter(self) -> bool:
        """Judge the handshake; False if it is to be refused."""
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self.scope["headers"]}
        self.query = parse_qs(self.scope["query_string"].decode("latin-1"))
        wanted = self.query.get("format", ["html"])[-1]
        if wanted not in ("html", "json"):
            return False
        self.format = wanted  # type: ignore[assignment]
        self.hub = hub()
        judged = await self.hub.threads.once(admit, headers)
        if not isinstance(judged, Admitted):
            logger.info("socket refused: %s", judged.code)
            return False
        self.admitted = judged
        return True

    async def still_allowed(self) -> bool:
        return await self.hub.threads.once(self.admitted.still)

    async def put(self, frame: bytes) -> None:
        await self.send(text_data=frame.decode())
        METER.frames += 1
        METER.frame_bytes += len(frame)

    def go(self, work: Coroutine[Any, Any, None]) -> None:
        METER.sockets += 1
        self.sending = asyncio.create_task(self._guarded(work))

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except SessionEnded:
            await self.close(code=SESSION_ENDED, reason="session_ended")
        except asyncio.CancelledError:
            raise
        except Exception:
            logger.exception("a socket's sender failed")
            with suppress(Exception):
                await self.close(code=1011)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if text_data is None or len(text_data) > LARGEST_IN:
            await self.close(code=TOO_MUCH, reason="frame_too_large")
            return
        try:
            said = orjson.loads(text_data)
        except orjson.JSONDecodeError:
            return
        if isinstance(said, dict) and said.get("type") == "ack" and isinstance(said.get("seq"), int):
            self.acknowledged(said["seq"])

    def acknowledged(self, seq: int) -> None: ...

    def left(self) -> None: ...

    async def disconnect(self, code: int) -> None:
        self.left()
        if self.sending is not None:
            METER.sockets -= 1
            self.sending.cancel()
            await asyncio.gather(self.sending, return_exceptions=True)


class RunSocket(Socket):
    """`/ws/runs/{id}?after=SEQ&format=html|json`."""

    feed: RunFeed | None = None
    viewer: Viewer | None = None

    async def connect(self) -> None:
        run_id = self.scope["url_route"]["kwargs"]["run"]
        if not await self.enter():
            await self.close()
            return
        given = self.query.get("after", ["0"])[-1]
        row = await self.hub.threads.once(_row, run_id)
        if row is None or not (given.isascii() and given.isdigit() and len(given) < 16):
            await self.close()
            return
        run, root, last_seq, epoch = row
        after = int(given)
        if after > last_seq:
            # After the handshake, so that the page can read the code; a 403 would tell it nothing.
            await self.accept()
            await self.put(frames.refusal("cursor_ahead", last_seq=last_seq, epoch=epoch))
            await self.close(code=CURSOR_AHEAD, reason="cursor_ahead")
            return
        await self.accept()
        self.feed = await self.hub.feed(run, root, last_seq)
        self.viewer = Viewer(
            feed=self.feed, format=self.format, cursor=after, send=self.put, still_allowed=self.still_allowed
        )
        self.feed.viewers.add(self.viewer)
        self.feed.poke()
        self.go(self.viewer.run(last_seq, epoch))

    def acknowledged(self, seq: int) -> None:
        if self.viewer is not None:
            self.viewer.ack(seq)

    def left(self) -> None:
        if self.viewer is not None and self.feed is not None:
            self.hub.leave(self.feed, self.viewer)


class FleetSocket(Socket):
    """`/ws/fleet?format=html|json`. It replays nothing; rows that wait to be sent are replaced by newer ones.

    A client that has acknowledged once is taken at its word: with a megabyte in flight its rows wait for the next word.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._pieces: dict[str, bytes] = {}
        self._wake = asyncio.Event()
        self._acknowledges = False
        self._in_flight = 0

    async def connect(self) -> None:
        if not await self.enter():
            await self.close()
            return
        await self.accept()
        await self.hub.join_fleet(self)
        self.go(self._run())

    def changed(self, pieces: dict[str, bytes]) -> None:
        self._pieces |= pieces
        self._wake.set()

    def acknowledged(self, seq: int) -> None:
        self._acknowledges = True
        self._in_flight = 0
        self._wake.set()

    async def _run(self) -> None:
        await self.put(frames.hello(0, 0))
        if self.format == "json":
            await self.put(await self.hub.threads.once(fleet_feed.snapshot))
        else:
            moment = _moment(self.query.get("since", [""])[-1])
            if moment is not None:
                found = await self.hub.threads.once(fleet_feed.since, moment)
                # What the feed has told meanwhile is newer.
                self._pieces = found | self._pieces
        clock = asyncio.get_running_loop().time
        beat = clock() + settings.HEARTBEAT_SECONDS
        while True:
            self._wake.clear()
            if not self._acknowledges or self._in_flight < MOST_BYTES:
                pieces, self._pieces = self._pieces, {}
                await self._put_all(list(pieces.values()))
            if clock() >= beat:
                if not await self.still_allowed():
                    raise SessionEnded
                await self.put(frames.heartbeat(None, timezone.now()))
                beat = clock() + settings.HEARTBEAT_SECONDS
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), max(0.0, beat - clock()))

    async def _put_all(self, pieces: list[bytes]) -> None:
        if not pieces:
            return
        self._in_flight += sum(map(len, pieces))
        if self.format == "html":
            await self.put(frames.side_frame(b",".join(pieces)))
            return
        for piece in pieces:
            await self.put(piece)

    def left(self) -> None:
        self.hub.leave_fleet(self)


class Nowhere(AsyncWebsocketConsumer):  # type: ignore[misc]
    """Any other address: refused before the handshake like everything that is not allowed."""

    async def connect(self) -> None:
        await self.close()


def _row(run_id: str) -> tuple[str, str, int, int] | None:
    return Run.objects.filter(pk=run_id).values_list("id", "root", "last_seq", "epoch").first()


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
