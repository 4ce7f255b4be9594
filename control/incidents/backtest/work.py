"""Judging one piece: claimed, read, judged and written, all of it in whichever process gets there first."""

import logging

from django.db import connection, transaction
from django.db.models import Q

from agents.ids import new_id
from agents.policy.policies import Policy, policy_from
from agents.spec import Status
from control.incidents.backtest import figures
from control.incidents.backtest.outcome import Outcome, outcomes
from control.incidents.backtest.reading import stories
from control.incidents.models_backtest import Backtest, BacktestPiece, BacktestResult
from control.runs.clock import database_now
from control.runs.dbtime import ahead_sql, now_sql
from control.runs.models import Run
from control.runs.outages import AWAY

logger = logging.getLogger(__name__)

# A piece takes seconds. After this its claim is taken to be dead, and after so many claims the piece is given up.
HOLD_S = 120.0
MOST_ATTEMPTS = 3


def judge(piece_id: str, owner: str | None = None) -> bool:
    """Judge a piece unless somebody else has it; whether it was done here. `owner` names the process."""
    owner = owner or new_id()
    if not _claimed(piece_id, owner):
        return False
    piece = BacktestPiece.objects.select_related("backtest").get(pk=piece_id)
    try:
        return _judged(piece, owner)
    except AWAY:
        raise
    except Exception as error:
        # One odd log must not hold up the others: its piece is told as failed, with the reason.
        logger.exception("piece %d of backtest %s failed", piece.number, piece.backtest_id)
        mine = BacktestPiece.objects.filter(pk=piece.pk, owner=owner, state=BacktestPiece.State.TAKEN)
        mine.update(state=BacktestPiece.State.FAILED, why=f"{type(error).__name__}: {error}"[:300])
        close(piece.backtest)
        return False


def _claimed(piece_id: str, owner: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE incidents_backtestpiece SET state = 'taken', owner = %s, attempts = attempts + 1, "
            f"until = {ahead_sql(connection)} WHERE id = %s AND attempts < %s "
            f"AND (state = 'due' OR (state = 'taken' AND until < {now_sql(connection)})) "
            "AND backtest_id IN (SELECT id FROM incidents_backtest WHERE state = 'running')",
            [owner, HOLD_S, piece_id, MOST_ATTEMPTS],
        )
        return bool(cursor.rowcount)


def _judged(piece: BacktestPiece, owner: str) -> bool:
    made = piece.backtest
    Backtest.objects.filter(pk=made.pk, started_at=None).update(started_at=database_now())
    policies = [policy_from(one["body"], one["name"]) for one in made.policies]
    sums = [figures.empty() for _ in policies]
    results = _results(piece, policies, sums)
    with transaction.atomic():
        mine = BacktestPiece.objects.filter(pk=piece.pk, owner=owner, state=BacktestPiece.State.TAKEN)
        if not mine.update(state=BacktestPiece.State.DONE, figures=sums):
            return False
        BacktestResult.objects.bulk_create(results, batch_size=500)
    close(made)
    return True


def _results(piece: BacktestPiece, policies: list[Policy], sums: list[dict[str, object]]) -> list[BacktestResult]:
    rows = {row[0]: row for row in Run.objects.filter(pk__in=piece.runs).values_list("pk", "agent", "status", "steps")}
    results: list[BacktestResult] = []
    for run, story in stories(piece.runs):
        if run not in rows:
            continue  # retention was faster
        _, agent, status, steps = rows[run]
        healthy = status == Status.COMPLETED.value
        for place, outcome in enumerate(outcomes(story, policies)):
            figures.take(sums[place], outcome, healthy=healthy)
            if outcome is not None:
                results.append(
                    BacktestResult(
                        backtest_id=piece.backtest_id,
                        place=place,
                        run_id=run,
                        agent=agent,
                        status=status,
                        healthy=healthy,
                        steps=steps,
                        **_columns(outcome),
                    )
                )
    return results


def _columns(outcome: Outcome) -> dict[str, object]:
    stop = outcome.stop
    return {
        "outcome": outcome.outcome,
        "rule": outcome.rule[:60],
        "why": outcome.why,
        "observed": outcome.observed,
        "blocked": outcome.blocked,
        "stubbed": outcome.stubbed,
        "first_block_step": outcome.first_block_step,
        "stop_step": stop.step if stop else None,
        "stop_turn": stop.turn if stop else None,
        "saved_calls": outcome.saved_calls,
        "saved_model_calls": outcome.saved_model_calls,
        "saved_tokens": outcome.saved_tokens,
        "saved_usd": outcome.saved_usd,
    }


def give_back(owner: str) -> None:
    """For a process that ends: what it has in hand is due again at once."""
    mine = BacktestPiece.objects.filter(owner=owner, state=BacktestPiece.State.TAKEN)
    mine.update(state=BacktestPiece.State.DUE, owner="", until=None, published_at=None)


def close(made: Backtest) -> None:
    """End the backtest once none of its pieces is open; whoever sees that first writes the sums."""
    given_up = Q(state=BacktestPiece.State.TAKEN, attempts__gte=MOST_ATTEMPTS, until__lt=database_now())
    made.pieces.filter(given_up).update(state=BacktestPiece.State.FAILED, why="its process died again and again")
    if made.pieces.filter(state__in=[BacktestPiece.State.DUE, BacktestPiece.State.TAKEN]).exists():
        return
    done = made.pieces.filter(state=BacktestPiece.State.DONE).values_list("figures", flat=True)
    parts = [part for part in done if part is not None]
    Backtest.objects.filter(pk=made.pk, state=Backtest.State.RUNNING).update(
        state=Backtest.State.DONE if parts else Backtest.State.FAILED,
        finished_at=database_now(),
        figures=figures.added(parts, len(made.policies)),
    )
