"""Suggested limits: above what healthy runs needed, and frank about how many there were."""

import tomllib
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from agents.policy.policies import policy_from
from agents.spec import Status
from control.fleet.agents import ensure_default
from control.fleet.policies import ensure_shipped
from control.incidents.suggestions import Asked, Suggestion, quantile, spread_of, suggest
from control.runs.models import Run
from tests.control.records import make_run


def test_a_limit_lies_the_margin_above_the_quantile_and_is_round():
    values = [float(n) for n in range(1, 201)]
    found = spread_of("max_steps", values, Asked(quantile=0.95, margin=0.5))
    assert (found.median, found.high, found.most) == (100, 190, 200)
    assert found.limit == 290  # 190 and a half, rounded up to two digits
    assert spread_of("max_cost", [0.031] * 5, Asked(margin=0.5)).limit == 0.047
    assert spread_of("max_cost", [], Asked()).limit is None


@pytest.mark.parametrize("size", [1, 2, 7, 40, 100, 333])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_the_quantile_is_the_least_value_that_enough_of_them_do_not_pass(size: int, share: float):
    ordered = sorted((n * 7919) % 1000 for n in range(size))
    at = quantile(ordered, share)
    assert sum(value <= at for value in ordered) >= share * size - 1e-9
    assert all(sum(value <= less for value in ordered) < share * size - 1e-9 for less in ordered if less < at)


def ended(status: Status = Status.COMPLETED, *, steps: int, **more: Any) -> Run:
    now = datetime.now(UTC)
    columns = {"turns": steps + 1, "input_tokens": steps * 900, "output_tokens": steps * 100, **more}
    return make_run(
        held=False,
        status=status,
        steps=steps,
        cost_usd=Decimal("0.02") * steps,
        started_at=now,
        finished_at=now + timedelta(seconds=2 * steps),
        **columns,
    )


@pytest.fixture
def found(db: None, quiet: None) -> Suggestion:
    ensure_shipped()
    ensure_default()
    for n in range(40):
        ended(steps=1 + n % 10)
    for _ in range(10):
        ended(Status.TRIPPED, steps=900)
    (made,) = suggest(Asked(quantile=0.9, margin=0.5))
    return made


def test_only_completed_runs_are_gone_by(found: Suggestion):
    assert (found.agent, found.runs, found.warning) == ("default", 40, None)
    assert found.limits == {
        "max_turns": 15,
        "max_steps": 14,
        "max_tokens": 14_000,
        "max_cost": 0.27,
        "max_seconds": 30.0,
    }


def test_the_draft_is_a_policy_made_from_the_agents_own(found: Suggestion):
    body = tomllib.loads(found.toml())
    policy = policy_from(body, "draft")
    assert policy.fuses.max_steps == 14 and policy.fuses.max_model_calls == 300
    assert "repeat_error" in policy.rules and "40 completed runs of default" in policy.note


@pytest.mark.django_db
@pytest.mark.usefixtures("quiet")
def test_too_few_runs_are_said_to_be_too_few():
    ensure_shipped()
    ensure_default()
    ended(steps=3)
    (made,) = suggest(Asked(quantile=0.99))
    assert made.warning is not None and "Only 1 completed run" in made.warning and "wants 300" in made.warning
    assert made.toml().startswith("# Only 1 completed run")
