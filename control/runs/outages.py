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
