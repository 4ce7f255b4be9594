"""Runs as the outside sees them: the contract's row, and the row with fuses, open commands, tree and final answer."""

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from agents.events import stamp
from agents.spec import FINAL, LIMIT_NAMES, Status
from control.runs import line
from control.runs.clock import database_now
from control.runs.models import Command, Receipt, Run

_FINAL = frozenset(status.value for status in FINAL)


def run_row(run: Run) -> dict[str, Any]:
    """The run row of the contract. Cost is null once a part of it is unknown; `cost_known_usd` is what is known."""
    return {
        "id": run.pk,
        "root": run.root,
        "parent": run.parent,
        "project": run.project,
        "owner": run.owner,
        "agent": run.agent,
        "task": run.task,
        "status": run.status,
        "exit_reason": run.exit_reason,
        "source": run.source,
        "priority": run.priority,
        "created_at": _time(run.created_at),
        "started_at": _time(run.started_at),
        "finished_at": _time(run.finished_at),
        "turns": run.turns,
        "steps": run.steps,
        "input_tokens": run.input_tokens,
        "output_tokens": run.output_tokens,
        "cost_usd": None if run.cost_unknown else _money(run.cost_usd),
        "last_activity_at": _time(run.last_activity_at),
        "activity": line.activity(run),
        "worker": run.worker,
        "host": run.host,
        "epoch": run.epoch,
        "last_seq": run.last_seq,
        "labels": run.labels,
        "policy": run.policy,
        "can": can(run),
        "cost_known_usd": _money(run.cost_usd),
        "errors": run.errors,
        "rung": run.rung,
        "waiting_for": run.waiting_for,
        "waiting_call": run.waiting_call,
        "lease_until": _time(run.lease_until),
        "detached": run.detached,
        "replay_of": run.replay_of,
        "forked_from": run.forked_from,
        "stopped": run.stopped,
    }


def can(run: Run) -> list[str]:
    """The verbs that may still do something."""
    if run.status in _FINAL:
        return ["fork"]
    if run.status == Status.STOPPING.value:
        return ["interrupt"]
    verbs = ["interrupt", "steer", "pause"]
    if run.waiting_for in ("pause", "quota"):
        verbs = ["interrupt", "steer", "unpause"]
    if run.waiting_for in ("question", "approval"):
        verbs.append("answer")
    return [*verbs, "raise"]


def run_detail(run: Run) -> dict[str, Any]:
    """The row plus `fuses`, `commands`, `tree`, `final` and what was frozen at the start."""
    model = run.spec.get("model", {})
    return {
        **run_row(run),
        **spent_below(run),
        "fuses": fuses(run, database_now()),
        "commands": open_commands(run),
        "tree": tree(run),
        "final": run.final,
        "model": {name: model.get(name) for name in ("model", "base_url", "provider", "credential")},
        "workspace": run.spec.get("workspace"),
        "dry_run": bool(run.spec.get("dry_run")),
    }


def spent_below(run: Run) -> dict[str, Any]:
    """What the run and all its sub-agents have cost together. Each run stores its own cost only; the sum is made here.

    `subtree_cost_usd` is null once a part of it is unknown; `subtree_cost_known_usd` is what is known.
    """
    family = Run.objects.filter(root=run.root, path__startswith=run.path).values_list("cost_usd", "cost_unknown")
    known = _money(sum((cost for cost, _ in family if cost), Decimal(0)))
    unknown = any(part for _, part in family)
    return {"subtree_cost_usd": None if unknown else known, "subtree_cost_known_usd": known}


def fuses(run: Run, now: datetime) -> list[dict[str, Any]]:
    """`{name, used, limit, source}` of every limit; used and limit are decimal strings, unknown cost is null."""
    limits: Mapping[str, Mapping[str, str]] = run.spec.get("limits", {})
    raised = _raised(run)
    used = _used(run, now)
    return [
        {
            "name": name,
            "used": used[name],
            "limit": raised.get(name) or (limits[name]["value"] if name in limits else None),
            "source": "raised" if name in raised else limits[name]["source"] if name in limits else None,
        }
        for name in LIMIT_NAMES
    ]


def _raised(run: Run) -> dict[str, str]:
    """Limits that an operator has raised, the latest word of each, once the run has taken it in."""
    done = Receipt.objects.filter(run_id=run.pk, state="done").values_list("command_id", flat=True)
    found: dict[str, str] = {}
    for command in Command.objects.filter(run_id=run.pk, kind="raise", pk__in=list(done)).order_by("id"):
        found.update({k: str(v) for k, v in command.args.get("limits", {}).items() if v is not None})
    return found


def _used(run: Run, now: datetime) -> dict[str, str | None]:
    seconds = ((run.finished_at or now) - run.started_at).total_seconds() if run.started_at else 0.0
    return {
        "max_turns": str(run.turns),
        "max_steps": str(run.steps),
        "max_tokens": str(run.input_tokens + run.output_tokens),
        "max_cost": None if run.cost_unknown else _money(run.cost_usd),
        "max_seconds": f"{max(seconds, 0.0):.1f}",
    }


def open_commands(run: Run) -> list[dict[str, Any]]:
    """Commands that still want something of this run, in order of issue, with how far each has come."""
    found = [
        command
        for command in Command.objects.filter(open=True, run_id__in=run.path.split("/")).order_by("id")
        if command.run_id == run.pk or command.scope == "subtree"
    ]
    receipts = {r.command_id: r for r in Receipt.objects.filter(run_id=run.pk, command_id__in=[c.pk for c in found])}
    return [_command(command, receipts.get(command.pk)) for command in found]


def _command(command: Command, receipt: Receipt | None) -> dict[str, Any]:
    return {
        "id": command.pk,
        "kind": command.kind,
        "by": command.by,
        "reason": command.reason,
        "args": command.args,
        "scope": command.scope,
        "state": receipt.state if receipt else command.state,
        "issued_at": _time(command.issued_at),
        "delivered_at": _time(receipt.delivered_at) if receipt else None,
    }


def tree(run: Run) -> list[dict[str, Any]]:
    """The runs of the whole tree, root first, each with its parent: enough to draw it and to see who still runs."""
    runs = Run.objects.filter(root=run.root).order_by("id").defer("spec", "task")
    return [
        {
            "id": row.pk,
            "parent": row.parent,
            "agent": row.agent,
            "status": row.status,
            "exit_reason": row.exit_reason,
            "activity": row.activity,
            "detached": row.detached,
            "parent_call": row.parent_call,
            "created_at": _time(row.created_at),
            "finished_at": _time(row.finished_at),
            "cost_usd": None if row.cost_unknown else _money(row.cost_usd),
        }
        for row in runs
    ]


def _time(moment: datetime | None) -> str | None:
    return stamp(moment.astimezone(UTC)) if moment else None


def _money(amount: Decimal | None) -> str:
    """A decimal string without trailing zeros; nothing spent is `0`."""
    if not amount:
        return "0"
    text = format(amount, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
