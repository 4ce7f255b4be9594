"""The log's append over the driver's own executemany, in one process and on one database. ROUNDS; the database is the
environment's.

The floor inserts the same rows into the same table, on a connection of its own, one commit per batch: no fence, no
`seq`, no projections. On SQLite it has a file of its own with the same table and settings: in one file each would throw
away what the other holds in memory of it, and whoever happens to fill the journal would pay for both.
"""

import itertools
import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import django
from django.core.management import call_command

TEXT = "import pytest\n\n\ndef test_total():\n    assert quantize(total) == Decimal('12.34')\n" * 8
# Events a commit: how many runs they belong to. A worker's groups are of many runs, a few events each.
SHAPES = {1: 1, 10: 1, 100: 10, 1000: 50}


def turn_of(turn: int, text: str) -> list[Any]:
    """The events of one turn with one tool, safe and encoded."""
    from agents import kinds
    from agents.events import draft
    from agents.ids import new_id

    chat, tool, at = new_id(), new_id(), datetime.now(UTC)
    args = json.dumps({"path": f"billing/module_{turn}.py", "start": 1, "lines": 200})
    asked: list[Mapping[str, Any]] = [{"call": tool, "wire_id": f"c{turn}", "name": "read_file", "args": args}]
    usage = {"input": 380, "cache_read": 2700, "output": 210}
    bodies: list[tuple[Any, str | None]] = [
        (kinds.TurnStarted(), None),
        (kinds.CallStarted(operation="chat", name="tour", model="tour", provider="openai"), chat),
        (kinds.CallCompleted(
            operation="chat", name="tour", status="ok", text="Let me look at it.", tool_calls=asked, usage=usage,
            cost_usd="0.0064", cost_source="reported", finish_reason="tool_calls", ttft_ms=412.0, duration_ms=1900.0,
        ), chat),
        (kinds.CallStarted(operation="execute_tool", name="read_file", args=args, concurrency="safe", group=0), tool),
        (kinds.CallCompleted(
            operation="execute_tool", name="read_file", status="ok", result=text, cost_source="none", duration_ms=31.0
        ), tool),
        (kinds.TurnCompleted(), None),
    ]  # fmt: skip
    return [draft(body, at=at, turn=turn, call=call) for body, call in bodies]


class Tale:
    """One run and the endless drafts of its turns."""

    def __init__(self, text: str) -> None:
        from tests.control.records import make_run

        self.run = make_run()
        self._drafts = itertools.chain.from_iterable(turn_of(n, text) for n in itertools.count(1))

    def batch(self, events: int) -> Any:
        from control.runs import log

        drafts = list(itertools.islice(self._drafts, events))
        return log.Batch(run=self.run.pk, root=self.run.root, epoch=self.run.epoch, drafts=drafts)


class Floor:
    """The driver's executemany into the events table; rows are ready before the clock starts."""

    def __init__(self) -> None:
        from django.db import connection

        self._postgres = connection.vendor == "postgresql"
        self._raw: Any
        if self._postgres:
            import psycopg

            self._raw = psycopg.connect(os.environ["DATABASE_URL"])
        else:
            self._raw = sqlite3.connect(f"{connection.settings_dict['NAME']}.floor", timeout=30)
            with connection.cursor() as console:
                for name in ("journal_mode", "synchronous", "wal_autocheckpoint", "cache_size"):
                    (value,) = console.execute(f"PRAGMA {name}").fetchone()
                    (same,) = self._raw.execute(f"PRAGMA {name}={value}").fetchone() or (value,)
                    assert same == value, f"{name} is {same} under the floor and {value} under the console"
                console.execute("SELECT sql FROM sqlite_master WHERE name = 'runs_event'")
                self._raw.execute(console.fetchone()[0])
        mark = "%s" if self._postgres else "?"
        self._sql = (
            f"INSERT INTO runs_event (run_id, seq, kind, turn, call, at, ts, body) VALUES ({', '.join([mark] * 8)})"
        )
        self._cursor = self._raw.cursor()

    def rows(self, batches: Sequence[Any], seqs: dict[str, Iterator[int]]) -> list[tuple[Any, ...]]:
        from agents.events import encode, stamp
        from control.runs.tables import tables

        store, now, rows = tables(), datetime.now(UTC), []
        for batch in batches:
            other = batch.run[:-4] + "0000"
            counter = seqs.setdefault(other, itertools.count(1))
            for item in batch.drafts:
                seq = next(counter)
                body = encode(item, run=other, root=other, seq=seq, ts=now).decode()
                at, ts = store.moment(item.at, item.stamped), store.moment(now, stamp(now))
                rows.append((other, seq, item.kind, item.turn, item.call, at, ts, body))
        return rows

    def write(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self._cursor.executemany(self._sql, rows)
        self._raw.commit()


def took(work: Callable[[Any], Any], portion: Any) -> float:
    began = time.perf_counter()
    work(portion)
    return time.perf_counter() - began


def one_round(tales: Sequence[Tale], floor: Floor, seqs: dict[str, Iterator[int]], events: int) -> tuple[float, float]:
    """Events per second, ours and the driver's, portion by portion in turn: what else the machine does hits both."""
    from control.runs import log

    runs = SHAPES[events]
    portions = [[tale.batch(events // runs) for tale in tales[:runs]] for _ in range(max(4, min(300, 6000 // events)))]
    rows = [floor.rows(batches, seqs) for batches in portions]
    ours = bare = 0.0
    for batches, ready in zip(portions, rows, strict=True):
        ours += took(log.append, batches)
        bare += took(floor.write, ready)
    written = len(portions) * events
    return written / ours, written / bare


def measure(rounds: int) -> dict[str, Any]:
    """Per size of a commit: the rates of each round. The first round warms up and does not count."""
    from control.runs import collector

    tales = [Tale(TEXT) for _ in range(max(SHAPES.values()))]
    floor = Floor()
    seqs: dict[str, Iterator[int]] = {}
    collector.leave_out_what_is_loaded()
    found: dict[str, Any] = {}
    for events in SHAPES:
        pairs = [one_round(tales, floor, seqs, events) for _ in range(rounds + 1)][1:]
        found[str(events)] = {"ours": [ours for ours, _ in pairs], "executemany": [bare for _, bare in pairs]}
    return found


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "control.settings")
    django.setup()
    call_command("migrate", verbosity=0)
    sys.stdout.write(json.dumps(measure(int(sys.argv[1]))) + "\n")
