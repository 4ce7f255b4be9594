"""Database time, the one clock that all processes share; on SQLite it is the machine's."""

from datetime import UTC, datetime

from django.db import connection


def database_now() -> datetime:
    if connection.vendor != "postgresql":
        return datetime.now(UTC)
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
    return moment.astimezone(UTC)
