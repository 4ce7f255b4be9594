"""Everything on the run page that is not the turns: header, numbers, family, notes, questions, fuses and the stop.

These parts are made from rows, are the same for every viewer, and go out whole whenever they have changed.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.utils import timezone

from agents.commands import CommandKind
from agents.spec import Status
from control.dashboard import asks, gauges, states, stopping
from control.dashboard.render import part
from control.runs.models import Command, Receipt, Run, Verdict

PARTS = ("status", "verbs", "stats", "family", "notes", "asks", "fuses", "stop", "cuts", "ladder", "fork")
FAMILY_SHOWN = 40
NOTES_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A steer note and how far it has come; `withdrawing` until the run has agreed."""

    command: Command
    text: str
    state: str
    turn: int | None
    code: str | None


def context_of(run: Run, now: datetime | None = None) -> dict[str, Any]:
    """All that the side parts show, in one pass over the tables."""
    now = now or timezone.now()
    family = list(Run.objects.filter(root=run.root).order_by("path").defer("spec", "final"))
    fuses = gauges.all_fuses(run, now, family)
    under_way = stopping.under_way(run, family)
    by_name = {fuse.name: fuse for fuse in fuses}
    return {
        "run": run,
        "state": states.state_of(run, now),
        "verbs": states.verbs(run),
        "fuses": fuses,
        "turns": by_name["max_turns"],
        "tokens": by_name["max_tokens"],
        "cost": by_name["max_cost"],
        "wall": by_name["max_seconds"],
        "verdict": Verdict.objects.filter(run_id=run.id, shadow=False).order_by("-seq").first() if run.rung else None,
        "policy": _policy(run),
        "final": Status(run.status).final,
        "family": [
            {
                "run": other,
                "state": states.state_of(other, now),
                "depth": other.path.count("/"),
                "me": other.id == run.id,
            }
            for other in family[:FAMILY_SHOWN]
        ],
        "family_count": len(family),
        "family_cost": _cost_with_children(run, family),
        "family_hidden": max(0, len(family) - FAMILY_SHOWN),
        "asks": asks.below(run, family),
        "notes": _notes(run),
        "stop": stopping.stop_of(run, family),
        "cuts": stopping.cuts(under_way),
        "ladder": stopping.ladder(under_way),
        "stays": stopping.stays(run, family),
        "spec": run.spec if isinstance(run.spec, dict) else {},
    }


def _policy(run: Run) -> dict[str, Any]:
    """Which policy the run holds frozen, and whether all or some of it only looks on."""
    spec = run.spec if isinstance(run.spec, dict) else {}
    body = spec.get("policy_body")
    rules = body.get("rules") if isinstance(body, dict) else None
    shadowed = (
        [rule for rule in rules.values() if isinstance(rule, dict) and rule.get("shadow") is True]
        if isinstance(rules, dict)
        else []
    )
    return {
        "version": spec.get("policy_version"),
        "known": bool(body),
        "shadow": isinstance(body, dict) and body.get("shadow") is True,
        "shadowed": len(shadowed),
    }


def _cost_with_children(run: Run, family: list[Run]) -> Decimal | None:
    """The known cost of the run and its sub-agents; None for a run that has none."""
    below = [other for other in family if other.path.startswith(run.path)]
    return sum((other.cost_usd for other in below if other.cost_usd), Decimal(0)) if len(below) > 1 else None


def parts_of(context: dict[str, Any]) -> dict[str, str]:
    """Each part's HTML by its element id, `side-status` and so on."""
    return {f"side-{name}": part(f"runs/side/_{name}.html", context) for name in PARTS}


def _notes(run: Run) -> list[Note]:
    commands = list(
        Command.objects.filter(run_id=run.id, kind=CommandKind.STEER.value).order_by("-issued_at", "-id")[:NOTES_SHOWN]
    )
    asking = Command.objects.filter(run_id=run.id, kind=CommandKind.WITHDRAW.value, open=True)
    withdrawing = {str(other.args.get("command")) for other in asking}
    receipts = {
        receipt.command_id: receipt
        for receipt in Receipt.objects.filter(run_id=run.id, command_id__in=[command.id for command in commands])
    }
    notes = []
    for command in commands:
        receipt = receipts.get(command.id)
        state = command.state
        if receipt and state not in ("withdrawn", "refused"):
            state = receipt.state
        if command.id in withdrawing and state in ("requested", "delivered"):
            state = "withdrawing"
        notes.append(
            Note(
                command=command,
                text=str(command.args.get("note", "")),
                state=state,
                turn=receipt.turn if receipt else None,
                code=receipt.code if receipt else None,
            )
        )
    return notes
