"""A backtest of many long runs through the desk, its processes and the broker, over parsing the same logs.

`BACKTEST_RUNS` runs (10,000) of 100 calls each. Making them is not counted.
"""

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import orjson

from agents.ids import new_id
from tests import children
from tests.bench.harness import PYTHON, say

RUNS = int(os.environ.get("BACKTEST_RUNS", "10000"))
CALLS = 100
POLICIES = ("strict", "default")
# Of ten runs one goes in circles from its middle on.
LOOPS = 10
_AT = "2026-03-01T01:00:00.000000Z"
_STORED = "2026-03-01 01:00:00.000000"
_READ = "INSERT INTO runs_cursor (reader, run_id, seq, done) VALUES (?, ?, ?, 1)"
# What follows the logs of all runs in a desk has long read those that a backtest is about.
READERS = ("incidents", "counters", "traces")
_EVENT = "INSERT INTO runs_event (run_id, seq, kind, turn, call, at, ts, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


def backtest() -> None:
    with tempfile.TemporaryDirectory(prefix="pilothouse-bench-") as data:
        environment = {**os.environ, "DATA_DIR": data, "LOG_LEVEL": "ERROR"}
        _manage(environment, "migrate", "--verbosity", "0")
        at = time.monotonic()
        _fill(Path(data) / "pilothouse.sqlite3")
        say(f"made {RUNS:,} runs of {CALLS} calls in {time.monotonic() - at:.0f} s")
        desk = children.start([PYTHON, "manage.py", "desk"], env=environment, stdout=subprocess.DEVNULL)
        try:
            for policies in (POLICIES[1:], POLICIES):
                at = time.monotonic()
                told = orjson.loads(_manage(environment, "backtest", *policies, "--limit", str(RUNS)))
                took = time.monotonic() - at
                sums = " and ".join(f"{one['name']} stops {one['stopped']:,}" for one in told["policies"])
                say(f"{told['done']:,} runs under {len(policies)}: {took:.0f} s, {RUNS / took:.0f} runs/s; {sums}")
        finally:
            desk.terminate()
            desk.wait(20)
        bare = _floor(Path(data) / "pilothouse.sqlite3")
        say(f"reading and parsing the same logs in one process: {RUNS / bare:.0f} runs/s")


def _manage(environment: dict[str, str], *words: str) -> bytes:
    command = [sys.executable, "manage.py", *words]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return done.stdout


def _fill(path: Path) -> None:
    """Straight into the tables, as a worker's log looks: through the log itself it would take an hour."""
    base = sqlite3.connect(path)
    base.execute("PRAGMA synchronous = OFF")
    columns = [row[1] for row in base.execute("PRAGMA table_info(runs_run)") if row[3] and row[4] is None]
    for number in range(RUNS):
        run, loops = new_id(), number % LOOPS == 0
        events = list(_events(run, number, loops))
        base.executemany(_EVENT, events)
        given = {
            "id": run,
            "root": run,
            "path": run,
            "owner": "ann",
            "agent": "default",
            "task": "do it",
            "created_at": _STORED,
            "status": "interrupted" if loops else "completed",
            "steps": CALLS,
            "last_seq": len(events),
        }
        row = {name: given.get(name, _blank(name)) for name in {*columns, *given}}
        names = ", ".join(row)
        base.execute(f"INSERT INTO runs_run ({names}) VALUES ({', '.join('?' * len(row))})", list(row.values()))
        base.executemany(_READ, [(reader, run, len(events)) for reader in READERS])
        if number % 200 == 0:
            base.commit()
    base.commit()
    base.close()


def _blank(name: str) -> str | int:
    return {"labels": "{}", "spec": "{}", "project": "default", "policy": "default", "source": "native"}.get(name, 0)


def _events(run: str, number: int, loops: bool) -> Iterator[tuple[object, ...]]:
    seq = 0

    def event(kind: str, turn: int | None, call: str | None, data: object) -> tuple[object, ...]:
        nonlocal seq
        seq += 1
        body = {
            "run": run, "root": run, "seq": seq, "at": _AT, "ts": _AT,
            "kind": kind, "turn": turn, "call": call, "data": data, "v": 1,
        }  # fmt: skip
        return run, seq, kind, turn, call, _STORED, _STORED, orjson.dumps(body).decode()

    yield event("run.queued", None, None, {"agent": "default", "task": "do it", "labels": {}})
    yield event("run.started", None, None, {"read_only": ["read_file", "search_files"], "limits": {}})
    for turn in range(1, CALLS + 1):
        what = CALLS // 2 if loops and turn > CALLS // 2 else turn
        tool, args, result = _call(number, what)
        chat, call = f"{number}-{turn}-m", f"{number}-{turn}-t"
        asked = [{"call": call, "wire_id": f"w{turn}", "name": tool, "args": args}]
        usage = {"input": 400 + 20 * turn, "output": 80, "cache_read": 0, "cache_write": 0, "reasoning": 0}
        yield event("turn.started", turn, None, {})
        yield event("call.started", turn, chat, {"operation": "chat", "name": "m", "model": "m", "provider": "openai"})
        paid = {"usage": usage, "cost_usd": "0.001", "cost_source": "reported", "finish_reason": "tool_calls"}
        yield event(
            "call.completed",
            turn,
            chat,
            {"operation": "chat", "name": "m", "status": "ok", **paid, "tool_calls": asked},
        )
        yield event("batch.planned", turn, None, {"groups": [[call]], "why": "one call"})
        yield event("call.started", turn, call, {"operation": "execute_tool", "name": tool, "args": args})
        done = {"operation": "execute_tool", "name": tool, "args": args, "status": "ok", "result": result}
        yield event("call.completed", turn, call, done)
        yield event("turn.completed", turn, None, {})
    yield event("run.interrupted" if loops else "run.completed", None, None, {"final": "Done."})


def _call(number: int, what: int) -> tuple[str, str, str]:
    """A call and its answer, a few hundred bytes of it, that no other run has."""
    path = f"src/part{what}/module_{number}.py"
    match what % 3:
        case 0:
            return "read_file", f'{{"path":"{path}"}}', f"def work_{what}(n): return n + {number}\n" * 8
        case 1:
            found = "\n".join(f"{path}:{line}: work_{what}({number})" for line in range(what, what + 6))
            return "search_files", f'{{"pattern":"work_{what}","path":"src"}}', found
        case _:
            return "run_command", f'{{"command":"pytest -q {path}"}}', f"{what} passed in 0.{number % 90 + 10}s\n" * 4


def _floor(path: Path) -> float:
    """Seconds in which one process reads and parses all of it, and does nothing more."""
    base = sqlite3.connect(path)
    at = time.monotonic()
    for (body,) in base.execute("SELECT body FROM runs_event ORDER BY run_id, seq"):
        orjson.loads(body)
    took = time.monotonic() - at
    base.close()
    return took
