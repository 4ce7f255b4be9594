"""The processes that judge: started by a desk while a backtest is open, one per core, below everything else in rank."""

import logging
import os
import subprocess
import sys
from datetime import timedelta

from django.conf import settings
from django.db.models import Q

from control.incidents import tasks
from control.incidents.backtest import work
from control.incidents.models_backtest import Backtest, BacktestPiece
from control.runs.chores import chore, do_soon
from control.runs.clock import database_now

logger = logging.getLogger(__name__)

# Judging is arithmetic: more processes than cores gain nothing.
MOST = 4
# Pieces handed to the broker ahead of those that are judged: few, so that a cancelled backtest leaves nothing behind.
AHEAD = 12
AGAIN = timedelta(seconds=60)

_crew: "list[subprocess.Popen[bytes]]" = []


@chore("backtests", every_s=0.5, apart=True)
def go_on() -> None:
    """Hand out what is due, and close what is judged."""
    for made in Backtest.objects.filter(state=Backtest.State.RUNNING).order_by("created_at"):
        work.close(made)
        if publish(made):
            do_soon("backtests")


def publish(made: Backtest) -> int:
    """Hand the next pieces to the broker; how many."""
    now = database_now()
    out = made.pieces.filter(
        Q(state=BacktestPiece.State.TAKEN, until__gt=now)
        | Q(state=BacktestPiece.State.DUE, published_at__gt=now - AGAIN)
    ).count()
    waits = Q(state=BacktestPiece.State.DUE) & (Q(published_at=None) | Q(published_at__lte=now - AGAIN))
    dead = Q(state=BacktestPiece.State.TAKEN, until__lte=now)
    due = made.pieces.filter(waits | dead, attempts__lt=work.MOST_ATTEMPTS).order_by("number")
    ids = list(due.values_list("pk", flat=True)[: max(AHEAD - out, 0)])
    for piece in ids:
        tasks.judge_piece.apply_async((piece,), retry=False)
    BacktestPiece.objects.filter(pk__in=ids).update(published_at=now)
    return len(ids)


@chore("backtest-crew", every_s=1.0, local=True)
def man() -> None:
    """Have processes on this machine while there is something to judge; they end by themselves when there is not."""
    _crew[:] = [one for one in _crew if one.poll() is None]
    if not Backtest.objects.filter(state=Backtest.State.RUNNING).exists():
        return
    while len(_crew) < min(os.cpu_count() or 1, MOST):
        _crew.append(
            subprocess.Popen(
                [sys.executable, str(settings.BASE_DIR / "manage.py"), "judge", "--with-parent"],
                cwd=settings.BASE_DIR,
                # Its end of a pipe that nobody writes to: when this desk is gone, it notices.
                stdin=subprocess.PIPE,
                start_new_session=True,
            )
        )
        logger.info("started a process that judges (%d)", _crew[-1].pid)
