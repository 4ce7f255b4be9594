"""Dispatch: which queued run a worker takes next, and what those in the line wait for.

A message only says that there is work. The highest priority goes first; within it the agent with the fewest runs at
work, then the one that this worker served longest ago, then the run that has waited longest: so one agent's hundreds
do not keep out another's one. Limits of an agent (`max_running`) and of the fleet (`FLEET_MAX_RUNNING`) are counted in
the transaction that claims, behind one lock, so that no two workers fill the same place.

What counts is at work: running or stopping, held by a worker. A run that waits for a person, or for quota, gives its
place away and takes it again without asking when it goes on, so for a moment there may be more than the limit says.
Attached sub-agents share the place of the run that waits for them.
"""

import time
from dataclasses import dataclass
from datetime import datetime
from itertools import count

from django.conf import settings
from django.db import OperationalError, connection, transaction

from control.runs import leases
from control.runs.leases import Claimed, this_host

# Two workers may reach for the same run; whoever comes second looks again.
TRIES = 20
# Heads of the line that are looked at for one claim: one per agent.
MOST_AGENTS = 500
# A worker that froze while it held the lock holds up the others no longer than this; the sweeper tells them again.
LOCK_WAIT_MS = 500
# The advisory locks of this module, apart from anybody else's: "line" in ASCII.
_LOCK = 0x6C696E65
_FLEET = ""

_FREE = "r.status = 'queued' AND r.lease_until IS NULL AND (r.parent IS NULL OR r.detached)"
_BUSY = "status IN ('running', 'stopping') AND lease_until IS NOT NULL AND (parent IS NULL OR detached)"

# When this process last served an agent, in numbers that grow; forgotten with it, which costs one turn at most.
_served: dict[str, int] = {}
_turns = count(1)
# When the latest look at the line began that found nobody in it, by this process's `time.monotonic`.
_empty_at = 0.0


def forget_served() -> None:
    _served.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The first in one agent's line. `busy` of its runs are at work; None: the agent has no limit."""

    run: str
    agent: str
    priority: int
    since: datetime
    busy: int
    most: int | None


def was_empty(since: float) -> bool:
    """Whether this process has looked at the line since then, from the beginning of a claim, and found nobody."""
    return _empty_at > since


def claim_next(worker: str) -> Claimed | None:
    """Take the run that is next for this worker; None if there is none, or none that may start now."""
    global _empty_at
    passed: set[str] = set()
    for _ in range(TRIES):
        looked_at = time.monotonic()
        heads = _heads()
        if not heads:
            _empty_at = max(_empty_at, looked_at)
        line = [head for head in heads if head.run not in passed]
        if not line:
            return None
        head = min(line, key=_order)
        claimed = _claim(head, worker)
        if claimed is not None:
            _served[head.agent] = next(_turns)
            return claimed
        passed.add(head.run)
    return None


def _order(head: Head) -> tuple[int, int, int, datetime, str]:
    return (-head.priority, head.busy, _served.get(head.agent, 0), head.since, head.run)


def _heads() -> list[Head]:
    """One for each agent that may have another run started on this machine."""
    # SQLite means one machine, whose name may change with its network.
    near = "1 = 1" if connection.vendor == "sqlite" else "(r.host IS NULL OR r.host = %s)"
    fleet = settings.FLEET_MAX_RUNNING
    most = "json_extract(a.limits, '$.max_running')" if connection.vendor == "sqlite" else "a.limits->>'max_running'"
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH busy AS (SELECT agent, count(*) AS runs FROM runs_run WHERE {_BUSY} GROUP BY agent), "
            f"line AS (SELECT a.name, CAST({most} AS integer) AS most, (SELECT r.id FROM runs_run r "
            f"WHERE r.agent = a.name AND {_FREE} AND {near} ORDER BY r.priority DESC, r.created_at LIMIT 1) AS head "
            "FROM fleet_agent a WHERE a.current) "
            "SELECT r.id, line.name, r.priority, r.created_at, COALESCE(busy.runs, 0), line.most "
            "FROM line JOIN runs_run r ON r.id = line.head LEFT JOIN busy ON busy.agent = line.name "
            "WHERE (line.most IS NULL OR COALESCE(busy.runs, 0) < line.most) "
            "AND (%s < 0 OR (SELECT COALESCE(sum(runs), 0) FROM busy) < %s) "
            f"ORDER BY r.priority DESC, COALESCE(busy.runs, 0), r.created_at LIMIT {MOST_AGENTS}",
            [*([this_host()] if "%s" in near else []), fleet or -1, fleet or -1],
        )
        return [
            Head(run=run, agent=agent, priority=priority, since=since, busy=busy, most=most)
            for run, agent, priority, since, busy, most in cursor.fetchall()
        ]


def _claim(head: Head, worker: str) -> Claimed | None:
    if head.most is None and not settings.FLEET_MAX_RUNNING:
        return leases.claim(head.run, worker)
    try:
        with transaction.atomic():
            _lock(_FLEET if settings.FLEET_MAX_RUNNING else head.agent)
            # A new statement behind the lock: it sees what whoever had it has claimed.
            if head.most is not None and _busy(head.agent) >= head.most:
                return None
            if settings.FLEET_MAX_RUNNING and _busy() >= settings.FLEET_MAX_RUNNING:
                return None
            return leases.claim(head.run, worker)
    except OperationalError as error:
        if "lock timeout" in str(error):
            return None
        raise


def _lock(name: str) -> None:
    """Until the end of the transaction; on SQLite the transaction itself is the lock."""
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = {LOCK_WAIT_MS}")
        cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_LOCK, name])
        cursor.execute("SET LOCAL lock_timeout = 0")


def _busy(agent: str | None = None) -> int:
    with connection.cursor() as cursor:
        if agent is None:
            cursor.execute(f"SELECT count(*) FROM runs_run WHERE {_BUSY}")
        else:
            cursor.execute(f"SELECT count(*) FROM runs_run WHERE {_BUSY} AND agent = %s", [agent])
        return int(cursor.fetchone()[0])
