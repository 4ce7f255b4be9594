"""Asking for a backtest, looking at how far it is, and ending it midway."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction

from agents.errors import ConfigError
from agents.policy.policies import policy_from
from agents.spec import FINAL
from control.fleet import policies
from control.incidents.backtest import figures
from control.incidents.models_backtest import Backtest, BacktestPiece
from control.runs.clock import database_now
from control.runs.models import Run
from control.runs.refusals import StartRefused
from control.runs.selection import Selection

logger = logging.getLogger(__name__)

# Two are set side by side; more are allowed for those who want all that ship in one reading of the logs.
MOST_POLICIES = 4
MOST_RUNS = 50_000
# A piece is judged in a few seconds: its size is the step of the progress bar, and what a dead process costs.
PIECE_RUNS = 50
PIECE_EVENTS = 40_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`policies`: names, or data with a `name`. `days`: only runs of the last N days; `limit`: the newest N."""

    policies: Sequence[str | Mapping[str, Any]]
    chosen: Selection
    days: int | None = None
    limit: int = 10_000

    def as_json(self) -> dict[str, Any]:
        return self.chosen.as_json() | {"days": self.days, "limit": self.limit}


def ask(question: Question, by: str) -> Backtest:
    """Write the question down, with its pieces, in the caller's transaction. `start` begins the work after it.

    Raises StartRefused: bad_policy, unknown_policy, too_many_policies, no_runs.
    """
    frozen = [_frozen(given) for given in question.policies]
    if not 1 <= len(frozen) <= MOST_POLICIES:
        raise StartRefused("too_many_policies", f"Name one to {MOST_POLICIES} policies.", status=422)
    runs, matched = _runs(question)
    if not runs:
        raise StartRefused("no_runs", "No run that is over matches. Widen the filter, or take more days.", status=422)
    made = Backtest.objects.create(
        filter=question.as_json(),
        policies=frozen,
        by=by,
        created_at=database_now(),
        total=len(runs),
        left_out=max(matched - len(runs), 0),
    )
    pieces = [BacktestPiece(backtest=made, number=number, runs=part) for number, part in enumerate(_parts(runs), 1)]
    BacktestPiece.objects.bulk_create(pieces, batch_size=500)
    return made


def _frozen(given: str | Mapping[str, Any]) -> dict[str, Any]:
    """The policy as it stands now; checked, so that no piece can fail over it."""
    name, version, body = _named(given)
    try:
        policy_from(body, name)
    except ConfigError as error:
        raise StartRefused(error.kind, error.message, status=422) from error
    return {"name": name, "version": version, "body": body}


def _named(given: str | Mapping[str, Any]) -> tuple[str, int | None, dict[str, Any]]:
    if not isinstance(given, str):
        body = {name: value for name, value in given.items() if name != "name"}
        return str(given.get("name") or "draft")[:100], None, body
    row = policies.current(given) if "\x00" not in given else None
    if row is None:
        raise StartRefused(
            "unknown_policy", f"There is no policy {given!r:.120}. List them with GET /api/policies.", status=422
        )
    return row.name, row.version, dict(row.body)


def _runs(question: Question) -> tuple[list[tuple[str, int]], int]:
    """`(run, events)` of the newest that are over, and how many match."""
    found = question.chosen.runs().filter(status__in=[status.value for status in FINAL], replay_of=None)
    if question.days is not None:
        found = found.filter(created_at__gte=database_now() - timedelta(days=question.days))
    most = min(question.limit, MOST_RUNS)
    rows = list(found.order_by("-created_at", "-pk").values_list("pk", "last_seq")[: most + 1])
    matched = found.count() if len(rows) > most else len(rows)
    return rows[:most], matched


def _parts(runs: Sequence[tuple[str, int]]) -> Iterator[list[str]]:
    part: list[str] = []
    events = 0
    for run, last_seq in runs:
        if part and (len(part) == PIECE_RUNS or events + last_seq > PIECE_EVENTS):
            yield part
            part, events = [], 0
        part.append(run)
        events += last_seq
    if part:
        yield part


def progress(made: Backtest) -> dict[str, Any]:
    """`{done, total, share, failed, figures}`: what the pieces that are done have come to so far."""
    pieces = list(made.pieces.values_list("state", "runs", "figures"))
    over = {BacktestPiece.State.DONE.value, BacktestPiece.State.FAILED.value}
    done = sum(len(runs) for state, runs, _ in pieces if state in over)
    failed = sum(len(runs) for state, runs, _ in pieces if state == BacktestPiece.State.FAILED.value)
    told = made.figures
    if told is None:
        told = figures.added((part for _, _, part in pieces if part), len(made.policies))
    return {"done": done, "share": done / max(made.total, 1), "failed": failed, "figures": told}


def cancel(made: Backtest, by: str) -> tuple[bool, str | None]:
    """Judge no further run; `(changed, why not)`. What is judged stays."""
    with transaction.atomic():
        changed = Backtest.objects.filter(pk=made.pk, state=Backtest.State.RUNNING).update(
            state=Backtest.State.CANCELLED, cancelled_by=by, finished_at=database_now()
        )
    return (True, None) if changed else (False, f"already_{made.state}")


def known(pk: str) -> Backtest | None:
    return Backtest.objects.filter(pk=pk).first()


def first_runs(runs: Sequence[str]) -> dict[str, Run]:
    """The rows of these runs, as far as they are still kept."""
    return {run.pk: run for run in Run.objects.filter(pk__in=list(runs)).defer("spec", "final")}
