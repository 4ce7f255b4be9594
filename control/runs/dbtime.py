"""Database time in raw SQL: leases compare with the one clock that all workers share."""

from django.db.backends.base.base import BaseDatabaseWrapper

# SQLite keeps times as text in Django's own form, `YYYY-MM-DD HH:MM:SS.ffffff` in UTC; three digits compare well.
_SQLITE = "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')"
_SQLITE_AHEAD = "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', (%s) || ' seconds')"
_POSTGRES = "clock_timestamp()"
_POSTGRES_AHEAD = "(clock_timestamp() + make_interval(secs => %s))"


def now_sql(connection: BaseDatabaseWrapper) -> str:
    """An expression without parameters. The percent signs are doubled: use it in statements that have parameters."""
    return _POSTGRES if connection.vendor == "postgresql" else _SQLITE


def ahead_sql(connection: BaseDatabaseWrapper) -> str:
    """An expression with one parameter: seconds from now, negative for the past."""
    return _POSTGRES_AHEAD if connection.vendor == "postgresql" else _SQLITE_AHEAD
