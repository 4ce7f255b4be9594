"""The sending side of the bus: a bounded queue and one thread that sends whatever queued while it last sent."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

Message = tuple[str, bytes]

logger = logging.getLogger(__name__)


class Outbox:
    """Takes messages from any thread in about a microsecond; drops the oldest when the other side takes none.

    `send` may block for a bounded time and may raise OSError; it is tried twice (a connection that went stale while
    idle fails once), then its messages are dropped: they are hints.
    """

    LIMIT = 20_000
    LIMIT_BYTES = 32 * 1024 * 1024
    REST_S = 0.2

    def __init__(self, name: str, send: Callable[[Sequence[Message]], None]) -> None:
        self._name = name
        self._send = send
        self._queue: deque[Message] = deque()
        self._bytes = 0
        self._wake = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._start_lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._told_at = 0.0

    def put(self, topic: str, message: bytes) -> None:
        if self._closed:
            return
        if len(self._queue) >= self.LIMIT or self._bytes > self.LIMIT_BYTES:
            self._drop_oldest()
        self._queue.append((topic, message))
        self._bytes += len(message)
        if not self._wake.is_set():
            self._idle.clear()
            self._wake.set()
        if self._thread is None:
            self._start()

    def close(self, timeout_s: float) -> None:
        """Waits up to `timeout_s` until all is sent; afterwards the outbox takes nothing more."""
        deadline = time.monotonic() + timeout_s
        while self._thread is not None and time.monotonic() < deadline:
            # In this order: once the queue is empty, `idle` stays unset until what was taken from it is sent.
            if not self._queue and self._idle.is_set():
                break
            self._idle.wait(0.005)
        self._closed = True
        self._wake.set()

    def _drop_oldest(self) -> None:
        try:
            self._bytes -= len(self._queue.popleft()[1])
        except IndexError:
            pass

    def _start(self) -> None:
        with self._start_lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while not self._closed:
            if not self._queue:
                self._idle.set()
            self._wake.wait()
            self._wake.clear()
            self._idle.clear()
            batch = self._take()
            if batch and not self._try(batch) and not self._try(batch):
                time.sleep(self.REST_S)

    def _take(self) -> list[Message]:
        batch: list[Message] = []
        # The loop ends even while others keep adding: what came later goes with the next batch.
        for _ in range(len(self._queue)):
            try:
                batch.append(self._queue.popleft())
            except IndexError:
                break
        self._bytes = max(0, self._bytes - sum(len(message) for _, message in batch))
        return batch

    def _try(self, batch: Sequence[Message]) -> bool:
        try:
            self._send(batch)
        except OSError as error:
            if time.monotonic() - self._told_at > 30:
                self._told_at = time.monotonic()
                logger.warning("bus: %d hints not sent (%s); readers poll meanwhile", len(batch), error)
            return False
        return True
