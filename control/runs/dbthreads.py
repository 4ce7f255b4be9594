"""A few threads through which the loop reaches the database, each with a connection of its own."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import connection

from agents.errors import RunFailed
from control.runs.outages import AWAY, is_full

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)

THREADS = 4
FIRST_WAIT_S = 0.05
LONGEST_WAIT_S = 1.0
FULL_PATIENCE_S, FULL_REST_S = 3.0, 0.5
FULL = (
    "The disk of the database is full, so what this run has made cannot be kept. Make room (manage.py prune drops old "
    "runs), then start it again."
)


class DbThreads:
    def __init__(self, threads: int = THREADS) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="database")

    async def once(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` in a thread, one time. A connection that broke is replaced before the next use."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: _guarded(work, *args, **kwargs))

    async def stored(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """As `patiently`, for content of any size. Raises RunFailed where the disk stays full: what is small may still
        fit, so the run can say why it ends."""
        give_up_at = asyncio.get_running_loop().time() + FULL_PATIENCE_S
        while True:
            try:
                return await self.once(work, *args, **kwargs)
            except AWAY as error:
                if not is_full(error):
                    return await self.patiently(work, *args, **kwargs)
                if asyncio.get_running_loop().time() >= give_up_at:
                    raise RunFailed("disk_full", FULL) from error
            await asyncio.sleep(FULL_REST_S)

    async def patiently(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same for work that may be repeated: while the database is away it is tried again, until cancelled."""
        wait = FIRST_WAIT_S
        while True:
            try:
                return await self.once(work, *args, **kwargs)
            except AWAY as error:
                logger.warning("%s waits for the database: %s", getattr(work, "__qualname__", work), error)
                await asyncio.sleep(wait)
                wait = min(wait * 2, LONGEST_WAIT_S)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def _guarded(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        return work(*args, **kwargs)
    except AWAY:
        connection.close()
        raise
