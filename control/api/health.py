"""Whether this process is alive, and whether the house is ready: database, bus, workers and desk, each with its age."""

import socket
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import redis
from django.conf import settings
from django.db import Error as DatabaseError
from django.db import connection
from django.db.models import Count, Max, Sum
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from control.api.answers import answer
from control.runs.bus_unix import socket_path
from control.runs.models import Worker

REACH_S = 1.0
Part = dict[str, Any]


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """200 as long as this process answers; it asks nothing of anyone else."""
    return answer({"ok": True})


@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """200 when every part answers, else 503. `age_s` is the time since a part's last sign of life."""
    parts = {"database": _part(_database)}
    parts["bus"] = _part(_bus)
    parts["workers"] = _part(lambda: _processes("worker"))
    parts["desk"] = _part(lambda: _processes("desk"))
    ready = all(part["ok"] for part in parts.values())
    return answer({"ready": ready} | parts, status=200 if ready else 503)


def _part(look: Callable[[], Part]) -> Part:
    try:
        return look()
    except (OSError, DatabaseError, redis.RedisError) as error:
        return {"ok": False, "age_s": None, "problem": type(error).__name__}


def _database() -> Part:
    began = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchone()
    return {"ok": True, "age_s": 0.0, "answered_in_s": round(time.monotonic() - began, 6)}


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
    made: Part = {"ok": age is not None and age <= settings.LEASE_SECONDS, "age_s": age, "count": found["count"]}
    if kind == "worker":
        made["runs"] = found["runs"] or 0
    return made
