"""The ends of a run, and the one place where a run is brought to its end."""

from dataclasses import dataclass
from typing import Any

from agents import kinds
from agents.engine.control import RunControl, StopRequest
from agents.engine.journal import Journal
from agents.engine.judgement import told
from agents.errors import LoopIncident, RunFailed
from agents.policy.redaction import make_safe
from agents.spec import CallStatus, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    final: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhausted:
    final: str
    final_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    request: StopRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Tripped:
    """`final`: the model's own last word, if it had one."""

    incident: LoopIncident
    final: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    reason: str
    message: str


Outcome = Completed | Exhausted | Interrupted | Tripped | Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What `drive` returns. `how`: `final`, or `parked | drained | fenced` when the run goes on elsewhere or later."""

    how: str
    status: Status | None = None
    final: str = ""
    stopped: dict[str, Any] | None = None


async def finish(outcome: Outcome, journal: Journal, control: RunControl, seconds: float) -> Ended:
    """Answer what is unanswered, refuse notes that came too late, write the one final event, wait for the disk."""
    close_open_calls(journal)
    refuse_notes(journal, control, "no_turn_left" if isinstance(outcome, Exhausted) else "run_finished")
    turn = journal.transcript.turn or None
    match outcome:
        case Completed(final=final):
            ended = Ended(how="final", status=Status.COMPLETED, final=final)
            body: kinds.Body = kinds.RunCompleted(final=final)
        case Exhausted(final=final, final_by=final_by):
            ended = Ended(how="final", status=Status.EXHAUSTED, final=final)
            body = kinds.RunExhausted(limit="max_turns", final=final, final_by=final_by)
        case Interrupted(request=request):
            stopped = control.tally.report(seconds)
            ended = Ended(how="final", status=Status.INTERRUPTED, stopped=stopped)
            body = kinds.RunInterrupted(
                command=request.command, by=request.by, reason=make_safe(request.reason).text, stopped=stopped
            )
        case Tripped(incident=incident, final=last):
            ended = Ended(how="final", status=Status.TRIPPED, final=last or incident.verdict.explanation)
            body = _tripped(incident, last, journal)
        case Failed(reason=reason, message=message):
            ended = Ended(how="final", status=Status.FAILED, final=message)
            body = kinds.RunFailedEvent(error={"reason": reason, "message": make_safe(message).text})
    await journal.write(body, turn=turn)
    return ended


def _tripped(incident: LoopIncident, final: str | None, journal: Journal) -> kinds.RunTripped:
    rule, transcript = incident.verdict.rule, journal.transcript
    return kinds.RunTripped(
        fuse=rule if incident.fuse else None,
        rule=None if incident.fuse else rule,
        step=transcript.steps,
        verdict=told(incident.verdict, transcript.guarded.evidence(incident.verdict)),
        final=final,
    )


def close_open_calls(journal: Journal) -> None:
    """Give every call without an answer a truthful one, so that the history stays valid and the page shows no ghost."""
    transcript = journal.transcript
    turn = transcript.turn or None
    for call, chat in list(transcript.open_chats.items()):
        journal.write(
            kinds.CallCompleted(
                operation="chat", name=chat.name, status=CallStatus.STOPPED.value, cost_source="unknown"
            ),
            turn=turn,
            call=call,
        )
    for waiting in transcript.unanswered():
        status = CallStatus.EFFECT_UNKNOWN if waiting.started else CallStatus.NOT_STARTED
        text = "Started, outcome unknown." if waiting.started else "Not started: the run was stopped before its turn."
        journal.write(
            kinds.CallCompleted(
                operation="execute_tool",
                name=waiting.asked.name,
                args=waiting.asked.args,
                status=status.value,
                result=text,
            ),
            turn=turn,
            call=waiting.asked.call,
        )


def refuse_notes(journal: Journal, control: RunControl, code: str) -> None:
    for note in control.take_notes():
        journal.write(kinds.SteerRefused(command=note.id, code=code))


def failed(error: RunFailed) -> Failed:
    return Failed(reason=error.kind, message=error.message)
