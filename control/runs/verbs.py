"""When a verb would change nothing, and when it wakes a parked run; asked with the run's row locked."""

from dataclasses import dataclass
from decimal import Decimal

from agents.commands import CommandKind, CommandState
from agents.spec import Status
from control.runs.models import Command, Run
from control.runs.unheld import is_unheld


@dataclass(frozen=True, slots=True, kw_only=True)
class Unneeded:
    """The command that already does it, if one does, and the reason to tell."""

    reason: str
    command: Command | None = None


def unneeded(asked: Command, run: Run) -> Unneeded | None:
    """Why this command need not be issued; None if it must."""
    match CommandKind(asked.kind):
        case CommandKind.ANSWER:
            return _answer(asked, run)
        case CommandKind.PAUSE:
            if run.waiting_for == "pause" and _open(run, CommandKind.UNPAUSE) is None:
                return Unneeded(reason="already_paused")
            return _same_open(run, asked, CommandKind.UNPAUSE, "already_pausing")
        case CommandKind.UNPAUSE:
            if run.waiting_for not in ("pause", "quota") and _open(run, CommandKind.PAUSE) is None:
                return Unneeded(reason="not_paused")
            return _same_open(run, asked, CommandKind.PAUSE, "already_unpausing")
        case CommandKind.RAISE:
            return Unneeded(reason="not_higher") if _lowers(asked, run) else None
        case _:
            return None


def _lowers(asked: Command, run: Run) -> bool:
    """Whether a limit would be no higher than the one in force: a slip of the hand would end the run at once. A limit
    that nobody has set may be set by this."""
    limits = run.spec.get("limits", {})
    force = {name: Decimal(str(limit["value"])) for name, limit in limits.items() if limit}
    for other in Command.objects.filter(run_id=run.pk, kind=CommandKind.RAISE.value).order_by("id"):
        if other.open or other.state == CommandState.DONE.value:
            force.update(_limits(other))
    return any(name in force and value <= force[name] for name, value in _limits(asked).items())


def _limits(command: Command) -> dict[str, Decimal]:
    return {name: Decimal(str(value)) for name, value in command.args.get("limits", {}).items() if value is not None}


def _open(run: Run, kind: CommandKind) -> Command | None:
    return Command.objects.filter(run_id=run.pk, kind=kind.value, open=True).order_by("-id").first()


def _same_open(run: Run, asked: Command, opposite: CommandKind, reason: str) -> Unneeded | None:
    """The last word counts: an open command of the same kind does it, unless its opposite was asked for since."""
    same, other = _open(run, CommandKind(asked.kind)), _open(run, opposite)
    if same is None or (other is not None and other.pk > same.pk) or same.args != asked.args:
        return None
    return Unneeded(reason=reason, command=same)


def _answer(asked: Command, run: Run) -> Unneeded | None:
    """The first answer wins. `not_waiting` if the run does not wait for this call.

    A call that is waited for with an answer that was taken in already is asked for once more: that answer could not be
    used, or was used up by a worker that died.
    """
    call = str(asked.args.get("call", ""))
    waits = bool(call) and run.waiting_call == call
    for other in Command.objects.filter(run_id=run.pk, kind=CommandKind.ANSWER.value).order_by("id"):
        taken = other.open or (other.state == CommandState.DONE.value and not waits)
        if other.args.get("call") == call and taken:
            return Unneeded(reason="already_answered", command=other)
    if not waits:
        return Unneeded(reason="not_waiting")
    decides = "decision" in asked.args
    if run.waiting_for == "approval" and not decides:
        return Unneeded(reason="needs_decision")
    if run.waiting_for == "question" and decides:
        return Unneeded(reason="needs_text")
    return None


def wakes(asked: Command, run: Run) -> bool:
    """Whether a parked run goes back into the queue for this."""
    if run.status != Status.WAITING.value or not is_unheld(run):
        return False
    match CommandKind(asked.kind):
        case CommandKind.ANSWER:
            return run.waiting_for in ("question", "approval")
        case CommandKind.UNPAUSE:
            return run.waiting_for in ("pause", "quota")
        case _:
            return False
