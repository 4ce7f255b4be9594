"""The feed of the whole fleet: rows that changed, gathered for a moment, written once, sent to everyone who looks."""

import asyncio
import logging
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

import orjson
from django.utils import timezone

from agents.spec import ACTIVE
from control.dashboard import fleet_rows
from control.dashboard.feed import Format
from control.runs import rows
from control.runs.dbthreads import DbThreads
from control.runs.models import Run

GATHER_S = 0.15
POLL_S = 2.0
STRIP_EVERY_S = 1.0
SNAPSHOT = 500

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
        now = asyncio.get_running_loop().time()
        if now - self._strip_at < STRIP_EVERY_S:
            return {}
        self._strip_at = now
        html = await self._threads.once(fleet_rows.strip_html)
        if html == self._strip:
            return {}
        self._strip = html
        return {"strip": orjson.dumps({"op": "replace", "target": "strip", "id": "strip", "html": html})}

    async def _poll(self) -> None:
        """Hints may be lost: compare the heads of what is alive now and of what was alive before."""
        while True:
            await asyncio.sleep(POLL_S)
            try:
                heads = await self._threads.once(_heads, list(self._seen)[:SNAPSHOT])
            except Exception:
                logger.exception("the fleet could not be polled")
                continue
            self._dirty |= {run for run, head in heads.items() if self._seen.get(run) != head.seen}
            self._seen = {run: head.seen for run, head in heads.items() if head.active}
            self._wake.set()


def _heads(before: Collection[str]) -> dict[str, Head]:
    now = timezone.now()
    words = [status.value for status in ACTIVE]
    columns = ("id", "last_seq", "lease_until")
    alive = Run.objects.filter(status__in=words).values_list(*columns)[:5_000]
    # A lapsed lease changes the word of a row without an event.
    found = {run: Head((last, bool(lease and lease < now)), True) for run, last, lease in alive}
    gone = Run.objects.filter(id__in=[run for run in before if run not in found]).values_list(*columns)
    return found | {run: Head((last, False), False) for run, last, _ in gone}


def row_pieces(runs: Collection[str], format: Format) -> dict[str, bytes]:
    """Each run's row as one piece of a frame."""
    if not runs:
        return {}
    found = Run.objects.filter(id__in=runs).defer("final")
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
    alive = list(Run.objects.filter(status__in=words).order_by("-id")[:SNAPSHOT])
    newest = list(Run.objects.order_by("-id")[: fleet_rows.PAGE])
    every = {run.pk: run for run in [*alive, *newest]}
    return orjson.dumps({"type": "snapshot", "runs": [rows.run_row(run) for run in every.values()]})


def since(moment: datetime) -> dict[str, bytes]:
    """Rows that moved since a page was written, so that nothing falls between the page and its socket."""
    moved = Run.objects.filter(last_activity_at__gte=moment - timedelta(seconds=2))
    fresh = Run.objects.filter(created_at__gte=moment - timedelta(seconds=2))
    return row_pieces({*moved.values_list("id", flat=True)[:200], *fresh.values_list("id", flat=True)[:200]}, "html")
