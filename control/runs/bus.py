"""The bus: hints and live text between processes; one small port with two backends, Redis pub/sub and a Unix socket.

What travels here is never needed for correctness. A lost message costs the next poll, so publishing never blocks,
never raises and gives up early; a reader that was cut off is told "reconnected" and asks the database.
"""

import asyncio
import atexit
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

EVENTS = "events"
TEXT = "text"
COMMANDS = "commands"
RECONNECTED = "reconnected"

Deliver = Callable[[str, bytes], None]

logger = logging.getLogger(__name__)


class Subscription(Protocol):
    """An open subscription. `close` may be called more than once; nothing is delivered after it."""

    def close(self) -> None: ...


class Bus(Protocol):
    def publish(self, topic: str, message: bytes) -> None:
        """Send soon, from any thread. Never blocks, never raises; while nobody can take it the message is dropped."""
        ...

    async def subscribe(self, topics: Iterable[str], deliver: Deliver) -> Subscription:
        """Call `deliver(topic, message)` on the running loop for every message from now on.

        Reconnects for ever. Whenever messages may have been missed, also when the bus could not be reached at first,
        `deliver("reconnected", b"")` follows as soon as messages flow again.
        """
        ...

    def close(self, timeout_s: float = 0.5) -> None:
        """Send what is queued, as far as that takes no longer than `timeout_s`."""
        ...


_lock = threading.Lock()
_bus: Bus | None = None


def bus() -> Bus:
    """The bus of this process, chosen by settings."""
    global _bus
    if _bus is None:
        with _lock:
            if _bus is None:
                _bus = _make()
                atexit.register(_close_at_exit)
    return _bus


def _make() -> Bus:
    from django.conf import settings

    if settings.REDIS_URL:
        from control.runs.bus_redis import RedisBus

        return RedisBus(settings.REDIS_URL, settings.REDIS_PREFIX)
    from control.runs.bus_unix import UnixBus, socket_path

    return UnixBus(socket_path(settings.BUS_SOCKET))


def _close_at_exit() -> None:
    # A command such as `interrupt` ends right after it has published; its hint should still get out.
    if _bus is not None:
        _bus.close()


class Link(Protocol):
    """One connection on which the wanted topics arrive; `closed` is done when it ends, however it ends."""

    closed: asyncio.Future[None]

    def close(self) -> None: ...


class Reader:
    """Keeps one subscription alive: connects, waits for the end, connects again, and says when a gap may have been."""

    FIRST_TRY_S = 1.0
    MAX_WAIT_S = 1.0

    def __init__(self, connect: Callable[[Deliver], Awaitable[Link]], deliver: Deliver) -> None:
        self._connect = connect
        self._wanted: Deliver | None = deliver
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns once connected, or after a second; then the tries go on in the background."""
        link: Link | None = None
        try:
            link = await asyncio.wait_for(self._connect(self._deliver), self.FIRST_TRY_S)
        except (OSError, TimeoutError, ValueError) as error:
            logger.info("bus not reached yet: %s", error)
        self._task = asyncio.create_task(self._keep(link), name="bus reader")

    def close(self) -> None:
        self._wanted = None
        if self._task is not None:
            self._task.cancel()

    def _deliver(self, topic: str, message: bytes) -> None:
        if self._wanted is None:
            return
        try:
            self._wanted(topic, message)
        except Exception:
            logger.exception("a reader of the bus failed on a message of topic %s", topic)

    async def _keep(self, link: Link | None) -> None:
        wait = 0.02
        while True:
            if link is None:
                await asyncio.sleep(wait)
                wait = min(wait * 2, self.MAX_WAIT_S)
                try:
                    link = await asyncio.wait_for(self._connect(self._deliver), 5.0)
                except (OSError, TimeoutError, ValueError):
                    continue
                self._deliver(RECONNECTED, b"")
            wait = 0.02
            try:
                await asyncio.shield(link.closed)
            finally:
                link.close()
            link = None
