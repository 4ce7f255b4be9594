"""The SQL of one append as text, with the mark of either driver; which columns it names, and in which order."""

from collections.abc import Sequence

from control.runs.fold import COLUMNS

# What changes with nearly every event; the other columns, some of them indexed, are written only when they changed.
BUSY = (
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
# What still changes of a call once it has its row.
CALL_GOES_ON = (
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
CALL = ("id", "run_id", "turn", "operation", "name", "label", *CALL_GOES_ON)
VERDICT = (
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
EVENT = ("run_id", "seq", "kind", "turn", "call", "at", "ts", "body")


def _insert(table: str, names: Sequence[str], mark: str) -> str:
    columns = ", ".join(f'"{name}"' for name in names)
    return f"INSERT INTO {table} ({columns}) VALUES ({', '.join([mark] * len(names))})"


def insert_events(mark: str, rows: int) -> str:
    """Several events by one statement. It fails without undoing its own first rows: whoever appends rolls back all."""
    row = f"({', '.join([mark] * len(EVENT))})"
    return f"INSERT OR FAIL INTO runs_event ({', '.join(EVENT)}) VALUES {', '.join([row] * rows)}"


def _upsert_call(mark: str) -> str:
    changes = ", ".join(f"{name} = excluded.{name}" for name in CALL if name not in ("id", "run_id"))
    return f"{_insert('runs_call', CALL, mark)} ON CONFLICT (run_id, id) DO UPDATE SET {changes}"


def _update_call(mark: str) -> str:
    changes = ", ".join(f"{name} = {mark}" for name in CALL_GOES_ON)
    return f"UPDATE runs_call SET {changes} WHERE run_id = {mark} AND id = {mark}"


def _update(names: Sequence[str], mark: str, tail: str = "") -> str:
    return f"UPDATE runs_run SET {', '.join(f'{name} = {mark}' for name in names)}{tail} WHERE id = {mark}"


# A final run is held by nobody.
_FREED = ", lease_until = NULL"


def statements(mark: str) -> dict[str, str]:
    return {
        "event": _insert("runs_event", EVENT, mark),
        "call": _upsert_call(mark),
        "call goes on": _update_call(mark),
        "verdict": _insert("runs_verdict", VERDICT, mark),
        "late": f"UPDATE runs_call SET late_status = {mark} WHERE run_id = {mark} AND id = {mark}",
        "busy": _update(BUSY, mark),
        "whole": _update(COLUMNS, mark),
        "ended": _update(COLUMNS, mark, _FREED),
    }
