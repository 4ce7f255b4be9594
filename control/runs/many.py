"""Many runs at once: who is eligible, stopping them in one batch, and how far that has come."""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from agents.commands import CommandKind, Scope
from agents.ids import new_id
from agents.spec import FINAL, Status
from control.runs import inbox
from control.runs.models import Block, Command, Receipt, Run
from control.runs.selection import Selection, as_id

SAMPLE = 3
MOST_FAILURES = 100


def preview(chosen: Selection, *, block: bool) -> dict[str, Any]:
    """What `interrupt` would do now. `not_eligible` is grouped by why, each with its count and some ids."""
    eligible = _eligible(chosen)
    sample = eligible.order_by("-created_at", "-pk")[:SAMPLE]
    return {
        "dry_run": True,
        "eligible": eligible.count(),
        "not_eligible": _left_out(chosen),
        "sample": [{"id": r.pk, "agent": r.agent, "task": r.task[:200], "status": r.status} for r in sample],
        "block_new_starts": block,
    }


def _active(chosen: Selection) -> QuerySet[Run]:
    return chosen.runs().exclude(status__in=list(FINAL))


_UNDER_WAY = Q(stop_command__isnull=False) | Q(status=Status.STOPPING.value)


def _eligible(chosen: Selection) -> QuerySet[Run]:
    return _active(chosen).exclude(_UNDER_WAY)


def _left_out(chosen: Selection) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = []
    left = {"already_finished": chosen.runs().filter(status__in=list(FINAL))}
    left["already_stopping"] = _active(chosen).filter(_UNDER_WAY)
    for why, runs in left.items():
        for row in runs.values("status").annotate(count=Count("pk")).order_by("status"):
            newest = runs.filter(status=row["status"]).order_by("-created_at", "-pk")
            some = list(newest.values_list("pk", flat=True)[:SAMPLE])
            groups.append({"why": why, "status": row["status"], "count": row["count"], "sample": some})
    if unknown := _unknown_ids(chosen):
        groups.append({"why": "not_found", "status": None, "count": len(unknown), "sample": unknown[:SAMPLE]})
    return groups


def _unknown_ids(chosen: Selection) -> list[str]:
    if chosen.ids is None:
        return []
    wanted = {given: as_id(given) for given in chosen.ids}
    known = set(Run.objects.filter(pk__in=[k for k in wanted.values() if k]).values_list("pk", flat=True))
    return [given for given, found in wanted.items() if found not in known]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """One bulk interrupt: `decide` says what it will do and blocks new starts, `carry_out` stops the runs."""

    chosen: Selection
    by: str
    reason: str
    block: bool = False
    bulk: str = field(default_factory=new_id)

    def decide(self) -> dict[str, Any]:
        """What will be done, and the block, in the caller's transaction. No run is touched yet. Raises BadSelection."""
        self.chosen.refuse_empty()
        eligible = _eligible(self.chosen).count()
        held = self._block() if self.block else None
        return {
            "bulk": self.bulk if eligible else None,
            "changed": bool(eligible or held),
            "reason": None if eligible else "nothing_to_stop",
            "eligible": eligible,
            "not_eligible": _left_out(self.chosen),
            "block": held,
        }

    def carry_out(self) -> None:
        """Stop them, each in a transaction of its own: the first one stops while the last one is being asked, and no
        run's log waits for another run. Looks afresh, after the block is in force, so no late start slips through.
        What is stopping already is signalled again, after the others."""
        fresh = list(_eligible(self.chosen).order_by("pk"))
        runs = fresh + list(_active(self.chosen).filter(_UNDER_WAY).order_by("pk"))
        known = {run.pk for run in runs}
        for run in runs:
            # Below another matching run: that one's command reaches it.
            if known.intersection(run.path.split("/")[:-1]):
                continue
            with suppress(inbox.RunFinished, inbox.NotFound):
                inbox.issue(
                    run_id=run.pk,
                    kind=CommandKind.INTERRUPT,
                    by=self.by,
                    scope=Scope.SUBTREE,
                    reason=self.reason,
                    bulk=self.bulk,
                )

    def _block(self) -> str:
        row = Block.objects.create(
            filter=self.chosen.as_json(), reason=self.reason, by=self.by, created_at=timezone.now()
        )
        return row.pk


# --- how far it has come ------------------------------------------------------------------------------------


def progress(bulk: str) -> dict[str, Any] | None:
    """Counts by state over every run that the bulk's commands reach, and what did not go as asked; None if unknown."""
    commands = list(Command.objects.filter(bulk=bulk).order_by("issued_at", "pk"))
    if not commands:
        return None
    lines = [_line(run, receipt) for run, receipt in _reached(commands)]
    failures = [line for line in lines if line["code"]]
    return {
        "id": bulk,
        "by": commands[0].by,
        "reason": commands[0].reason,
        "requested_at": commands[0].issued_at,
        "commands": len(commands),
        "total": len(lines),
        "counts": dict(Counter(line["state"] for line in lines)),
        "failures": failures[:MOST_FAILURES],
        "failed": len(failures),
        "finished": all(line["state"] in ("stopped", "finished") for line in lines),
    }


def _reached(commands: list[Command]) -> list[tuple[Run, Receipt | None]]:
    named = {run.pk: run for run in Run.objects.filter(pk__in=[command.run_id for command in commands])}
    since = {command.run_id: command.issued_at for command in commands}
    receipts = {r.run_id: r for r in Receipt.objects.filter(command_id__in=[command.pk for command in commands])}
    found = {pk: (run, receipts.get(pk)) for pk, run in named.items()}
    for below in Run.objects.filter(root__in={run.root for run in named.values()}).exclude(pk__in=named):
        above = next((pk for pk in reversed(below.path.split("/")[:-1]) if pk in named), None)
        if above and (below.finished_at is None or below.finished_at >= since[above]):
            found[below.pk] = (below, receipts.get(below.pk))
    return list(found.values())


def _line(run: Run, receipt: Receipt | None) -> dict[str, Any]:
    state, code = _state(run, receipt)
    return {"run": run.pk, "state": state, "code": code, "status": run.status}


def _state(run: Run, receipt: Receipt | None) -> tuple[str, str | None]:
    """`stopped` is claimed only for a run that the log says was interrupted; unverified stops are told as failures."""
    status = Status(run.status)
    if status is Status.INTERRUPTED:
        verified = (run.stopped or {}).get("verified", True)
        return "stopped", None if verified else "unverified"
    if status is Status.LOST:
        return "finished", "worker_lost"
    if status.final:
        return "finished", None
    if status is Status.STOPPING:
        return "stopping", None
    return (receipt.state if receipt else "requested"), receipt.code if receipt else None
