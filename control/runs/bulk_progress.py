"""How far a bulk has come: every run that its commands reach, counted by what the log says of it, no more."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from agents.commands import CommandKind
from agents.spec import Status
from control.runs.clock import database_now
from control.runs.models import Bulk, Command, Receipt, Run

MOST_FAILURES = 100
STOP_COUNTS = ("requested", "delivered", "stopping", "stopped", "verified", "unverified", "finished", "failed")
NOTE_COUNTS = ("requested", "delivered", "injected", "refused", "withdrawn")
_OVER = frozenset({"stopped", "finished", "injected", "refused", "withdrawn"})
_NOTE_WORDS = {"done": "injected"}


@dataclass(slots=True, kw_only=True)
class Line:
    """One run that a bulk reaches. `state` is one of the counts; `code` says what did not go as asked."""

    run: str
    command: str
    agent: str
    status: str
    state: str
    code: str | None = None
    why: str | None = None
    turn: int | None = None
    seconds: float | None = None
    verified: bool | None = None
    delivered_at: datetime | None = None
    ended_at: datetime | None = None


def progress(bulk_id: str) -> dict[str, Any] | None:
    """What `GET /api/bulk/{id}` tells; None for an unknown bulk."""
    bulk = Bulk.objects.filter(pk=bulk_id).first()
    if bulk is None:
        return None
    found = bulk.figures if bulk.figures is not None else figures(bulk, database_now())
    return {
        "id": bulk.pk,
        "kind": bulk.kind,
        "filter": bulk.filter,
        "args": bulk.args,
        "by": bulk.by,
        "reason": bulk.reason,
        "requested_at": bulk.issued_at,
        "block": bulk.block,
        "eligible": bulk.eligible,
        "commands": bulk.asked,
        "asked_at": bulk.asked_at,
        "cancelled_at": bulk.cancelled_at,
        "cancelled_by": bulk.cancelled_by,
        "cancel_reason": bulk.cancel_reason,
        **found,
    }


def figures(bulk: Bulk, now: datetime) -> dict[str, Any]:
    """The counts, what failed, and the seconds since the request: up to the last end once all is over."""
    found = lines(bulk)
    names = NOTE_COUNTS if bulk.kind == CommandKind.STEER.value else STOP_COUNTS
    counts = dict.fromkeys(names, 0)
    for line in found:
        counts[line.state] += 1
        if line.state == "stopped":
            counts["verified" if line.verified else "unverified"] += 1
        elif line.code and "failed" in counts:
            counts["failed"] += 1
    failures = [line for line in found if line.code]
    closed = bulk.asked_at is not None or bulk.cancelled_at is not None
    finished = closed and all(line.state in _OVER for line in found)
    last = max((line.ended_at for line in found if line.ended_at), default=now) if finished else now
    return {
        "total": len(found),
        "left": 0 if closed else max(bulk.eligible - bulk.asked, 0),
        "counts": counts,
        "failures": [_failure(line) for line in failures[:MOST_FAILURES]],
        "failed": len(failures),
        "finished": finished,
        "seconds": round(max((last - bulk.issued_at).total_seconds(), 0.0), 3),
    }


def _failure(line: Line) -> dict[str, Any]:
    return {"run": line.run, "state": line.state, "code": line.code, "why": line.why, "status": line.status}


class _Run(NamedTuple):
    id: str
    path: str
    agent: str
    status: str
    stopped: Any
    stop_seconds: float | None
    finished_at: datetime | None
    exit_reason: str | None


class _Receipt(NamedTuple):
    command_id: str
    run_id: str
    state: str
    code: str | None
    turn: int | None
    delivered_at: datetime | None
    done_at: datetime | None


def lines(bulk: Bulk) -> list[Line]:
    """One line for each run that the commands of the bulk reach, in order of id."""
    mine = Command.objects.filter(bulk=bulk.pk)
    commands = {run: pk for pk, run in mine.values_list("id", "run_id")}
    if not commands:
        return []
    rows = Receipt.objects.filter(command_id__in=mine.values("id")).values_list(*_Receipt._fields)
    receipts = {(row[0], row[1]): _Receipt._make(row) for row in rows}
    note = bulk.kind == CommandKind.STEER.value
    found = []
    for run in _runs(mine.values("run_id"), with_below=not note):
        command = commands.get(run.id) or _command_above(run, commands, bulk)
        if command is not None:
            receipt = receipts.get((command, run.id))
            found.append(_note_line(run, command, receipt) if note else _stop_line(run, command, receipt))
    return found


def _runs(named: Any, *, with_below: bool) -> Iterator[_Run]:
    rows = Run.objects.filter(pk__in=named)
    if with_below:
        rows = Run.objects.filter(root__in=rows.values("root"))
    return map(_Run._make, rows.order_by("id").values_list(*_Run._fields))


def _command_above(run: _Run, commands: Mapping[str, str], bulk: Bulk) -> str | None:
    """The command that reaches a run from above, unless it had ended before."""
    if run.finished_at is not None and run.finished_at < bulk.issued_at:
        return None
    return next((commands[pk] for pk in reversed(run.path.split("/")[:-1]) if pk in commands), None)


def _stop_line(run: _Run, command: str, receipt: _Receipt | None) -> Line:
    """`stopped` is claimed only for a run that the log says was interrupted."""
    state, code, why, verified = _stop_state(run, receipt)
    return Line(
        run=run.id,
        command=command,
        agent=run.agent,
        status=run.status,
        state=state,
        code=code,
        why=why,
        seconds=run.stop_seconds if state == "stopped" else None,
        verified=verified,
        delivered_at=receipt.delivered_at if receipt else None,
        ended_at=run.finished_at,
    )


def _stop_state(run: _Run, receipt: _Receipt | None) -> tuple[str, str | None, str | None, bool | None]:
    status = Status(run.status)
    if status is Status.INTERRUPTED:
        report = run.stopped or {}
        verified = bool(report.get("verified", True))
        return "stopped", None if verified else "unverified", report.get("why"), verified
    if status is Status.LOST:
        return "finished", "worker_lost", run.exit_reason, None
    if status.final:
        return "finished", None, None, None
    if status is Status.STOPPING:
        return "stopping", None, None, None
    state = receipt.state if receipt and receipt.state in STOP_COUNTS else "requested"
    return state, receipt.code if receipt else None, None, None


def _note_line(run: _Run, command: str, receipt: _Receipt | None) -> Line:
    state = receipt.state if receipt else "requested"
    return Line(
        run=run.id,
        command=command,
        agent=run.agent,
        status=run.status,
        state=_NOTE_WORDS.get(state, state),
        code=receipt.code if receipt else None,
        turn=receipt.turn if receipt else None,
        delivered_at=receipt.delivered_at if receipt else None,
        ended_at=receipt.done_at if receipt else None,
    )
