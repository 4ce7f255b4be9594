"""The record's tables below the ORM: the statements of one append, once for SQLite and once for PostgreSQL.

This is the one place where raw SQL pays: `bulk_create` reaches a sixth of the driver's own rate.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Protocol

import orjson
import psycopg
from django.db import connection

from control.runs.fold import COLUMNS, CallRow, Columns, VerdictRow

EventRow = tuple[str, int, str, int | None, str | None, datetime, datetime, str]
Head = tuple[str, int, str, int]

# What changes with nearly every event; the other columns, some of them indexed, are written only when they changed.
_BUSY = (
    "last_seq",
    "last_activity_at",
    "activity",
    "turns",
    "steps",
    "errors",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "cost_unknown",
)
_CALL = (
    "id",
    "run_id",
    "turn",
    "operation",
    "name",
    "label",
    "status",
    "started_seq",
    "completed_seq",
    "attempts",
    "started_at",
    "completed_at",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "cost_source",
)
_VERDICT = (
    "run_id",
    "seq",
    "call",
    "detector",
    "rung",
    "rule",
    "mode",
    "fingerprint",
    "step",
    "count",
    "wasted_tokens",
    "wasted_usd",
    "shadow",
)
_EVENT = ("run_id", "seq", "kind", "turn", "call", "at", "ts", "body")


def _insert(table: str, names: Sequence[str], mark: str) -> str:
    columns = ", ".join(f'"{name}"' for name in names)
    return f"INSERT INTO {table} ({columns}) VALUES ({', '.join([mark] * len(names))})"


def _upsert_call(mark: str) -> str:
    changes = ", ".join(f"{name} = excluded.{name}" for name in _CALL if name not in ("id", "run_id"))
    return f"{_insert('runs_call', _CALL, mark)} ON CONFLICT (id) DO UPDATE SET {changes}"


def _update(names: Sequence[str], mark: str, tail: str = "") -> str:
    return f"UPDATE runs_run SET {', '.join(f'{name} = {mark}' for name in names)}{tail} WHERE id = {mark}"


# A final run is held by nobody.
_FREED = ", lease_until = NULL"


def _call_values(run: str, call: CallRow) -> tuple[Any, ...]:
    return (
        call.id,
        run,
        call.turn,
        call.operation,
        call.name,
        call.label,
        call.status,
        call.started_seq,
        call.completed_seq,
        call.attempts,
        call.started_at,
        call.completed_at,
        call.input_tokens,
        call.output_tokens,
        call.cost_usd,
        call.cost_source,
    )


def _verdict_values(run: str, verdict: VerdictRow) -> tuple[Any, ...]:
    return (run, *(getattr(verdict, name) for name in _VERDICT[1:]))


def _run_values(run: str, row: Columns, names: Iterable[str]) -> list[Any]:
    values: list[Any] = [getattr(row, name) for name in names]
    if row.stopped is not None and len(values) == len(COLUMNS):
        values[-1] = orjson.dumps(row.stopped).decode()
    values.append(run)
    return values


class Tables(Protocol):
    """The statements of one append; all of them run inside the caller's transaction."""

    def heads(self, runs: Sequence[str]) -> tuple[Mapping[str, Head], datetime]:
        """Lock these runs until the transaction ends; `(id, epoch, status, last_seq)` of each, and the time."""
        ...

    def events(self, rows: Sequence[EventRow]) -> None: ...
    def run(self, run: str, row: Columns, *, whole: bool, final: bool) -> None: ...
    def calls(self, rows: Sequence[tuple[str, CallRow]]) -> None: ...
    def verdicts(self, rows: Sequence[tuple[str, VerdictRow]]) -> None: ...
    def late(self, rows: Sequence[tuple[str, str]]) -> None:
        """`(status, call)` of calls that ended after their run."""
        ...

    def bodies(self, run: str, after: int, limit: int) -> list[bytes]: ...


# --- SQLite ----------------------------------------------------------------------------------------------------------


def _lite(value: Any) -> Any:
    """A value in the form in which Django stores and compares it on SQLite."""
    if isinstance(value, datetime):
        return str(value.astimezone(UTC).replace(tzinfo=None))
    return str(value) if isinstance(value, Decimal) else value


def _lite_all(values: Iterable[Any]) -> list[Any]:
    return [_lite(value) if isinstance(value, datetime | Decimal) else value for value in values]


class SqliteTables:
    """Writers are serialised by BEGIN IMMEDIATE: reading a head is locking it. The clock is the machine's."""

    _EVENTS = _insert("runs_event", _EVENT, "?")
    _CALLS = _upsert_call("?")
    _VERDICTS = _insert("runs_verdict", _VERDICT, "?")
    _RUN_BUSY = _update(_BUSY, "?")
    _RUN_WHOLE = _update(COLUMNS, "?")
    _RUN_FINAL = _update(COLUMNS, "?", _FREED)

    def __init__(self) -> None:
        connection.ensure_connection()
        self._raw = connection.connection

    def heads(self, runs: Sequence[str]) -> tuple[Mapping[str, Head], datetime]:
        marks = ", ".join("?" * len(runs))
        sql = f"SELECT id, epoch, status, last_seq FROM runs_run WHERE id IN ({marks})"
        found = {row[0]: row for row in self._raw.execute(sql, runs)}
        return found, datetime.now(UTC)

    def events(self, rows: Sequence[EventRow]) -> None:
        at = {row[5] for row in rows} | {row[6] for row in rows}
        text = {moment: _lite(moment) for moment in at}
        self._raw.executemany(
            self._EVENTS, [(r[0], r[1], r[2], r[3], r[4], text[r[5]], text[r[6]], r[7]) for r in rows]
        )

    def run(self, run: str, row: Columns, *, whole: bool, final: bool) -> None:
        sql = self._RUN_FINAL if final else self._RUN_WHOLE if whole else self._RUN_BUSY
        self._raw.execute(sql, _lite_all(_run_values(run, row, COLUMNS if whole or final else _BUSY)))

    def calls(self, rows: Sequence[tuple[str, CallRow]]) -> None:
        self._raw.executemany(self._CALLS, [_lite_all(_call_values(run, call)) for run, call in rows])

    def verdicts(self, rows: Sequence[tuple[str, VerdictRow]]) -> None:
        self._raw.executemany(self._VERDICTS, [_lite_all(_verdict_values(run, verdict)) for run, verdict in rows])

    def late(self, rows: Sequence[tuple[str, str]]) -> None:
        self._raw.executemany("UPDATE runs_call SET late_status = ? WHERE id = ?", rows)

    def bodies(self, run: str, after: int, limit: int) -> list[bytes]:
        sql = "SELECT CAST(body AS BLOB) FROM runs_event WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?"
        return [row[0] for row in self._raw.execute(sql, (run, after, limit))]


# --- PostgreSQL ------------------------------------------------------------------------------------------------------

# From here on COPY is cheaper than one prepared statement per row, on both sides of the wire.
_COPY_FROM = 6


class PostgresTables:
    """Rows are locked in order of id, so that two transactions over the same runs never wait in a ring."""

    _EVENTS = _insert("runs_event", _EVENT, "%s")
    _COPY = f"COPY runs_event ({', '.join(_EVENT)}) FROM STDIN"
    _CALLS = _upsert_call("%s")
    _VERDICTS = _insert("runs_verdict", _VERDICT, "%s")
    _RUN_BUSY = _update(_BUSY, "%s")
    _RUN_WHOLE = _update(COLUMNS, "%s")
    _RUN_FINAL = _update(COLUMNS, "%s", _FREED)
    _HEADS = (
        "SELECT id, epoch, status, last_seq, clock_timestamp() FROM runs_run WHERE id = ANY(%s) "
        "ORDER BY id FOR NO KEY UPDATE"
    )
    _HEAD = "SELECT id, epoch, status, last_seq, clock_timestamp() FROM runs_run WHERE id = %s FOR NO KEY UPDATE"

    def __init__(self) -> None:
        connection.ensure_connection()
        raw = connection.connection
        # Django leaves preparing off; the few statements here are worth it.
        raw.prepare_threshold = 2
        self._cursor = psycopg.Cursor(raw)

    def heads(self, runs: Sequence[str]) -> tuple[Mapping[str, Head], datetime]:
        if len(runs) == 1:
            rows = self._cursor.execute(self._HEAD, (runs[0],)).fetchall()
        else:
            rows = self._cursor.execute(self._HEADS, (list(runs),)).fetchall()
        now = max((row[4] for row in rows), default=datetime.now(UTC))
        return {row[0]: row[:4] for row in rows}, now.astimezone(UTC)

    def events(self, rows: Sequence[EventRow]) -> None:
        if len(rows) < _COPY_FROM:
            self._cursor.executemany(self._EVENTS, rows)
            return
        with self._cursor.copy(self._COPY) as copy:
            for row in rows:
                copy.write_row(row)

    def run(self, run: str, row: Columns, *, whole: bool, final: bool) -> None:
        sql = self._RUN_FINAL if final else self._RUN_WHOLE if whole else self._RUN_BUSY
        self._cursor.execute(sql, _run_values(run, row, COLUMNS if whole or final else _BUSY))

    def calls(self, rows: Sequence[tuple[str, CallRow]]) -> None:
        self._cursor.executemany(self._CALLS, [_call_values(run, call) for run, call in rows])

    def verdicts(self, rows: Sequence[tuple[str, VerdictRow]]) -> None:
        self._cursor.executemany(self._VERDICTS, [_verdict_values(run, verdict) for run, verdict in rows])

    def late(self, rows: Sequence[tuple[str, str]]) -> None:
        self._cursor.executemany("UPDATE runs_call SET late_status = %s WHERE id = %s", rows)

    def bodies(self, run: str, after: int, limit: int) -> list[bytes]:
        sql = "SELECT body FROM runs_event WHERE run_id = %s AND seq > %s ORDER BY seq LIMIT %s"
        return [row[0].encode() for row in self._cursor.execute(sql, (run, after, limit))]


def tables() -> Tables:
    """The statements for this thread's connection. Cheap: make one per transaction, never keep it."""
    return PostgresTables() if connection.vendor == "postgresql" else SqliteTables()
