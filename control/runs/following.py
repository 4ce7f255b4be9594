"""Readers that follow the logs of all runs, each with one cursor per run: nothing is missed, nothing is read twice.

Commits do not become visible in the order of ids, so no global number can be a cursor; `last_seq > seen` of each run
can. A reader moves its cursors in the transaction in which it writes what it made of the events.
"""

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from django.db import connection

from agents.events import Event, decode
from agents.spec import FINAL, Status
from control.runs.models import Event as Row

# A run that came and went between two looks is found by its id, which tells when it was made. A reader that was away
# for longer catches up with runs that still live or that it had seen before.
LOOK_BACK_S = 600.0
_LIVE = tuple(status.value for status in Status if status not in FINAL)
_ENDED = frozenset(status.value for status in FINAL)
# A fleet at work is many runs with a few new events each: so many of them are read by one statement.
_TOGETHER = 50
_FEW = 100

# Three ways to be a candidate, each by an index of its own: an OR over them would read the whole table.
_BEHIND = f"""
SELECT r.id, r.root, r.parent, r.parent_call, r.agent, r.status, r.stop_seconds, r.last_seq, COALESCE(c.seq, 0)
FROM (SELECT id FROM runs_run WHERE status IN ({", ".join(["%s"] * len(_LIVE))})
      UNION SELECT id FROM runs_run WHERE id >= %s
      UNION SELECT run_id FROM runs_cursor WHERE reader = %s AND NOT done) candidate
JOIN runs_run r ON r.id = candidate.id
LEFT JOIN runs_cursor c ON c.run_id = r.id AND c.reader = %s
WHERE r.last_seq > COALESCE(c.seq, 0) AND (c.done IS NULL OR NOT c.done)
ORDER BY r.id LIMIT %s
"""
_MOVE = "UPDATE runs_cursor SET seq = %s, done = %s WHERE reader = %s AND run_id = %s AND seq = %s"
_BEGIN = "INSERT INTO runs_cursor (reader, run_id, seq, done) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """A run with events that a reader has not seen: those after `seen`, up to `last_seq`, as its row stood then."""

    run: str
    root: str
    parent: str | None
    parent_call: str | None
    agent: str
    status: str
    stop_seconds: float | None
    last_seq: int
    seen: int

    @property
    def ended(self) -> bool:
        return self.status in _ENDED


def behind(reader: str, limit: int) -> list[Behind]:
    """Up to `limit` runs, oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(_BEHIND, [*_LIVE, _oldest_new(), reader, reader, limit])
        names = ("run", "root", "parent", "parent_call", "agent", "status", "stop_seconds", "last_seq", "seen")
        return [Behind(**dict(zip(names, row, strict=True))) for row in cursor.fetchall()]


def _oldest_new() -> str:
    """The least id that a run made within the look-back can have."""
    digits = f"{int((time.time() - LOOK_BACK_S) * 1000):012x}"
    return f"{digits[:8]}-{digits[8:]}-0000-0000-000000000000"


class Remembered(Protocol):
    """What a reader remembers of a run, up to `seq`."""

    seq: int


State = TypeVar("State", bound=Remembered)


def read(
    runs: Sequence[tuple[Behind, State]], kinds: Collection[str] = ()
) -> Iterator[tuple[Behind, State, Iterable[Event]]]:
    """Each run, in this order, with what is remembered of it and its events (of these kinds) from there on, up to where
    its row stood.

    Those of a run with much to read are decoded one by one: take them before the next run's.
    """
    for start in range(0, len(runs), _TOGETHER):
        some = [(one, state, state.seq) for one, state in runs[start : start + _TOGETHER]]
        found = _few([(one, after) for one, _, after in some if _is_little(one, after)], kinds)
        for one, state, after in some:
            yield one, state, found.get(one.run, ()) if _is_little(one, after) else _much(one, after, kinds)


def _is_little(one: Behind, after: int) -> bool:
    return one.last_seq - after <= _FEW


def _few(wanted: Sequence[tuple[Behind, int]], kinds: Collection[str]) -> Mapping[str, list[Event]]:
    found: dict[str, list[Event]] = defaultdict(list)
    if not wanted:
        return found
    which = " OR ".join(["(run_id = %s AND seq > %s AND seq <= %s)"] * len(wanted))
    told = f"({which}) AND kind IN ({', '.join(['%s'] * len(kinds))})" if kinds else which
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT run_id, body FROM runs_event WHERE {told} ORDER BY run_id, seq",
            [value for one, after in wanted for value in (one.run, after, one.last_seq)] + list(kinds),
        )
        for run, body in cursor.fetchall():
            found[run].append(decode(body))
    return found


def _much(one: Behind, after: int, kinds: Collection[str]) -> Iterator[Event]:
    rows = Row.objects.filter(run_id=one.run, seq__gt=after, seq__lte=one.last_seq).order_by("seq")
    if kinds:
        rows = rows.filter(kind__in=kinds)
    for body in rows.values_list("body", flat=True).iterator(chunk_size=1000):
        yield decode(body)


def advance(reader: str, moves: Sequence[tuple[Behind, int]]) -> bool:
    """Move the cursors of these runs; False if another process of this reader moved one of them meanwhile. Then the
    caller rolls back what it made of the events."""
    known, new = [], []
    for one, upto in moves:
        done = one.ended and upto >= one.last_seq
        if one.seen:
            known.append((upto, done, reader, one.run, one.seen))
        else:
            new.append((reader, one.run, upto, done))
    with connection.cursor() as cursor:
        for sql, rows in ((_MOVE, known), (_BEGIN, new)):
            if rows:
                cursor.executemany(sql, rows)
                if cursor.rowcount != len(rows):
                    return False
    return True
