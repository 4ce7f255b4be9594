"""What must hold of the record whatever broke. Each check returns what is wrong; an empty list is well."""

import json
from collections import Counter
from collections.abc import Iterator

from agents.kinds import FINAL_KINDS
from tests.chaos.fleet import Fleet
from tests.chaos.load import KEY, Script
from tests.control.runs.processes import until

FINAL_STATUSES = {kind.removeprefix("run.") for kind in FINAL_KINDS}


def _ends(fleet: Fleet) -> Iterator[str]:
    """Every run has one final state and one final event, after which only late results may come."""
    kinds: dict[str, list[str]] = {}
    for run, kind in fleet.sql("SELECT run_id, kind FROM runs_event ORDER BY run_id, seq"):
        kinds.setdefault(run, []).append(kind)
    for run, status in fleet.sql("SELECT id, status FROM runs_run"):
        ends = [kind for kind in kinds[run] if kind in FINAL_KINDS]
        if ends != [f"run.{status}"]:
            yield f"run {run} is {status}, its log has the ends {ends}"
        elif any(kind != "call.late" for kind in kinds[run][kinds[run].index(ends[0]) + 1 :]):
            yield f"run {run} goes on after its end: {kinds[run]}"


def _failures(fleet: Fleet, may_lose: bool) -> Iterator[str]:
    """Nothing here is the fault of a run: it ends as it would have, by a command, or after one attempt too many."""
    for run, status, reason in fleet.sql(
        "SELECT id, status, exit_reason FROM runs_run WHERE status NOT IN ('completed', 'interrupted')"
    ):
        if not (may_lose and status == "lost"):
            yield f"run {run} is {status}: {reason}"


def _order(fleet: Fleet) -> Iterator[str]:
    """No gap and no double in `seq`, and the row knows the last one."""
    for run, last, first, highest, count in fleet.sql(
        "SELECT r.id, r.last_seq, min(e.seq), max(e.seq), count(*) "
        "FROM runs_run r JOIN runs_event e ON e.run_id = r.id GROUP BY r.id, r.last_seq"
    ):
        if not (first == 1 and highest == count == last):
            yield f"run {run}: {count} events from {first} to {highest}, last_seq {last}"


def _writers(fleet: Fleet) -> Iterator[str]:
    """One writer at each epoch, and epochs never go back; every event was written under one."""
    for run, epoch, writers in fleet.sql(
        "SELECT run, epoch, array_agg(DISTINCT writer) FROM chaos_write GROUP BY run, epoch "
        "HAVING count(DISTINCT writer) > 1"
    ):
        yield f"run {run} has at epoch {epoch} the writers {writers}"
    for run, seq in fleet.sql(
        "SELECT run, seq FROM (SELECT run, seq, epoch, lag(epoch) OVER (PARTITION BY run ORDER BY seq) AS before "
        "FROM chaos_write) w WHERE epoch < before"
    ):
        yield f"run {run}: the epoch goes back at {seq}"
    (events,), (noted,) = fleet.sql("SELECT count(*) FROM runs_event UNION ALL SELECT count(*) FROM chaos_write")
    if events != noted:
        yield f"{events} events, {noted} of them noted with a writer"


def _commands(fleet: Fleet) -> Iterator[str]:
    for command, kind, state, run, status in fleet.sql(
        "SELECT c.id, c.kind, c.state, c.run_id, r.status FROM runs_command c JOIN runs_run r ON r.id = c.run_id "
        "WHERE c.open OR c.state NOT IN ('done', 'refused', 'withdrawn')"
    ):
        yield f"{kind} {command} is {state}; its run {run} is {status}"


def _known(fleet: Fleet, commands: list[str]) -> Iterator[str]:
    """What the API has answered for is there."""
    kept = {command for (command,) in fleet.sql("SELECT id FROM runs_command")}
    yield from (f"command {command} is lost" for command in commands if command not in kept)


def _calls(fleet: Fleet, script: Script) -> Iterator[str]:
    """No tool with an effect ran twice, and what the log says of each is true."""
    ran = script.keys()
    yield from (f"{key} ran {count} times" for key, count in ran.items() if count > 1)
    told: Counter[str] = Counter()
    for run, kind, body in fleet.sql(
        "SELECT run_id, kind, body FROM runs_event WHERE kind IN ('call.completed', 'call.late')"
    ):
        data = json.loads(body)["data"]
        found = KEY.search(json.loads(data.get("args") or "{}").get("command", "")) if data.get("args") else None
        if found is None or kind == "call.late":
            continue
        told[found[1]] += 1
        if data["status"] == "ok" and not ran[found[1]]:
            yield f"run {run} says that {found[1]} ran well; it did not run"
        if data["status"] == "not_started" and ran[found[1]]:
            yield f"run {run} says that {found[1]} was not started; it ran"
    yield from (f"{key} has {count} results" for key, count in told.items() if count > 1)


def _attached(fleet: Fleet) -> Iterator[str]:
    """No attached child outlives its parent, and each delegating call has one child."""
    for parent, call, count in fleet.sql(
        "SELECT parent, parent_call, count(*) FROM runs_run WHERE parent IS NOT NULL GROUP BY 1, 2 HAVING count(*) > 1"
    ):
        yield f"call {call} of run {parent} has {count} children"


def _processes(fleet: Fleet) -> Iterator[str]:
    try:
        until(lambda: not fleet.left_marked(), 15, "no process carries a run's mark")
    except AssertionError:
        yield from (f"left: {process}" for process in fleet.left_marked())
    yield from fleet.survivors_ended()


def _deadlocks(fleet: Fleet) -> Iterator[str]:
    """PostgreSQL ends one of two that wait for each other, but only after a second in which both stand still."""
    yield from fleet.postgres.deadlocks(fleet.database)


def wrongs(fleet: Fleet, script: Script, commands: list[str], *, may_lose: bool) -> list[str]:
    return [
        *_ends(fleet),
        *_failures(fleet, may_lose),
        *_order(fleet),
        *_writers(fleet),
        *_commands(fleet),
        *_known(fleet, commands),
        *_calls(fleet, script),
        *_attached(fleet),
        *_processes(fleet),
        *_deadlocks(fleet),
    ]


def summary(fleet: Fleet) -> str:
    """What became of the runs, for the eye."""
    rows = fleet.sql("SELECT status, count(*), max(epoch), sum(last_seq) FROM runs_run GROUP BY status ORDER BY status")
    states = ", ".join(f"{count} {status}" for status, count, _, _ in rows)
    commands = fleet.sql("SELECT kind, state, count(*) FROM runs_command GROUP BY 1, 2 ORDER BY 1, 2")
    said = ", ".join(f"{count} {kind} {state}" for kind, state, count in commands)
    requeued = fleet.sql("SELECT count(*) FROM runs_event WHERE kind = 'run.requeued'")[0][0]
    unknown = fleet.sql("SELECT count(*) FROM runs_call WHERE status = 'effect_unknown'")[0][0]
    highest = max((row[2] for row in rows), default=0)
    return f"runs: {states}; {requeued} requeued, epochs up to {highest}, {unknown} calls of unknown effect; {said}"
