"""Reading what came out of a backtest: it as one object, and the runs that a policy would have touched."""

from typing import Any

from control.incidents.backtest import asking
from control.incidents.backtest.figures import WORDS
from control.incidents.models_backtest import Backtest, BacktestResult

PAGE = 100
COLUMNS = (
    "run_id",
    "agent",
    "status",
    "healthy",
    "outcome",
    "rule",
    "why",
    "observed",
    "blocked",
    "stubbed",
    "first_block_step",
    "stop_step",
    "stop_turn",
    "steps",
    "saved_calls",
    "saved_model_calls",
    "saved_tokens",
    "saved_usd",
)


def told(made: Backtest) -> dict[str, Any]:
    """The question, how far it is, and the figures, each policy's beside its name."""
    how_far = asking.progress(made)
    sums = how_far.pop("figures")
    named = [{name: policy.get(name) for name in ("name", "version")} for policy in made.policies]
    return {
        "id": made.pk,
        "state": made.state,
        "filter": made.filter,
        "by": made.by,
        "created_at": made.created_at,
        "started_at": made.started_at,
        "finished_at": made.finished_at,
        "cancelled_by": made.cancelled_by or None,
        "total": made.total,
        "left_out": made.left_out,
        **how_far,
        "policies": [one | part for one, part in zip(named, sums, strict=True)],
    }


def runs(
    made: Backtest, *, place: int = 0, outcome: str | None = None, healthy: bool | None = None, after: str = ""
) -> tuple[list[dict[str, Any]], str | None]:
    """A page of the runs that the policy at `place` would have touched, by id; and where the next one goes on."""
    found = BacktestResult.objects.filter(backtest=made, place=place, run_id__gt=after)
    if outcome in WORDS:
        found = found.filter(outcome=outcome)
    if healthy is not None:
        found = found.filter(healthy=healthy)
    rows = list(found.order_by("run_id").values(*COLUMNS)[: PAGE + 1])
    following = rows[PAGE - 1]["run_id"] if len(rows) > PAGE else None
    return [{"run": row.pop("run_id"), **row} for row in rows[:PAGE]], following
