"""The sweeper: outside the workers, it ends or requeues what a dead or frozen worker left, and what nobody took up.

On its own machine it first makes sure that the worker is dead and that nothing which carries the worker's mark lives
on; only then are the runs reclaimed. Of other machines it knows the lease alone: it lapses, a grace passes, the epoch
moves on.
"""

import logging
import os
import signal
import time
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Length

from agents.ports import StopReport
from agents.spec import ACTIVE
from agents.tools.processes import WORKER_MARK, end_marked
from control.runs import roster, sessions
from control.runs.chores import chore
from control.runs.clock import database_now
from control.runs.models import Run, Worker
from control.runs.reclaim import reclaim

logger = logging.getLogger(__name__)

KILL_WAIT_S = 2.0
# Workers of other machines are struck off the roster after this many leases without a sign.
GONE_AFTER_LEASES = 4

# Since when this process has seen a worker silent. After an outage of the database every worker looks silent for a
# moment; only one that stays so while the database answers is frozen.
_silent_since: dict[str, float] = {}


def sweep() -> None:
    """Everything once: this machine, then the others."""
    sweep_here()
    sweep_elsewhere()


@chore("sweep", every_s=0.5, local=True, urgent=True)
def sweep_here() -> None:
    """Workers of this machine: reclaim from the dead at once, and from the frozen when their lease is over."""
    now = database_now()
    for worker in roster.here():
        if not roster.is_alive(worker):
            _bury(worker)
        elif worker.kind == "worker" and _is_frozen(worker, now):
            logger.warning("worker %s (process %d) is frozen past its lease; ending it", worker.pk, worker.pid)
            if _kill(worker):
                _bury(worker)


def _is_frozen(worker: Worker, now: datetime) -> bool:
    if now - worker.seen_at <= timedelta(seconds=settings.LEASE_SECONDS):
        _silent_since.pop(worker.pk, None)
        return False
    since = _silent_since.setdefault(worker.pk, time.monotonic())
    if sessions.back_for_s() < settings.LEASE_SECONDS:
        return False
    return time.monotonic() - since >= settings.LEASE_RENEW_SECONDS / 2


def _kill(worker: Worker) -> bool:
    """SIGKILL that very process and wait until it is gone; never ourselves, never a later process of its number."""
    if worker.pid == os.getpid():
        return False
    try:
        handle = os.pidfd_open(worker.pid)
        try:
            if roster.is_alive(worker):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)
    except ProcessLookupError:
        return True
    except AttributeError:  # no pidfd on this system
        if roster.is_alive(worker):
            os.kill(worker.pid, signal.SIGKILL)
    except PermissionError:
        logger.error("worker %s runs as another user; its runs wait until a sweeper of that user ends it", worker.pk)
        return False
    give_up_at = time.monotonic() + KILL_WAIT_S
    while roster.is_alive(worker):
        if time.monotonic() > give_up_at:
            return False
        time.sleep(0.01)
    return True


def _bury(worker: Worker) -> None:
    """The process is dead: end its tools, take its runs, strike it off."""
    report = end_marked(WORKER_MARK, worker.pk) if worker.kind == "worker" else StopReport()
    _reclaim_all(Run.objects.filter(worker=worker.pk, lease_until__isnull=False), report)
    roster.leave(worker.pk)
    _silent_since.pop(worker.pk, None)


def _reclaim_all(runs: "Iterable[Run]", report: StopReport | None) -> None:
    # Children first: when their parent goes on elsewhere they are there to be adopted.
    for run in sorted(runs, key=lambda run: -len(run.path)):
        try:
            reclaim(run, report)
        except Exception:
            logger.exception("run %s could not be reclaimed; trying again", run.pk)


@chore("sweep-elsewhere", every_s=1.0, urgent=True)
def sweep_elsewhere() -> None:
    """Leases that lapsed and whose worker is not to be judged from here: after a grace, fence it off.

    After an outage of the database all leases have lapsed and all workers are busy to hand their runs back: they get a
    lease's time for it.
    """
    now = database_now()
    if sessions.back_for_s() < settings.LEASE_SECONDS:
        return
    grace = timedelta(seconds=settings.LEASE_RENEW_SECONDS)
    active = [status.value for status in ACTIVE]
    lapsed = Run.objects.filter(status__in=active, lease_until__lt=now - grace).order_by(Length("path").desc())
    here = set(roster.here().values_list("pk", flat=True))
    # A worker here that is alive and well hands its lapsed runs back by itself; give it another lease to do so.
    late = now - grace - timedelta(seconds=settings.LEASE_SECONDS)
    runs = [run for run in lapsed if run.worker not in here or (run.lease_until and run.lease_until < late)]
    for worker in {run.worker for run in runs if run.worker}:
        # It may have frozen with these very rows locked.
        sessions.end("worker", worker)
    _reclaim_all(runs, None)
    silent = now - timedelta(seconds=settings.LEASE_SECONDS * GONE_AFTER_LEASES)
    Worker.objects.filter(Q(gone_at=None), Q(seen_at__lt=silent)).exclude(pk__in=here).update(gone_at=now)
