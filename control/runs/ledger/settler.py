"""Settling what calls came to, for all runs of one worker together: a kill switch ends hundreds of calls at once.

Whatever came in while the last group was being settled is the next group; nothing waits for a timer.
"""

import asyncio
import weakref

from agents.policy.accounts import Amounts
from control.runs.dbthreads import DbThreads
from control.runs.ledger import book

LARGEST = 200


class Settler:
    """On the host's loop only."""

    def __init__(self, database: DbThreads) -> None:
        self._database = database
        self._waiting: list[tuple[str, Amounts, asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None

    async def settle(self, reservation: str, spent: Amounts) -> None:
        """Returns once it is settled. Raises what the database says against its group."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((reservation, spent, future))
        if self._task is None:
            self._task = asyncio.create_task(self._work(), name="settler")
        await future

    async def _work(self) -> None:
        try:
            # Those that were cancelled together come in together.
            await asyncio.sleep(0)
            while self._waiting:
                group, self._waiting = self._waiting[:LARGEST], self._waiting[LARGEST:]
                await self._group(group)
        finally:
            self._task = None

    async def _group(self, group: list[tuple[str, Amounts, "asyncio.Future[None]"]]) -> None:
        try:
            await self._database.patiently(book.settle_many, {name: spent for name, spent, _ in group})
        except Exception as error:
            for _, _, future in group:
                if not future.done():
                    future.set_exception(error)
        else:
            for _, _, future in group:
                if not future.done():
                    future.set_result(None)


_settlers: "weakref.WeakKeyDictionary[DbThreads, Settler]" = weakref.WeakKeyDictionary()


def settler_of(database: DbThreads) -> Settler:
    """The one of this worker."""
    found = _settlers.get(database)
    if found is None:
        found = _settlers[database] = Settler(database)
    return found
