"""The roster: which processes of ours are there, each with what identifies it on its machine."""

import os
from collections.abc import Collection
from functools import cache
from importlib import metadata

import psutil
from django.db.models import QuerySet
from django.db.models.functions import Now

from control.runs import sessions
from control.runs.clock import database_now
from control.runs.leases import this_boot, this_host
from control.runs.models import Worker


def process_started(pid: int) -> float | None:
    """When a process started, in a unit that never changes while it lives; None if there is no such process.

    With the boot it tells a process from a later one of the same number. On Linux clock ticks since boot: the wall
    time that psutil computes moves when the clock is set.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
            # The name in parentheses may itself hold blanks and parentheses.
            fields = file.read().rpartition(")")[2].split()
        return None if fields[0] in ("Z", "X") else float(fields[19])
    except FileNotFoundError:
        if os.path.exists("/proc/self/stat"):
            return None
    except (OSError, IndexError, ValueError):
        return None
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return None


@cache
def version() -> str:
    """Of Pilothouse, as it is installed here."""
    try:
        return metadata.version("pilothouse")[:60]
    except metadata.PackageNotFoundError:
        return ""


def load() -> float | None:
    """The machine's load of the last minute per core."""
    try:
        return round(os.getloadavg()[0] / (os.cpu_count() or 1), 2)
    except (OSError, AttributeError):
        return None


def join(kind: str, *, worker: str, capacity: int = 0) -> Worker:
    """Put this process on the roster; in the database its sessions carry its name from now on."""
    sessions.name_them(kind, worker)
    now = database_now()
    return Worker.objects.create(
        id=worker,
        kind=kind,
        host=this_host(),
        boot=this_boot(),
        pid=os.getpid(),
        pid_started=process_started(os.getpid()) or 0.0,
        started_at=now,
        seen_at=now,
        capacity=capacity,
        version=version(),
        load=load(),
    )


def seen(worker: str, *, runs: int = 0, draining: bool = False) -> None:
    """This process is there; on the roster again if it had been taken for gone."""
    Worker.objects.filter(pk=worker).update(seen_at=Now(), runs=runs, draining=draining, gone_at=None, load=load())


def ask_to_drain(workers: Collection[str] | None = None) -> list[Worker]:
    """Ask these workers, or all, to hand their runs over and end; who was asked. Each notices within a second."""
    wanted = Worker.objects.filter(kind="worker", gone_at=None)
    if workers is not None:
        wanted = wanted.filter(pk__in=workers)
    asked = list(wanted.order_by("started_at"))
    Worker.objects.filter(pk__in=[one.pk for one in asked], drain_asked_at=None).update(drain_asked_at=Now())
    return asked


def is_asked_to_drain(worker: str) -> bool:
    return Worker.objects.filter(pk=worker, drain_asked_at__isnull=False).exists()


def leave(worker: str) -> None:
    """Strike it off."""
    Worker.objects.filter(pk=worker).update(gone_at=Now(), seen_at=Now(), runs=0)


def here() -> "QuerySet[Worker]":
    """Those on the roster that run on this machine, in this process namespace: their process numbers mean something.

    A machine's name may change while it runs, so where the boot is known it decides.
    """
    there = Worker.objects.filter(gone_at=None, boot=this_boot())
    return there if this_boot() else there.filter(host=this_host())


def is_alive(worker: Worker) -> bool:
    """For a worker of this machine: whether its very process is still there, awake or not."""
    if worker.boot != this_boot():
        return False
    return worker.pid_started != 0.0 and process_started(worker.pid) == worker.pid_started
