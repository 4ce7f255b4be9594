"""Whether this process is alive, and whether the house is ready: database, bus, workers and desk, each with its age."""

import socket
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import redis
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Count, Max, Sum
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from control.api.answers import answer
from control.runs import line
from control.runs.bus_unix import socket_path
from control.runs.chores import HOLD_S
from control.runs.models import Chore, Worker

REACH_S = 1.0
# The chore by which one sees that a desk does its work, and does not only say that it is there.
PULSE = "sweep-elsewhere"
Part = dict[str, Any]

# Once the database is at the newest form it stays so while this process runs.
_migrated = False


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """200 as long as this process answers; it asks nothing of anyone else."""
    return answer({"ok": True})


@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """200 when every part answers, else 503 and `reasons`. `age_s` is the time since a part's last sign of life,
    `limit_s` how old that may be."""
    parts = {"database": _part("database", _database)}
    parts["bus"] = _part("bus", _bus)
    parts["workers"] = _part("workers", lambda: _processes("worker"))
    parts["desk"] = _part("desk", _desk)
    parts["queue"] = _part("queue", _queue)
    reasons = [part["reason"] for part in parts.values() if not part["ok"]]
    return answer({"ready": not reasons, "reasons": reasons} | parts, status=503 if reasons else 200)


def _part(name: str, look: Callable[[], Part]) -> Part:
    try:
        return look()
    except (OSError, DatabaseError, redis.RedisError) as error:
        # The name of the error alone: its text may hold an address with a password.
        problem = type(error).__name__
        return {"ok": False, "age_s": None, "problem": problem, "reason": f"{name}: does not answer ({problem})"}


def _queue() -> Part:
    """How long the oldest queued run has waited. A long line is no reason to send nobody here: it is told, no more."""
    queue = line.queue_age()
    return {"ok": True, "age_s": queue.oldest_s, "runs": queue.runs, "held_back": queue.held_back}


def _database() -> Part:
    began = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchone()
    made: Part = {"ok": True, "age_s": 0.0, "answered_in_s": round(time.monotonic() - began, 6)}
    if missing := _unapplied():
        told = f"database: {missing} migrations are not applied; run 'manage.py migrate'"
        made |= {"ok": False, "unapplied_migrations": missing, "reason": told}
    return made


def _unapplied() -> int:
    global _migrated
    if _migrated:
        return 0
    executor = MigrationExecutor(connection)
    missing = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    _migrated = not missing
    return missing


def _bus() -> Part:
    """Reached now, with a connection of its own, so the age is that of this very look."""
    began = time.monotonic()
    if settings.REDIS_URL:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=REACH_S, socket_connect_timeout=REACH_S) as client:
            client.ping()
    else:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(REACH_S)
            probe.connect(str(socket_path(settings.BUS_SOCKET)))
    return {"ok": True, "age_s": 0.0, "answered_in_s": round(time.monotonic() - began, 6)}


def _processes(kind: str) -> Part:
    """Ready while one of this kind was seen within the lease time."""
    alive = Worker.objects.filter(kind=kind, gone_at__isnull=True)
    found = alive.aggregate(count=Count("pk"), seen=Max("seen_at"), runs=Sum("runs"))
    seen: datetime | None = found["seen"]
    age = None if seen is None else max(0.0, (timezone.now() - seen).total_seconds())
    limit = settings.LEASE_SECONDS
    made: Part = {
        "ok": age is not None and age <= limit,
        "age_s": age,
        "limit_s": limit,
        "count": found["count"],
    }
    if kind == "worker":
        made["runs"] = found["runs"] or 0
    if age is None:
        made["reason"] = f"{kind}: none is there; start one with 'manage.py {kind}'"
    elif age > limit:
        made["reason"] = f"{kind}: last seen {age:.0f} s ago, the limit is {limit:g} s"
    return made


def _desk() -> Part:
    """A desk that says it is there, and whose sweep goes on."""
    made = _processes("desk")
    until = Chore.objects.filter(name=PULSE).values_list("until", flat=True).first()
    if until is not None:
        # A claim is renewed before half of it is over; the row tells when it ends.
        age = max(0.0, (timezone.now() - (until - timedelta(seconds=HOLD_S))).total_seconds())
        made["chores_age_s"] = age
        if made["ok"] and age > settings.LEASE_SECONDS + HOLD_S:
            told = f"desk: its chores last moved {age:.0f} s ago, the limit is {settings.LEASE_SECONDS + HOLD_S:g} s"
            made |= {"ok": False, "reason": told}
    return made
