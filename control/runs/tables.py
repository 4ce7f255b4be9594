"""The record's tables below the ORM: the statements of one append, once for SQLite and once for PostgreSQL.

This is the one place where raw SQL pays: `bulk_create` reaches a sixth of the driver's own rate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from operator import attrgetter
from typing import Any, Protocol

import orjson
import psycopg
from django.db import connections

from agents.events import stamp
from control.runs.fold import COLUMNS, CallRow, Columns, VerdictRow

# run, seq, kind, turn, call, at, ts, body; the two times in the form of `Tables.moment`.
EventRow = tuple[str, int, str, int | None, str | None, Any, Any, str]
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
    return f"{_insert('runs_call', _CALL, mark)} ON CONFLICT (run_id, id) DO UPDATE SET {changes}"


def _update(names: Sequence[str], mark: str, tail: str = "") -> str:
    return f"UPDATE runs_run SET {', '.join(f'{name} = {mark}' for name in names)}{tail} WHERE id = {mark}"


# A final run is held by nobody.
_FREED = ", lease_until = NULL"


_call_columns = attrgetter(*_CALL[2:])
_busy_columns = attrgetter(*_BUSY)
_all_columns = attrgetter(*COLUMNS)
_verdict_columns = attrgetter(*_VERDICT[1:])


@dataclass(slots=True, kw_only=True)
class Writes:
    """What one append writes beside the receipts. `runs` holds id, columns, whether all of them, whether it ended."""

    events: list[EventRow] = field(default_factory=list)
    runs: list[tuple[str, Columns, bool, bool]] = field(default_factory=list)
    calls: list[tuple[str, CallRow]] = field(default_factory=list)
    verdicts: list[tuple[str, VerdictRow]] = field(default_factory=list)
    # Status, run and id of calls that ended after their run.
    late: list[tuple[str, str, str]] = field(default_factory=list)


class Tables(Protocol):
    """The statements of one append; all of them run inside the caller's transaction."""

    def heads(self, runs: Sequence[str]) -> tuple[Mapping[str, Head], datetime]:
        """Lock these runs until the transaction ends; `(id, epoch, status, last_seq)` of each, and the time."""
        ...

    def moment(self, moment: datetime) -> Any:
        """A time in the form in which the event rows take it."""
        ...

    def write(self, writes: Writes) -> None: ...
    def bodies(self, run: str, after: int, limit: int) -> list[bytes]: ...


def _stopped(row: Columns) -> str | None:
    return None if row.stopped is None else orjson.dumps(row.stopped).decode()


def _run_values(run: str, row: Columns, whole: bool) -> list[Any]:
    if not whole:
        return [*_busy_columns(row), run]
    values = [*_all_columns(row), run]
    values[-2] = _stopped(row)
    return values


def _statements(mark: str) -> dict[str, str]:
    return {
        "event": _insert("runs_event", _EVENT, mark),
        "call": _upsert_call(mark),
        "verdict": _insert("runs_verdict", _VERDICT, mark),
        "late": f"UPDATE runs_call SET late_status = {mark} WHERE run_id = {mark} AND id = {mark}",
        "busy": _update(_BUSY, mark),
        "whole": _update(COLUMNS, mark),
        "ended": _update(COLUMNS, mark, _FREED),
    }


# --- SQLite ----------------------------------------------------------------------------------------------------------


def _lite_time(moment: datetime | None) -> str | None:
    """A time in the form in which Django stores and compares it on SQLite."""
    if moment is None:
        return None
    text = stamp(moment)
    return f"{text[:10]} {text[11:19]}" if text[19:] == ".000000Z" else f"{text[:10]} {text[11:26]}"


def _lite(values: Sequence[Any]) -> list[Any]:
    return [
        v if v is None or v.__class__ in _PLAIN else _lite_time(v) if isinstance(v, datetime) else _lite_other(v)
        for v in values
    ]


def _lite_other(value: Any) -> Any:
    return str(value) if isinstance(value, Decimal) else value


_PLAIN = frozenset({str, int, bool})


class SqliteTables:
    """Writers are serialised by BEGIN IMMEDIATE: reading a head is locking it. The clock is the machine's."""

    _SQL = _statements("?")

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def heads(self, runs: Sequence[str]) -> tuple[Mapping[str, Head], datetime]:
        marks = ", ".join("?" * len(runs))
        sql = f"SELECT id, epoch, status, last_seq FROM runs_run WHERE id IN ({marks})"
        found = {row[0]: row for row in self._raw.execute(sql, runs)}
        return found, datetime.now(UTC)

    moment = staticmethod(_lite_time)

    def write(self, writes: Writes) -> None:
        raw, sql = self._raw, self._SQL
        raw.executemany(sql["event"], writes.events)
        for run, row, whole, ended in writes.runs:
            kind = "ended" if ended else "whole" if whole else "busy"
            raw.execute(sql[kind], _lite(_run_values(run, row, kind != "busy")))
        if writes.calls:
            raw.executemany(sql["call"], [_lite((call.id, run, *_call_columns(call))) for run, call in writes.calls])
        if writes.verdicts:
            raw.executemany(sql["verdict"], [_lite((run, *_verdict_columns(row))) for run, row in writes.verdicts])
        if writes.late:
            raw.executemany(sql["late"], writes.late)

    def bodies(self, run: str, after: int, limit: int) -> list[bytes]:
        sql = "SELECT CAST(body AS BLOB) FROM runs_event WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?"
        return [row[0] for row in self._raw.execute(sql, (run, after, limit))]


# --- PostgreSQL ------------------------------------------------------------------------------------------------------

# From here on COPY is cheaper than one prepared statement per row, on both sides of the wire.
_COPY_FROM = 6


class PostgresTables:
    """Rows are locked in order of id, so that two transactions over the same runs never wait in a ring."""

    _SQL = _statements("%s")
    _COPY = f"COPY runs_event ({', '.join(_EVENT)}) FROM STDIN"
    _HEAD = "SELECT id, epoch, status, last_seq, clock_timestamp() FROM runs_run WHERE"
    _ONE = f"{_HEAD} id = %s FOR NO KEY UPDATE"
    _MANY = f"{_HEAD} id = ANY(%s) ORDER BY id FOR NO KEY UPDATE"

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        # Django leaves preparing off; the few statements here are worth it.
        self._raw.prepare_threshold = 2
        self._cursor = psycopg.Cursor(self._raw)

    def heads(self, runs: Sequence[str]) -> tuple[Mapping[str, Head], datetime]:
        one = len(runs) == 1
        rows = self._cursor.execute(self._ONE if one else self._MANY, (runs[0] if one else list(runs),)).fetchall()
        now = max((row[4] for row in rows), default=datetime.now(UTC))
        return {row[0]: row[:4] for row in rows}, now.astimezone(UTC)

    def moment(self, moment: datetime) -> datetime:
        return moment

    def write(self, writes: Writes) -> None:
        copied = len(writes.events) >= _COPY_FROM
        if copied:
            with self._cursor.copy(self._COPY) as copy:
                for row in writes.events:
                    copy.write_row(row)
        # One round trip for all the rest.
        with self._raw.pipeline():
            self._write_rest(writes, () if copied else writes.events)

    def _write_rest(self, writes: Writes, events: Sequence[EventRow]) -> None:
        cursor, sql = self._cursor, self._SQL
        if events:
            cursor.executemany(sql["event"], events)
        for run, row, whole, ended in writes.runs:
            kind = "ended" if ended else "whole" if whole else "busy"
            cursor.execute(sql[kind], _run_values(run, row, kind != "busy"))
        if writes.calls:
            cursor.executemany(sql["call"], [(call.id, run, *_call_columns(call)) for run, call in writes.calls])
        if writes.verdicts:
            cursor.executemany(sql["verdict"], [(run, *_verdict_columns(row)) for run, row in writes.verdicts])
        if writes.late:
            cursor.executemany(sql["late"], writes.late)

    def bodies(self, run: str, after: int, limit: int) -> list[bytes]:
        sql = "SELECT body FROM runs_event WHERE run_id = %s AND seq > %s ORDER BY seq LIMIT %s"
        return [row[0].encode() for row in self._cursor.execute(sql, (run, after, limit))]


def tables() -> Tables:
    """The statements for this thread's connection. Cheap: make one per transaction, never keep it."""
    here = connections["default"]
    here.ensure_connection()
    return PostgresTables(here.connection) if here.vendor == "postgresql" else SqliteTables(here.connection)
