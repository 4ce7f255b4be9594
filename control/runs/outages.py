"""What a database raises when it is away: through Django, and raw from the driver where we go below the ORM."""

from typing import Any

from django.db import InterfaceError, OperationalError, connection

_driver: Any = connection.Database  # type: ignore[attr-defined]

AWAY: tuple[type[Exception], ...] = (
    OperationalError,
    InterfaceError,
    _driver.OperationalError,
    _driver.InterfaceError,
)

# PostgreSQL's classes 53 (no disk, no memory, too many connections) are outages; this one does not pass by itself.
_DISK_FULL = "53100"


def is_full(error: BaseException) -> bool:
    """Whether the database has no room left on its disk."""
    cause = error.__cause__ or error
    return getattr(cause, "sqlstate", None) == _DISK_FULL or "disk is full" in str(error)
