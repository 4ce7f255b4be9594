"""The stop as a state machine: requested, delivered, stopping, stopped, and how far the tree has come."""

from dataclasses import dataclass, field
from datetime import datetime

from django.conf import settings

from agents.commands import CommandKind, Scope
from agents.spec import Status
from agents.tools.processes import GRACE_S
from control.runs.models import Call, Command, Receipt, Run

SHOWN = 8


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One step of a stop that is still ahead: when it comes, what it does, and to what."""

    when: str
    what: str
    names: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Open:
    """What is under way below a run: streams, processes, other tools, sub-agents, and the parent that goes on."""

    streams: int = 0
    shells: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    children: list[Run] = field(default_factory=list)
    live: bool = False


def under_way(run: Run, family: list[Run]) -> Open:
    live = [other for other in family if run.id in other.path.split("/") and not Status(other.status).final]
    found = Open(live=bool(live), children=[other for other in live if other.id != run.id])
    if not live:
        return found
    opened = Call.objects.filter(
        run_id__in=[other.id for other in live], started_seq__isnull=False, completed_seq__isnull=True
    )
    for operation, name, label in opened.order_by("started_at").values_list("operation", "name", "label"):
        if operation == "chat":
            found.streams += 1
        elif name == "run_command":
            found.shells.append(label or name)
        elif operation == "execute_tool" and name != "delegate":
            # A delegation is counted as the sub-agent that it waits for.
            found.tools.append(label or name)
    return found


def cuts(found: Open) -> list[str]:
    """What an interrupt of this run would cut off now, in words."""
    if not found.live:
        return []
    words = [
        (found.streams, "cuts", "stream"),
        (len(found.shells), "kills", "process tree"),
        (len(found.tools), "ends", "tool call"),
        (len(found.children), "stops", "sub-agent"),
    ]
    told = [f"{verb} {many} {noun}{'' if many == 1 else 's'}" for many, verb, noun in words if many]
    return told or ["ends the run before its next step"]


def ladder(found: Open) -> list[Rung]:
    """What a stop does and when, before it is asked for; nothing for a run that has ended."""
    if not found.live:
        return []
    at_once = [
        _many(found.streams, "provider stream closes", "provider streams close"),
        _many(len(found.tools), "tool is cancelled", "tools are cancelled"),
        _many(len(found.children), "sub-agent stops as well", "sub-agents stop as well"),
        _many(len(found.shells), "process group gets TERM", "process groups get TERM"),
    ]
    first = ", ".join(filter(None, at_once)) or "the run ends before its next step"
    rungs = [Rung(when="at once", what=f"{first}; waits and retries end", names=(*found.tools, *found.shells)[:SHOWN])]
    if found.shells:
        text = "what is left of the groups gets KILL, also processes that left their group; then it is looked again"
        rungs.append(Rung(when=f"after {GRACE_S:g} s", what=text))
    text = "code in a thread that does not listen is left alone, named, and listed until it ends"
    rungs.append(Rung(when="at once", what=text) if found.tools else Rung(when="if need be", what=text))
    silent = f"after {settings.LEASE_SECONDS:g} s"
    text = "a worker that does not answer is fenced off, its processes are ended; if nobody can look: unverified"
    rungs.append(Rung(when=silent, what=text))
    return rungs


def stays(run: Run, family: list[Run]) -> list[str]:
    """What an interrupt of this run leaves running."""
    parent = next((other for other in family if other.id == run.parent), None)
    others = sum(1 for o in family if run.id not in o.path.split("/") and not Status(o.status).final)
    told = []
    if parent is not None and not Status(parent.status).final:
        told.append("its parent goes on and reads that this run was stopped")
    if others > (1 if told else 0):
        told.append(f"{others} other run{'' if others == 1 else 's'} of the family")
    told.append("what is done already: files, commits, requests that were answered")
    return told


def _many(count: int, one: str, several: str) -> str:
    return "" if not count else f"{count} {one if count == 1 else several}"
