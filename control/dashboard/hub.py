"""The hub of one web process: one subscription to the bus, one feed per watched run, one for the fleet."""

import asyncio
import logging
import weakref
from contextlib import suppress

import orjson

from control.dashboard import wake
from control.dashboard.feed import RunFeed, Watcher
from control.dashboard.fleet_feed import FleetFeed, FleetWatcher
from control.runs import bus
from control.runs.dbthreads import DbThreads
from control.runs.models import Run

POLL_S = 1.0
# A page that is reloaded finds its feed warm.
LINGER_S = 5.0

logger = logging.getLogger(__name__)
_hubs: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Hub]" = weakref.WeakKeyDictionary()


def hub() -> "Hub":
    """The hub of the running loop."""
    loop = asyncio.get_running_loop()
    found = _hubs.get(loop)
    if found is None:
        found = _hubs[loop] = Hub()
    return found


class Hub:
    """All of it happens on one loop; only the database is reached from threads."""

    def __init__(self) -> None:
        self.threads = DbThreads()
        self._feeds: dict[str, RunFeed] = {}
        self._fleet: FleetFeed | None = None
        self._starting: asyncio.Task[None] | None = None
        self._subscription: bus.Subscription | None = None
        self._poller: asyncio.Task[None] | None = None

    async def _started(self) -> None:
        """Subscribe before the first cursor is read: what comes in between is then heard, not missed."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._start(), name="hub start")
        await asyncio.shield(self._starting)

    async def _start(self) -> None:
        self._subscription = await bus.bus().subscribe((bus.EVENTS, bus.TEXT, bus.COMMANDS), self.deliver)
        self._poller = asyncio.create_task(self._poll(), name="hub poll")

    def deliver(self, topic: str, message: bytes) -> None:
        """One hint. Runs that nobody here watches cost a look at a few bytes."""
        if topic == bus.RECONNECTED:
            self._poke_all()
            return
        if not self._feeds and self._fleet is None:
            return
        run, root = wake.names(message)
        if topic == bus.TEXT:
            if run in self._feeds:
                self._feeds[run].heard(orjson.loads(message))
            return
        if self._fleet is not None:
            self._fleet.touched(run)
        if topic == bus.EVENTS and run in self._feeds:
            self._feeds[run].hinted(message)
        for feed in self._feeds.values():
            if feed.run == run or (root and feed.root == root):
                feed.poke_side()

    def _poke_all(self) -> None:
        for feed in self._feeds.values():
            feed.poke()
        if self._fleet is not None:
            self._fleet.poke()

    async def feed(self, run: str, root: str, head: int) -> RunFeed:
        """The feed of a run, made if nobody has watched it so far."""
        await self._started()
        feed = self._feeds.get(run)
        if feed is None:
            feed = self._feeds[run] = RunFeed(run, root, head, self.threads)
        return feed

    def leave(self, feed: RunFeed, viewer: Watcher) -> None:
        feed.viewers.discard(viewer)
        if not feed.viewers:
            asyncio.get_running_loop().call_later(LINGER_S, self._end_if_unwatched, feed)

    def _end_if_unwatched(self, feed: RunFeed) -> None:
        if not feed.viewers and self._feeds.get(feed.run) is feed:
            del self._feeds[feed.run]
            feed.close()

    async def join_fleet(self, viewer: FleetWatcher) -> None:
        await self._started()
        if self._fleet is None:
            self._fleet = FleetFeed(self.threads)
        self._fleet.viewers.add(viewer)

    def leave_fleet(self, viewer: FleetWatcher) -> None:
        if self._fleet is not None:
            self._fleet.viewers.discard(viewer)
            if not self._fleet.viewers:
                self._fleet.close()
                self._fleet = None

    async def _poll(self) -> None:
        """Lost hints cost a second: one query tells the heads of all watched runs."""
        while True:
            await asyncio.sleep(POLL_S)
            if not self._feeds:
                continue
            with suppress(Exception):
                heads = await self.threads.once(_heads, list(self._feeds))
                for run, last in heads.items():
                    feed = self._feeds.get(run)
                    if feed is not None and last > feed.head:
                        feed.poke()


def _heads(runs: list[str]) -> dict[str, int]:
    return dict(Run.objects.filter(id__in=runs).values_list("id", "last_seq"))
