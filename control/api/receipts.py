"""What has become of a command: its state with times, for every run that it reaches."""

from datetime import datetime
from typing import Any

from agents.commands import CommandState, Scope
from agents.spec import Status
from control.runs.models import Command, Receipt, Run

CLOSED = frozenset({CommandState.DONE, CommandState.REFUSED, CommandState.WITHDRAWN})


def describe(command: Command) -> dict[str, Any]:
    """The command with one line per run of its scope; `done` of `of` runs have finished with it."""
    lines = [_line(command, run, receipt) for run, receipt in _reached(command)]
    return {
        "id": command.pk,
        "kind": command.kind,
        "run": command.run_id,
        "scope": command.scope,
        "by": command.by,
        "reason": command.reason,
        "args": command.args,
        "state": command.state,
        "code": next((line["code"] for line in lines if line["run"] == command.run_id), None),
        "requested_at": command.issued_at,
        "delivered_at": _first(lines, "delivered_at"),
        "stopping_at": _first(lines, "stopping_at"),
        "done_at": _last(lines) if all(line["done_at"] for line in lines) else None,
        "runs": lines,
        "done": sum(line["state"] in CLOSED for line in lines),
        "of": len(lines),
        "bulk": command.bulk,
    }


def _reached(command: Command) -> list[tuple[Run, Receipt | None]]:
    receipts = {receipt.run_id: receipt for receipt in Receipt.objects.filter(command_id=command.pk)}
    named = Run.objects.filter(pk=command.run_id).first()
    if named is None:
        return []
    runs = [named]
    if command.scope == Scope.SUBTREE:
        below = Run.objects.filter(root=named.root, path__startswith=f"{named.path}/")
        runs += below.order_by("created_at", "pk")
    return [(run, receipts.get(run.pk)) for run in runs if run.pk in receipts or _reachable(run, command)]


def _reachable(run: Run, command: Command) -> bool:
    """A run that had ended before the command came is none of its business."""
    return run.pk == command.run_id or run.finished_at is None or run.finished_at >= command.issued_at


def _line(command: Command, run: Run, receipt: Receipt | None) -> dict[str, Any]:
    state = receipt.state if receipt else _state_without_receipt(command, run)
    closed_by_end = receipt is None and state == CommandState.DONE
    return {
        "run": run.pk,
        "state": state,
        "code": receipt.code if receipt else None,
        "turn": receipt.turn if receipt else None,
        "delivered_at": receipt.delivered_at if receipt else None,
        "stopping_at": receipt.stopping_at if receipt else None,
        "done_at": receipt.done_at if receipt else (run.finished_at if closed_by_end else None),
        "status": run.status,
        "stopped": run.stopped,
    }


def _state_without_receipt(command: Command, run: Run) -> str:
    # With one run to reach, the command is as far as that run; with several it is as far as the first of them.
    if command.scope == Scope.RUN:
        return command.state
    if command.kind == "interrupt" and Status(run.status).final:
        return CommandState.DONE
    return CommandState.REQUESTED


def _first(lines: list[dict[str, Any]], name: str) -> datetime | None:
    return min((line[name] for line in lines if line[name]), default=None)


def _last(lines: list[dict[str, Any]]) -> datetime | None:
    return max((line["done_at"] for line in lines if line["done_at"]), default=None)
