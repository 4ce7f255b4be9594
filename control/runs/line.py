"""The line as people see it: how many runs wait to be taken, for how long, and what each of them waits for."""

import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Count, Min, Q, QuerySet
from django.db.models.functions import Coalesce

from agents.spec import Status
from control.fleet.day_limits import MAX_RUNNING
from control.fleet.models import Agent
from control.runs.clock import database_now
from control.runs.models import Run, Worker

# What everybody waits for is looked up for a whole page at once, and kept for as long as it would not surprise.
KEPT_S = 1.0

_OWN = Q(parent=None) | Q(detached=True)
_BUSY = [Status.RUNNING.value, Status.STOPPING.value]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueAge:
    """`since` when the run that has waited longest was queued, and how long that is in seconds; None and 0 if none
    waits. `held_back` of the `runs` may not start before another one ends: a limit of their agent or of the fleet is
    reached."""

    runs: int
    since: datetime | None
    oldest_s: float
    held_back: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the limits are, how far each is used, and how many slots the workers of each machine have left."""

    busy: Mapping[str, int]
    most: Mapping[str, int]
    fleet_most: int
    room: Mapping[str, int]

    def full(self, agent: str) -> str | None:
        """The limit that keeps this agent's runs waiting."""
        if self.fleet_most and sum(self.busy.values()) >= self.fleet_most:
            return "fleet limit"
        most = self.most.get(agent)
        if most is not None and self.busy.get(agent, 0) >= most:
            return "agent limit"
        return None


def queue_age() -> QueueAge:
    """Of all runs that wait for a worker; attached sub-agents wait for their parent instead."""
    since = Coalesce("last_activity_at", "created_at")
    waiting = list(_waiting().values_list("agent").annotate(n=Count("pk"), since=Min(since)).order_by())
    if not waiting:
        return QueueAge(runs=0, since=None, oldest_s=0.0, held_back=0)
    oldest = min(moment for _, _, moment in waiting)
    now = standing()
    return QueueAge(
        runs=sum(n for _, n, _ in waiting),
        since=oldest,
        oldest_s=max(0.0, (database_now() - oldest).total_seconds()),
        held_back=sum(n for agent, n, _ in waiting if now.full(agent)),
    )


def _waiting() -> "QuerySet[Run]":
    return Run.objects.filter(_OWN, status=Status.QUEUED.value, lease_until=None)


def standing() -> Standing:
    busy = Run.objects.filter(_OWN, status__in=_BUSY, lease_until__isnull=False)
    limited = Agent.objects.filter(current=True, limits__has_key=MAX_RUNNING).values_list("name", "limits")
    counted = list(busy.values_list("agent", "worker").annotate(n=Count("pk")).order_by())
    by_agent, by_worker = Counter[str](), Counter[str | None]()
    for agent, worker, runs in counted:
        by_agent[agent] += runs
        by_worker[worker] += runs
    room = Counter[str]()
    workers = Worker.objects.filter(kind="worker", gone_at=None, draining=False, drain_asked_at=None)
    for pk, host, capacity in workers.values_list("pk", "host", "capacity"):
        room[host] += max(0, capacity - by_worker[pk])
    return Standing(
        busy=by_agent,
        most={name: int(limits[MAX_RUNNING]) for name, limits in limited},
        fleet_most=settings.FLEET_MAX_RUNNING,
        room=room,
    )


class _Kept:
    """One look at the standing for all rows that are shown within a moment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards both, between the threads of a web process
        self._at = 0.0
        self._found: Standing | None = None

    def now(self) -> Standing:
        with self._lock:
            if self._found is None or time.monotonic() - self._at > KEPT_S:
                self._found, self._at = standing(), time.monotonic()
            return self._found

    def forget(self) -> None:
        with self._lock:
            self._found = None


_kept = _Kept()
forget = _kept.forget


def waits_for(run: Run) -> str | None:
    """What keeps a queued run from starting, in a few words; None for any other run."""
    if run.status != Status.QUEUED.value or run.lease_until is not None:
        return None
    if run.parent is not None and not run.detached:
        return "waiting for its parent's worker"
    now = _kept.now()
    if (limit := now.full(run.agent)) is not None:
        return f"waiting for a slot: {limit}"
    if run.host is not None and settings.DATABASE_URL and run.host not in now.room:
        return f"waiting for a worker on {run.host}, where its workspace is"
    if not now.room:
        return "waiting: no worker is there"
    if all(room <= 0 for room in now.room.values()):
        return "waiting for a slot: workers full"
    return "waiting for a worker"


def activity(run: Run) -> str | None:
    """What a run does now, as rows show it."""
    return waits_for(run) or run.activity
