"""The stop as a state machine: requested, delivered, stopping, stopped, and how far the tree has come."""

from dataclasses import dataclass
from datetime import datetime

from agents.commands import CommandKind, Scope
from agents.spec import Status
from control.runs.models import Call, Command, Receipt, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step; `at` is None until the log says it happened, `after` are seconds since the request."""

    word: str
    at: datetime | None
    after: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """One interrupt as it has come to a run and to the others it reaches."""

    command: Command
    steps: list[Step]
    reached: int
    stopped: int
    seconds: float | None
    verified: bool | None
    why: str
    refused: str
    # Of all the runs that ended, as their own reports say.
    sockets: int
    processes: int


def stop_of(run: Run, family: list[Run]) -> Stop | None:
    """The last interrupt that names this run or, with its whole subtree, one of its ancestors."""
    above = run.path.split("/")
    command = None
    for found in Command.objects.filter(run_id__in=above, kind=CommandKind.INTERRUPT.value).order_by("-issued_at")[:8]:
        if found.run_id == run.id or found.scope == Scope.SUBTREE.value:
            command = found
            break
    if command is None:
        return None
    receipts = {receipt.run_id: receipt for receipt in Receipt.objects.filter(command_id=command.id)}
    mine = receipts.get(run.id)
    subtree = [other for other in family if command.run_id in other.path.split("/")]
    if command.scope != Scope.SUBTREE.value:
        subtree = [other for other in subtree if other.id == command.run_id]
    reached = [other for other in subtree if _was_reached(other, command, receipts)]
    ended = [other for other in reached if Status(other.status).final]
    whole = len(ended) == len(reached) and bool(reached)
    seconds = None
    if whole:
        last = max((other.finished_at for other in ended if other.finished_at), default=None)
        seconds = max(0.0, (last - command.issued_at).total_seconds()) if last else None
    proofs = [other.stopped for other in ended if isinstance(other.stopped, dict)]
    verified = all(bool(proof.get("verified")) for proof in proofs) if whole and proofs else None
    return Stop(
        command=command,
        steps=_steps(run, command, mine),
        reached=len(reached),
        stopped=len(ended),
        seconds=seconds,
        verified=verified,
        why="; ".join(str(proof["why"]) for proof in proofs if proof.get("why")),
        refused=(mine.code or "refused") if mine and mine.state == "refused" else "",
        sockets=sum(int(proof.get("sockets") or 0) for proof in proofs),
        processes=sum(int(proof.get("processes") or 0) for proof in proofs),
    )


def _was_reached(run: Run, command: Command, receipts: dict[str, Receipt]) -> bool:
    """Runs that were alive when the interrupt came; what had ended before is not counted as stopped by it."""
    return run.id in receipts or run.finished_at is None or run.finished_at >= command.issued_at


def _steps(run: Run, command: Command, mine: Receipt | None) -> list[Step]:
    ended = run.finished_at if run.finished_at and run.finished_at >= command.issued_at else None
    times = [
        ("requested", command.issued_at),
        ("delivered", mine.delivered_at if mine else None),
        ("stopping", mine.stopping_at if mine else None),
        ("stopped", ended),
    ]
    return [
        Step(word=word, at=at, after=max(0.0, (at - command.issued_at).total_seconds()) if at else None)
        for word, at in times
    ]


def cuts(run: Run, family: list[Run]) -> list[str]:
    """What an interrupt of this run would cut off now, in words."""
    live = [other for other in family if run.id in other.path.split("/") and not Status(other.status).final]
    if not live:
        return []
    opened = Call.objects.filter(
        run_id__in=[other.id for other in live], started_seq__isnull=False, completed_seq__isnull=True
    ).values_list("operation", "name")
    streams = sum(1 for operation, _ in opened if operation == "chat")
    tools = [name for operation, name in opened if operation == "execute_tool"]
    shells = tools.count("run_command")
    # A delegation is counted as the sub-agent that it waits for.
    others = len(tools) - shells - tools.count("delegate")
    children = len([other for other in live if other.id != run.id])
    words = [
        (streams, "cuts", "stream"),
        (shells, "kills", "process tree"),
        (others, "ends", "tool call"),
        (children, "stops", "sub-agent"),
    ]
    told = [f"{verb} {many} {noun}{'' if many == 1 else 's'}" for many, verb, noun in words if many]
    return told or ["ends the run before its next step"]
