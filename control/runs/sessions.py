"""How our sessions in PostgreSQL are bounded, so that a process that freezes in the middle of one stops nobody else.

A frozen process keeps its connection, and with it the locks of its transaction: rows that nobody else could take over,
and a sweeper that would wait for them for ever.
"""

import logging
import math
import time
from typing import Any
from weakref import WeakKeyDictionary

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

logger = logging.getLogger(__name__)

# No transaction of ours waits for anything but the database; git, while a workspace is made, is the slowest.
LEAST_IDLE_S = 5.0

_name = ""
# When a connection was made anew after it had been lost; None for those that are still the first of their thread.
_back_at: WeakKeyDictionary[BaseDatabaseWrapper, float | None] = WeakKeyDictionary()


def name_them(kind: str, process: str) -> None:
    """From now on connections of this process carry its name on the roster."""
    global _name
    _name = _name_of(kind, process)
    if connection.connection is not None:
        _bound(connection)


def _name_of(kind: str, process: str) -> str:
    return f"pilothouse {kind} {process}"


def on_connected(*, connection: BaseDatabaseWrapper, **_: Any) -> None:
    if connection.vendor != "postgresql":
        return
    _back_at[connection] = time.monotonic() if connection in _back_at else None
    _bound(connection)


def back_for_s() -> float:
    """For how long this thread has had its connection back after it was lost; for ever if it never was."""
    back_at = _back_at.get(connections[DEFAULT_DB_ALIAS])
    return math.inf if back_at is None else time.monotonic() - back_at


def forget_losses() -> None:
    """As if no connection had ever been lost."""
    _back_at.clear()


def _bound(connection: BaseDatabaseWrapper) -> None:
    """A transaction in which nothing happens for a lease is ended by the server: by then others may have its runs."""
    idle_ms = int(max(settings.LEASE_SECONDS, LEAST_IDLE_S) * 1000)
    named = [("idle_in_transaction_session_timeout", str(idle_ms)), *([("application_name", _name)] if _name else [])]
    with connection.cursor() as cursor:
        calls = ", ".join(["set_config(%s, %s, false)"] * len(named))
        cursor.execute(f"SELECT {calls}", [word for pair in named for word in pair])


def end(kind: str, process: str) -> int:
    """Cut what another process is in the middle of: it may act no more and perhaps never wakes. How many sessions.

    One that is awake after all finds its connection broken, tries again, and is told that its lease is gone.
    """
    if connection.vendor != "postgresql":
        return 0
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name = %s AND state <> 'idle'",
            [_name_of(kind, process)],
        )
        ended = int(cursor.fetchone()[0])
    if ended:
        logger.warning("%s %s is past its lease in the middle of %d transactions; they are ended", kind, process, ended)
    return ended
