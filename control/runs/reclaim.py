"""What becomes of a run whose worker is gone: interrupted if that was asked, ended if it was one try too many, else
queued again. And of runs that nobody took up."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Coalesce

from agents import kinds
from agents.commands import CommandKind, Scope
from agents.events import draft, stamp
from agents.ports import StopReport
from agents.spec import FINAL, Status
from control.runs import leases, line, log, publishing, unheld, verbs, waits
from control.runs.chores import chore
from control.runs.clock import database_now
from control.runs.models import Command, Run, Worker

_FINAL = [status.value for status in FINAL]
PUBLISH_AGAIN_S = 2.0
PUBLISH_MOST = 200
# How long a run waits for the one machine that has its workspace.
HOST_PATIENCE_S = 600.0


def give_up(run_id: str, epoch: int) -> None:
    """A worker whose lease has lapsed, and that has ended the run's tools, hands it on if nobody has taken it yet.

    No attempt is counted: the run has not cost its worker its life, the worker was cut off from the database.
    """
    run = Run.objects.filter(pk=run_id, epoch=epoch).exclude(status__in=_FINAL).first()
    if run is not None:
        reclaim(run, StopReport(), why="lease_lapsed", blameless=True)


def reclaim(run: Run, report: StopReport | None, *, why: str = "worker_lost", blameless: bool = False) -> None:
    """Take a run from a worker that is gone. `report` tells how its processes were ended; None: nobody can know.

    `blameless`: this was none of the attempts that a run has.
    """
    command = _open_interrupt(run)
    if command is not None:
        _interrupted(run, report, by=command.by, reason=command.reason or "", command=command)
    elif _parent_ended(run):
        _interrupted(run, report, by="parent", reason="The parent run has ended.")
    elif run.attempts >= settings.MAX_ATTEMPTS and not blameless:
        last_seen = Worker.objects.filter(pk=run.worker).values_list("seen_at", flat=True).first()
        body = kinds.RunLost(
            worker=run.worker, last_seen=None if last_seen is None else stamp(last_seen), why="attempts"
        )
        log.append_as_owner(run.pk, expect=leases.HELD, epoch=run.epoch, body=body)
    elif leases.requeue(run.pk, run.epoch, why, count_attempt=not blameless) and not _attached(run):
        publishing.publish_later(run.pk)


def _attached(run: Run) -> bool:
    return run.parent is not None and not run.detached


def _open_interrupt(run: Run) -> Command | None:
    """An interrupt that reaches this run and that its worker did not live to obey."""
    asked = Command.objects.filter(open=True, kind=CommandKind.INTERRUPT.value, run_id__in=run.path.split("/"))
    return next((c for c in asked.order_by("id") if c.run_id == run.pk or c.scope == Scope.SUBTREE.value), None)


def _parent_ended(run: Run) -> bool:
    return _attached(run) and Run.objects.filter(pk=run.parent, status__in=_FINAL).exists()


def _interrupted(run: Run, report: StopReport | None, *, by: str, reason: str, command: Command | None = None) -> None:
    now = database_now()
    stopped: dict[str, Any] = {
        "sockets": 0,
        "processes": report.processes if report else 0,
        "children": 0,
        "abandoned": [],
        "seconds": (now - command.issued_at).total_seconds() if command else 0.0,
        "verified": report is not None and not report.left,
    }
    if report is None:
        stopped["why"] = "the worker could not be reached; it may not write any more"
    elif report.left:
        stopped["why"] = f"{report.left} processes outlived SIGKILL"
    before = []
    if command is not None:
        received = kinds.CommandReceived(
            command=command.pk, command_kind=command.kind, by=command.by, reason=command.reason
        )
        before = [draft(received, at=now)]
    body = kinds.RunInterrupted(command=command.pk if command else None, by=by, reason=reason, stopped=stopped)
    log.append_as_owner(run.pk, expect=leases.HELD, epoch=run.epoch, before=before, body=body)


# --- what nobody took up -------------------------------------------------------------------------------------------


@chore("orphans", every_s=1.0, urgent=True)
def end_orphans() -> None:
    """Attached children that nobody holds and whose parent has ended: nobody will ever adopt them."""
    ended = Run.objects.filter(pk=OuterRef("parent"), status__in=_FINAL)
    resting = Run.objects.filter(
        Exists(ended),
        status__in=[Status.QUEUED.value, Status.WAITING.value],
        lease_until=None,
        detached=False,
        parent__isnull=False,
    )
    for run in resting:
        _interrupted(run, StopReport(), by="parent", reason="The parent run has ended.")


@chore("publish", every_s=1.0, urgent=True)
def publish_unclaimed() -> None:
    """Tell the workers again of queued runs that nobody claimed: messages may be lost, rows are not."""
    now = database_now()
    told = Coalesce("published_at", "created_at")
    free = Q(parent=None) | Q(detached=True)
    waiting = Run.objects.alias(told=told).filter(free, status=Status.QUEUED.value, lease_until=None)
    late = waiting.filter(told__lt=now - timedelta(seconds=PUBLISH_AGAIN_S)).order_by("-priority", "created_at")
    # Where nobody would take a further copy, copies would pile up: no worker there, all of them full, a limit reached.
    standing = line.standing()
    room = sum(standing.room.values())
    near = (
        Q() if connection.vendor == "sqlite" else Q(host=None) | Q(host__in=[h for h, n in standing.room.items() if n])
    )
    may = late.filter(near).exclude(agent__in=[name for name in standing.most if standing.full(name)])
    found = [] if standing.full("") else list(may.values_list("pk", flat=True)[: min(room, PUBLISH_MOST)])
    with transaction.atomic():
        # Locked in order of id, as everybody locks runs. Whoever has one of them now claims or ends it.
        free_now = Run.objects.select_for_update(no_key=True, skip_locked=True).filter(pk__in=found).order_by("id")
        told_now = set(free_now.values_list("pk", flat=True))
        Run.objects.filter(pk__in=told_now).update(published_at=now)
    for run_id in found:
        if run_id in told_now:
            publishing.publish_later(run_id)


@chore("wake-parked", every_s=5.0)
def wake_parked() -> None:
    """Parked runs for which an answer lies there; whoever gave it should have woken them."""
    parked = Run.objects.filter(status=Status.WAITING.value, lease_until=None)
    asked = Command.objects.filter(run_id=OuterRef("pk"), open=True)
    for run in parked.filter(Exists(asked)):
        commands = Command.objects.filter(run_id=run.pk, open=True).order_by("id")
        command = next((c for c in commands if verbs.wakes(c, run)), None)
        if command is not None:
            unheld.requeue(run, why=f"{command.kind} by {command.by}")


@chore("wake-rested", every_s=5.0)
def wake_rested() -> None:
    """Parked runs that waited for quota until a time that has come."""
    now = stamp(database_now())
    for run in Run.objects.filter(status=Status.WAITING.value, lease_until=None, waiting_for="quota"):
        waiting = waits.last(run.pk)
        if waiting is not None and waiting.until is not None and waiting.until <= now:
            unheld.requeue(run, why="quota may be back")


@chore("unreachable", every_s=30.0)
def end_unreachable() -> None:
    """Runs whose workspace is on a machine that has no worker any more."""
    now = database_now()
    alive = Worker.objects.filter(kind="worker", gone_at=None).values_list("host", flat=True)
    since = now - timedelta(seconds=HOST_PATIENCE_S)
    stuck = Run.objects.filter(status=Status.QUEUED.value, lease_until=None, host__isnull=False)
    for run in stuck.filter(last_activity_at__lt=since).exclude(host__in=set(alive)):
        error = {
            "reason": "workspace_unreachable",
            "message": f"The workspace is on {run.host}, which has had no worker for ten minutes. Start one there.",
        }
        log.append_as_owner(
            run.pk, expect=(Status.QUEUED,), epoch=run.epoch, unheld=True, body=kinds.RunFailedEvent(error=error)
        )
