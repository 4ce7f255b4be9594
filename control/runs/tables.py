"""The record's tables below the ORM: the statements of one append, once for SQLite and once for PostgreSQL.

This is the one place where raw SQL pays: `bulk_create` reaches a sixth of the driver's own rate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Any, Protocol

import orjson
import psycopg
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from agents.events import stamp
from control.runs.fold import COLUMNS, CallRow, Columns, VerdictRow
from control.runs.statements import BUSY, CALL, CALL_GOES_ON, EVENT, VERDICT, insert_events, statements

# run, seq, kind, turn, call, at, ts, body; the two times in the form of `Tables.moment`.
EventRow = tuple[str, int, str, int | None, str | None, Any, Any, str]
Head = tuple[str, int, str, int]

_call_columns = attrgetter(*CALL[2:])
_call_changes = attrgetter(*CALL_GOES_ON)
_busy_columns = attrgetter(*BUSY)
_all_columns = attrgetter(*COLUMNS)
_verdict_columns = attrgetter(*VERDICT[1:])


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

    def begin(self, runs: Sequence[str]) -> tuple[Mapping[str, Head], datetime]:
        """`heads` in a transaction of its own, which `write` with `commit` or `roll_back` ends."""
        ...

    def roll_back(self) -> None: ...

    def moment(self, at: datetime, stamped: str) -> Any:
        """A time, given also as text, in the form in which the event rows take it."""
        ...

    def write(self, writes: Writes, *, commit: bool = False) -> None: ...
    def bodies(self, run: str, after: int, limit: int) -> list[bytes]: ...


def _stopped(row: Columns) -> str | None:
    return None if row.stopped is None else orjson.dumps(row.stopped).decode()


def _run_values(run: str, row: Columns, whole: bool) -> list[Any]:
    if not whole:
        return [*_busy_columns(row), run]
    values = [*_all_columns(row), run]
    values[-2] = _stopped(row)
    return values


# --- SQLite ----------------------------------------------------------------------------------------------------------


def _lite_stamp(text: str) -> str:
    """A stamp of the log in the form in which Django stores and compares times on SQLite."""
    return text[: 19 if text.endswith(".000000Z") else 26].replace("T", " ")


# The time of a batch stands in several rows, and that of a call in its event and in its row.
@lru_cache(maxsize=256)
def _lite_time(moment: datetime | None) -> str | None:
    return None if moment is None else _lite_stamp(stamp(moment))


def _lite_money(amount: Decimal | None) -> str | None:
    return None if amount is None else str(amount)


def _lite(values: Sequence[Any]) -> list[Any]:
    """For rows that are written seldom; the others are converted by name, in a quarter of the time."""
    return [_lite_time(v) if isinstance(v, datetime) else str(v) if isinstance(v, Decimal) else v for v in values]


def _lite_busy(run: str, row: Columns) -> tuple[Any, ...]:
    """In the order of BUSY."""
    return (
        row.last_seq, _lite_time(row.last_activity_at), row.activity, row.turns, row.steps, row.errors,
        row.input_tokens, row.output_tokens, _lite_money(row.cost_usd), row.cost_unknown, run,
    )  # fmt: skip


def _lite_changes(call: CallRow) -> tuple[Any, ...]:
    """In the order of CALL_GOES_ON, which ends CALL."""
    return (
        call.status, call.started_seq, call.completed_seq, call.attempts, _lite_time(call.started_at),
        _lite_time(call.completed_at), call.input_tokens, call.output_tokens, _lite_money(call.cost_usd),
        call.cost_source,
    )  # fmt: skip


# A statement for each number of rows up to this: what it costs to begin and end one is paid once.
_ROWS_AT_ONCE = 10
_EVENTS = {rows: insert_events("?", rows) for rows in range(1, _ROWS_AT_ONCE + 1)}


@lru_cache(maxsize=256)
def _lite_heads(runs: int) -> str:
    return f"SELECT id, epoch, status, last_seq FROM runs_run WHERE id IN ({', '.join('?' * runs)})"


class SqliteTables:
    """Writers are serialised by BEGIN IMMEDIATE: reading a head is locking it. The clock is the machine's."""

    _SQL = statements("?")

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        # One for all statements: the driver would make one for each.
        self._cursor = raw.cursor()

    def heads(self, runs: Sequence[str]) -> tuple[Mapping[str, Head], datetime]:
        found = {row[0]: row for row in self._cursor.execute(_lite_heads(len(runs)), runs)}
        return found, datetime.now(UTC)

    def begin(self, runs: Sequence[str]) -> tuple[Mapping[str, Head], datetime]:
        self._cursor.execute("BEGIN IMMEDIATE")
        return self.heads(runs)

    def roll_back(self) -> None:
        if self._raw.in_transaction:
            self._raw.execute("ROLLBACK")

    def moment(self, at: datetime, stamped: str) -> str:
        return _lite_stamp(stamped)

    def write(self, writes: Writes, *, commit: bool = False) -> None:
        raw, sql = self._cursor, self._SQL
        for first in range(0, len(writes.events), _ROWS_AT_ONCE):
            rows = writes.events[first : first + _ROWS_AT_ONCE]
            raw.execute(_EVENTS[len(rows)], tuple(chain.from_iterable(rows)))
        for run, row, whole, ended in writes.runs:
            if whole or ended:
                raw.execute(sql["ended" if ended else "whole"], _lite(_run_values(run, row, True)))
            else:
                raw.execute(sql["busy"], _lite_busy(run, row))
        fresh, known = [], []
        for run, call in writes.calls:
            changes = _lite_changes(call)
            if call.stored:
                known.append((*changes, run, call.id))
            else:
                fresh.append((call.id, run, call.turn, call.operation, call.name, call.label, *changes))
        if fresh:
            raw.executemany(sql["call"], fresh)
        if known:
            raw.executemany(sql["call goes on"], known)
        if writes.verdicts:
            raw.executemany(sql["verdict"], [_lite((run, *_verdict_columns(row))) for run, row in writes.verdicts])
        if writes.late:
            raw.executemany(sql["late"], writes.late)
        if commit:
            raw.execute("COMMIT")

    def bodies(self, run: str, after: int, limit: int) -> list[bytes]:
        sql = "SELECT CAST(body AS BLOB) FROM runs_event WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?"
        return [row[0] for row in self._raw.execute(sql, (run, after, limit))]


# --- PostgreSQL ------------------------------------------------------------------------------------------------------

# From here on COPY is cheaper than one prepared statement per row, on both sides of the wire.
_COPY_FROM = 6


class PostgresTables:
    """Rows are locked in order of id, so that two transactions over the same runs never wait in a ring."""

    _SQL = statements("%s")
    _COPY = f"COPY runs_event ({', '.join(EVENT)}) FROM STDIN"
    _HEAD = "SELECT id, epoch, status, last_seq, clock_timestamp() FROM runs_run WHERE"
    _ONE = f"{_HEAD} id = %s FOR NO KEY UPDATE"
    _MANY = f"{_HEAD} id = ANY(%s) ORDER BY id FOR NO KEY UPDATE"

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        # Django leaves preparing off; the few statements here are worth it.
        self._raw.prepare_threshold = 2
        self._cursor = psycopg.Cursor(self._raw)

    def heads(self, runs: Sequence[str]) -> tuple[Mapping[str, Head], datetime]:
        self._lock(runs)
        return self._locked()

    def begin(self, runs: Sequence[str]) -> tuple[Mapping[str, Head], datetime]:
        # One round trip for both.
        with self._raw.pipeline():
            self._cursor.execute("BEGIN")
            self._lock(runs)
        return self._locked()

    def _lock(self, runs: Sequence[str]) -> None:
        one = len(runs) == 1
        self._cursor.execute(self._ONE if one else self._MANY, (runs[0] if one else list(runs),))

    def _locked(self) -> tuple[Mapping[str, Head], datetime]:
        rows = self._cursor.fetchall()
        now = max((row[4] for row in rows), default=datetime.now(UTC))
        return {row[0]: row[:4] for row in rows}, now.astimezone(UTC)

    def roll_back(self) -> None:
        if not self._raw.closed and self._raw.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            self._raw.execute("ROLLBACK")

    def moment(self, at: datetime, stamped: str) -> datetime:
        return at

    def write(self, writes: Writes, *, commit: bool = False) -> None:
        copied = len(writes.events) >= _COPY_FROM
        if copied:
            with self._cursor.copy(self._COPY) as copy:
                for row in writes.events:
                    copy.write_row(row)
        # One round trip for all the rest.
        with self._raw.pipeline():
            self._write_rest(writes, () if copied else writes.events)
            if commit:
                self._cursor.execute("COMMIT")

    def _write_rest(self, writes: Writes, events: Sequence[EventRow]) -> None:
        cursor, sql = self._cursor, self._SQL
        if events:
            cursor.executemany(sql["event"], events)
        for run, row, whole, ended in writes.runs:
            kind = "ended" if ended else "whole" if whole else "busy"
            cursor.execute(sql[kind], _run_values(run, row, kind != "busy"))
        fresh = [(call.id, run, *_call_columns(call)) for run, call in writes.calls if not call.stored]
        if fresh:
            cursor.executemany(sql["call"], fresh)
        known = [(*_call_changes(call), run, call.id) for run, call in writes.calls if call.stored]
        if known:
            cursor.executemany(sql["call goes on"], known)
        if writes.verdicts:
            cursor.executemany(sql["verdict"], [(run, *_verdict_columns(row)) for run, row in writes.verdicts])
        if writes.late:
            cursor.executemany(sql["late"], writes.late)

    def bodies(self, run: str, after: int, limit: int) -> list[bytes]:
        sql = "SELECT body FROM runs_event WHERE run_id = %s AND seq > %s ORDER BY seq LIMIT %s"
        return [row[0].encode() for row in self._cursor.execute(sql, (run, after, limit))]


def tables(here: BaseDatabaseWrapper | None = None) -> Tables:
    """The statements for this thread's connection, `here`. Cheap: make one per transaction, never keep it."""
    here = here or connections["default"]
    if here.connection is None:
        here.ensure_connection()
    return PostgresTables(here.connection) if here.vendor == "postgresql" else SqliteTables(here.connection)
