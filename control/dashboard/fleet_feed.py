"""The feed of the whole fleet: rows that changed, gathered for a moment, written once, sent to everyone who looks."""

import asyncio
import logging
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

import orjson
from django.db.models import Case, Q, QuerySet, When
from django.utils import timezone

from agents.spec import ACTIVE
from control.dashboard import fleet_rows, gauges
from control.dashboard.feed import Format
from control.runs import rows
from control.runs.dbthreads import DbThreads
from control.runs.models import Run

GATHER_S = 0.15
POLL_S = 2.0
# What moved between somebody's snapshot and the first look, with room for clocks that differ.
LATELY_S = 5.0
STRIP_EVERY_S = 1.0
SNAPSHOT = 500
MOST_SINCE = 200

logger = logging.getLogger(__name__)


class Head(NamedTuple):
    """What a poll compares: the last `seq` and whether the lease has lapsed; and whether to look again."""

    seen: tuple[int, bool]
    active: bool


class FleetWatcher(Protocol):
    format: Format

    def changed(self, pieces: dict[str, bytes]) -> None:
        """Newest piece per run (`strip` for the strip); a later one replaces one that is still waiting."""
        ...


class FleetFeed:
    """Lives as long as somebody looks at the fleet."""

    def __init__(self, threads: DbThreads) -> None:
        self.viewers: set[FleetWatcher] = set()
        self._threads = threads
        self._dirty: set[str] = set()
        self._wake = asyncio.Event()
        self._seen: dict[str, tuple[int, bool]] = {}
        self._strip = ""
        self._strip_at = 0.0
        self._strip_again: asyncio.TimerHandle | None = None
        self._tasks = [
            asyncio.create_task(self._forever(), name="fleet feed"),
            asyncio.create_task(self._poll(), name="fleet poll"),
        ]

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    def touched(self, run: str) -> None:
        self._dirty.add(run)
        self._wake.set()

    def poke(self) -> None:
        self._wake.set()

    async def _forever(self) -> None:
        while True:
            try:
                await self._wake.wait()
                await asyncio.sleep(GATHER_S)
                self._wake.clear()
                dirty, self._dirty = self._dirty, set()
                await self._send(dirty)
            except Exception:
                logger.exception("the fleet feed stumbled")
                await asyncio.sleep(0.5)

    async def _send(self, dirty: Collection[str]) -> None:
        formats = {viewer.format for viewer in self.viewers}
        for format in formats:
            pieces = await self._threads.once(row_pieces, list(dirty), format)
            if format == "html":
                pieces |= await self._fresh_strip()
            for viewer in self.viewers:
                if viewer.format == format and pieces:
                    viewer.changed(pieces)

    async def _fresh_strip(self) -> dict[str, bytes]:
        loop = asyncio.get_running_loop()
        now = loop.time()
        if now - self._strip_at < STRIP_EVERY_S:
            # The last change of a busy second must not wait for the next one.
            if self._strip_again is None or self._strip_again.when() <= now:
                self._strip_again = loop.call_at(self._strip_at + STRIP_EVERY_S, self._wake.set)
            return {}
        self._strip_at = now
        html = await self._threads.once(fleet_rows.strip_html, 0.0)
        if html == self._strip:
            return {}
        self._strip = html
        return {"strip": _strip_piece(html)}

    async def _poll(self) -> None:
        """Hints may be lost: compare the heads of what is alive now and of what was alive before. The first look, at
        once, remembers, and sends what moved just now: all that came earlier is on the pages and in the snapshot."""
        first = True
        while True:
            try:
                heads = await self._threads.once(_heads, list(self._seen)[:SNAPSHOT])
                lately = await self._threads.once(_moved_lately) if first else set()
            except Exception:
                logger.exception("the fleet could not be polled")
            else:
                moved = {run for run, head in heads.items() if self._seen.get(run) != head.seen}
                self._dirty |= lately if first else moved
                self._seen = {run: head.seen for run, head in heads.items() if head.active}
                self._wake.set()
                first = False
            await asyncio.sleep(POLL_S)


def _heads(before: Collection[str]) -> dict[str, Head]:
    words = [status.value for status in ACTIVE]
    # A lapsed lease changes the word of a row without an event. Told by the database: thousands of times read from text
    # would be most of what a look costs.
    lapsed = Case(When(lease_until__lt=timezone.now(), then=True), default=False)
    alive = Run.objects.filter(status__in=words).values_list("id", "last_seq", lapsed)[:5_000]
    found = {run: Head((last, bool(late)), True) for run, last, late in alive}
    gone = Run.objects.filter(id__in=[run for run in before if run not in found]).values_list("id", "last_seq")
    return found | {run: Head((last, False), False) for run, last in gone}


def _moved_lately() -> set[str]:
    return set(_newest(timezone.now() - timedelta(seconds=LATELY_S)))


def _newest(since: datetime) -> list[str]:
    """Of what moved since then the newest: thousands may have, and a page shows the newest."""
    return list(_moved(since).order_by("-id").values_list("id", flat=True)[:MOST_SINCE])


def _moved(since: datetime) -> QuerySet[Run]:
    return Run.objects.filter(Q(created_at__gte=since) | fleet_rows.active_since(since))


def row_pieces(runs: Collection[str], format: Format) -> dict[str, bytes]:
    """Each run's row as one piece of a frame."""
    if not runs:
        return {}
    found = gauges.with_limits(Run.objects.filter(id__in=runs))
    if format == "json":
        return {run.pk: orjson.dumps({"type": "run", "run": rows.run_row(run)}) for run in found}
    now = timezone.now()
    return {
        run.pk: orjson.dumps(
            {
                "op": "row", "target": "rows", "id": f"run-{run.pk}", "root": run.root, "parent": run.parent,
                "html": fleet_rows.row_html(run, now),
            }
        )
        for run in found
    }  # fmt: skip


def snapshot() -> bytes:
    """The rows of the fleet's first page and of everything alive, for machines."""
    words = [status.value for status in ACTIVE]
    light = Run.objects.defer("spec", "final").order_by("-id")
    alive = list(light.filter(status__in=words)[:SNAPSHOT])
    newest = list(light[: fleet_rows.PAGE])
    every = {run.pk: run for run in [*alive, *newest]}
    return orjson.dumps({"type": "snapshot", "runs": [rows.run_row(run) for run in every.values()]})


def since(moment: datetime) -> dict[str, bytes]:
    """Strip, and rows that moved since a page was written: so that nothing falls between the page and its socket."""
    moved = _newest(moment - timedelta(seconds=2))
    return {"strip": _strip_piece(fleet_rows.strip_html())} | row_pieces(moved, "html")


def _strip_piece(html: str) -> bytes:
    return orjson.dumps({"op": "replace", "target": "strip", "id": "strip", "html": html})
