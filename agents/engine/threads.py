"""Daemon threads for blocking work: one that goes deaf is left behind and never holds up a slot or the exit."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

Work = Callable[[], Any]
Job = tuple[Work, "Callable[[Any, BaseException | None], None]"]


class _Thread(threading.Thread):
    def __init__(self, pool: "ThreadPool") -> None:
        super().__init__(daemon=True, name="tool")
        self._pool = pool
        self._wake = threading.Semaphore(0)
        self._job: Job | None = None

    def take(self, job: Job) -> None:
        self._job = job
        self._wake.release()

    def run(self) -> None:
        while True:
            self._wake.acquire()
            job, self._job = self._job, None
            assert job is not None
            work, done = job
            try:
                result, error = work(), None
            except BaseException as caught:
                result, error = None, _bearable(caught)
            # Free again before the caller hears of it: its next piece of work finds this thread idle.
            self._pool.give_back(self)
            done(result, error)


def _bearable(error: BaseException) -> BaseException:
    """An error that a future can hold and an event loop survives: no StopIteration, no SystemExit, no false cancel."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return RuntimeError(f"{type(error).__name__}: {error}".removesuffix(": "))


class ThreadPool:
    """Grows as needed (a deaf thread must not starve the others) and reuses idle threads."""

    def __init__(self) -> None:
        self._idle: deque[_Thread] = deque()
        # Threads that somebody has given up waiting for and that still run.
        self.deaf = 0

    def give_back(self, thread: _Thread) -> None:
        self._idle.append(thread)

    def submit(self, work: Work, ended: "asyncio.Future[None] | None" = None) -> "asyncio.Future[Any]":
        """A future on the running loop. Cancelling it does not stop the thread; its late result is dropped.

        `ended` is settled with it: who awaits that may be cancelled and leave the future as it is.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def settle(result: Any, error: BaseException | None) -> None:
            if ended is not None and not ended.done():
                ended.set_result(None)
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        def done(result: Any, error: BaseException | None) -> None:
            try:
                loop.call_soon_threadsafe(settle, result, error)
            except RuntimeError:
                pass  # the loop is closed: nobody waits any more

        try:
            thread = self._idle.pop()
        except IndexError:
            thread = _Thread(self)
            thread.start()
        thread.take((work, done))
        return future


POOL = ThreadPool()
