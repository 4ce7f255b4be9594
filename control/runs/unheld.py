"""Runs that nobody holds: queued ones and parked ones. They are ended and requeued here, without a worker."""

from collections.abc import Sequence
from datetime import datetime

from django.db.models import F

from agents import kinds
from agents.events import Draft, decode, draft
from agents.spec import CallStatus, Status
from control.runs import hints, log, publishing
from control.runs.clock import database_now
from control.runs.models import Call, Command, Event, Run

_RESTING = (Status.QUEUED, Status.WAITING)


def is_unheld(run: Run) -> bool:
    """No lease at all. One that has lapsed is the sweeper's: its worker's processes must be ended first."""
    return run.lease_until is None and run.status in (Status.QUEUED.value, Status.WAITING.value)


def interrupt(run: Run, command: Command) -> bool:
    """End an unheld run at once: nothing of it runs, so nothing is left to stop. False if it was claimed meanwhile."""
    now = database_now()
    *before, last = _ending(run, command, now)
    return log.append_as_owner(run.pk, expect=_RESTING, epoch=run.epoch, unheld=True, before=before, body=last.body)


def interrupt_many(asked: Sequence[tuple[Run, Command]]) -> None:
    """The same for many runs whose rows the caller has locked, as one append."""
    if not asked:
        return
    now = database_now()
    Run.objects.filter(pk__in=[run.pk for run, _ in asked]).update(epoch=F("epoch") + 1, lease_until=None)
    batches = [
        log.Batch(run=run.pk, root=run.root, epoch=run.epoch + 1, drafts=_ending(run, command, now))
        for run, command in asked
    ]
    for batch, done in zip(batches, log.write(batches), strict=True):
        if done.fenced:
            raise RuntimeError(f"run {batch.run} took no event at its own epoch {batch.epoch}")
        hints.announce_later(batch.root, batch.epoch, done.run, done.first, done.last, done.bodies)


def _ending(run: Run, command: Command, now: datetime) -> list[Draft]:
    """The last events of a run that nobody holds."""
    received = kinds.CommandReceived(
        command=command.pk, command_kind=command.kind, by=command.by, reason=command.reason
    )
    stopped = {"sockets": 0, "processes": 0, "children": 0, "abandoned": [], "seconds": 0.0, "verified": True}
    body = kinds.RunInterrupted(command=command.pk, by=command.by, reason=command.reason or "", stopped=stopped)
    calls = [*_stopped_calls(run, now), *_unstarted_calls(run, now)] if run.last_seq > 1 else []
    return [draft(received, at=now), *calls, draft(body, at=now)]


def _stopped_calls(run: Run, now: datetime) -> list[Draft]:
    """A truthful result for every call that was open when the run was parked."""
    return [
        draft(
            kinds.CallCompleted(
                operation=call.operation,
                name=call.name,
                status=CallStatus.STOPPED.value,
                result="Stopped: the run was interrupted while it waited.",
                cost_source="none",
            ),
            at=now,
            turn=call.turn,
            call=call.id,
        )
        for call in Call.objects.filter(run_id=run.pk, status=None).order_by("started_seq")
    ]


def _unstarted_calls(run: Run, now: datetime) -> list[Draft]:
    """The same for every call of the latest answer that had not begun: one that waited for approval, and those behind
    it."""
    rows = Event.objects.filter(run_id=run.pk, kind="call.completed").order_by("-seq").values_list("body", flat=True)
    answered = set(Call.objects.filter(run_id=run.pk).values_list("id", flat=True))
    for body in rows.iterator():
        data = decode(body).data
        if isinstance(data, kinds.CallCompleted) and data.operation == "chat":
            return [
                draft(
                    kinds.CallCompleted(
                        operation="execute_tool",
                        name=str(asked["name"]),
                        args=str(asked["args"]),
                        status=CallStatus.NOT_STARTED.value,
                        result="Not started: the run was interrupted while it waited.",
                    ),
                    at=now,
                    turn=run.turns or None,
                    call=str(asked["call"]),
                )
                for asked in data.tool_calls or ()
                if asked["call"] not in answered
            ]
    return []


def requeue(run: Run, *, why: str) -> bool:
    """Put a parked run back into the queue. Its attempts start anew: waiting for a person is no failure."""
    done = log.append_as_owner(
        run.pk,
        expect=(Status.WAITING,),
        epoch=run.epoch,
        unheld=True,
        body=kinds.RunRequeued(epoch=run.epoch + 1, why=why),
        changes={"attempts": 0, "published_at": database_now()},
    )
    if done:
        publishing.publish_later(run.pk)
    return done
