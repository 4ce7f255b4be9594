"""The messages of an ended run up to one of its turns, folded from its log as the loop folds it."""

from collections.abc import Iterator
from datetime import datetime

from agents import kinds
from agents.engine.transcript import OpenCall, Transcript
from agents.events import Event, decode
from agents.spec import CallStatus
from control.runs import log
from control.runs.forks import History
from control.runs.models import Run
from control.runs.refusals import StartRefused

_PAGE = 2000
UNKNOWN = "Whether this took effect is unknown: the run that asked for it ended while it was running."
NOT_RUN = "Not run: the run that asked for it ended before its turn."


def upto(old: Run, turn: int | None) -> History:
    """Raises StartRefused: no_such_turn."""
    transcript = Transcript()
    seq, at, more = 0, old.created_at, False
    for event in _events(old.pk):
        if turn is not None and event.turn is not None and event.turn > turn:
            more = True
            break
        transcript.apply(event.data, turn=event.turn, call=event.call, at=event.at, seq=event.seq)
        seq, at = event.seq, event.at
    if turn is not None and turn > transcript.turn:
        text = f"The run has {transcript.turn} turns, so it cannot be forked from turn {turn}."
        raise StartRefused("no_such_turn", text, detail={"turns": transcript.turn})
    _answer_all(transcript, at)
    return History(messages=transcript.messages, turn=transcript.turn, seq=seq, at=at, last=not more)


def _events(run: str) -> Iterator[Event]:
    after = 0
    while page := log.read_after(run, after, _PAGE):
        for body in page:
            event = decode(body)
            after = event.seq
            yield event


def _answer_all(transcript: Transcript, at: datetime) -> None:
    """Of a run that was lost in the middle: every call gets its truthful answer, so that the history is valid."""
    for waiting in transcript.unanswered():
        transcript.apply(_answer(waiting), turn=transcript.turn, call=waiting.asked.call, at=at)


def _answer(waiting: OpenCall) -> kinds.CallCompleted:
    status = CallStatus.EFFECT_UNKNOWN if waiting.started else CallStatus.NOT_STARTED
    return kinds.CallCompleted(
        operation="execute_tool",
        name=waiting.asked.name,
        status=status.value,
        result=UNKNOWN if waiting.started else NOT_RUN,
    )
