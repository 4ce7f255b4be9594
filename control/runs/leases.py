"""Leases: who may drive a run, decided by conditional updates in database time.

A run is held while `lease_until` is set; `epoch` counts how often it was taken. A lease that has lapsed is never
renewed, so whoever sees it lapsed at an epoch may take the run away at that epoch without a race.
"""

import os
import socket
import time
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import F
from django.db.models.functions import Greatest, Now

from agents import kinds
from agents.spec import Status
from control.runs import log
from control.runs.dbtime import ahead_sql, now_sql
from control.runs.models import Run

# Where a requeue may find a run: held, in whatever it was doing.
HELD = (Status.QUEUED, Status.RUNNING, Status.WAITING, Status.STOPPING)


@cache
def this_host() -> str:
    return socket.gethostname()[:255]


@cache
def this_boot() -> str:
    """What makes a process number mean something: the boot, and the process namespace (containers have their own)."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{file.read().strip()}:{os.stat('/proc/self/ns/pid').st_ino}"[:64]
    except OSError:
        return ""


def clock_s() -> float:
    """Monotonic seconds that also count while the machine sleeps, where there is such a clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A run that this worker holds. `since` is `clock_s()` from just after the claim: any renewal that began later
    must have found the run."""

    run: Run
    epoch: int
    since: float


def claim(run_id: str, worker: str, *, adopt: bool = False) -> Claimed | None:
    """Take a queued run; None if it is not queued, held, ended, pinned to another host, or another's to adopt.

    Attached children are taken only with `adopt`, by the host that drives their parent.
    """
    host = this_host()
    # SQLite means one machine, whose name may change with its network.
    near = "1 = 1" if connection.vendor == "sqlite" else "(host IS NULL OR host = %s)"
    free = "1 = 1" if adopt else "(parent IS NULL OR detached)"
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE runs_run SET status = 'running', epoch = epoch + 1, attempts = attempts + 1, worker = %s, "
            f"host = %s, lease_until = {ahead_sql(connection)} "
            f"WHERE id = %s AND status = 'queued' AND lease_until IS NULL AND {near} AND {free} RETURNING epoch",
            [worker, host, settings.LEASE_SECONDS, run_id, *([host] if "%s" in near else [])],
        )
        row = cursor.fetchone()
    if row is None:
        return None
    since = clock_s()
    return Claimed(run=Run.objects.get(pk=run_id), epoch=row[0], since=since)


def renew(worker: str) -> dict[str, int]:
    """Renew all leases of a worker in one statement; what it still holds, as run -> epoch."""
    mine = f"worker = %s AND lease_until > {now_sql(connection)}"
    arguments: list[float | str] = [settings.LEASE_SECONDS, worker]
    if connection.vendor == "postgresql":
        # Locked in order of id, as the writer locks them: two that take the same rows in two orders wait in a ring.
        mine += f" AND id IN (SELECT id FROM runs_run WHERE {mine} ORDER BY id FOR NO KEY UPDATE)"
        arguments.append(worker)
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE runs_run SET lease_until = {ahead_sql(connection)} WHERE {mine} RETURNING id, epoch", arguments
        )
        return dict(cursor.fetchall())


def park(run_id: str, epoch: int) -> bool:
    """Let go of a run that waits for a person; False if it is not held at this epoch any more.

    The attempt is given back: however often a run waits, that is no failure of its workers.
    """
    held = Run.objects.filter(pk=run_id, epoch=epoch, status=Status.WAITING.value, lease_until__isnull=False)
    return bool(held.update(lease_until=None, attempts=Greatest(F("attempts") - 1, 0)))


def requeue(run_id: str, epoch: int, why: str, *, count_attempt: bool = True) -> bool:
    """Put a run that is held at `epoch`, or was, back into the queue; False if it is at another epoch or has ended.

    `count_attempt=False` gives the attempt back: a worker that shuts down is not the run's fault.
    """
    changes: dict[str, Any] = {"worker": None, "lease_until": None, "published_at": Now()}
    if not count_attempt:
        changes["attempts"] = Greatest(F("attempts") - 1, 0)
    body = kinds.RunRequeued(epoch=epoch + 1, why=why)
    return log.append_as_owner(run_id, expect=HELD, epoch=epoch, body=body, changes=changes)


class WorkerLease:
    """The worker's own view of its leases, by the clock of this machine; cheap, and read from any thread.

    Implements `ports.Lease` for every run of the worker. Renewal restarts the count from *before* the request, so the
    view never outlives the lease in the database.
    """

    def __init__(self) -> None:
        self.renewed_at = clock_s()

    def held(self) -> bool:
        return clock_s() - self.renewed_at < settings.LEASE_SECONDS


class RunLease:
    """Implements `ports.Lease` for one run: the worker's lease, until the run is fenced."""

    __slots__ = ("_worker", "lost")

    def __init__(self, worker: WorkerLease) -> None:
        self._worker = worker
        self.lost = False

    def held(self) -> bool:
        return not self.lost and self._worker.held()
