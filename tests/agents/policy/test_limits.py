"""Fuse values: of several sources the tightest wins and keeps its name; nonsense is refused with a sentence."""

from decimal import Decimal
from typing import Any

import pytest

from agents.errors import ConfigError
from agents.policy.limits import limits_from, tightest
from agents.spec import Limit, Limits


def test_tightest_limit_wins_and_names_its_source() -> None:
    joined = tightest(
        limits_from({"max_turns": 50, "max_cost": "0.50"}, "environment"),
        limits_from({"max_turns": 20, "max_cost": None}, "agent"),
        limits_from({"max_turns": "20", "max_cost": 0.75}, "request"),
    )
    assert joined == Limits(
        max_turns=Limit(value=Decimal(20), source="agent"), max_cost=Limit(value=Decimal("0.50"), source="environment")
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_turns", 0),
        ("max_turns", 1.5),
        ("max_steps", -1),
        ("max_tokens", "many"),
        ("max_seconds", "inf"),
        ("max_cost", "NaN"),
        ("max_cost", "1e999"),
        ("max_turns", True),
        ("max_feathers", 1),
    ],
)
def test_nonsense_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=name) as refused:
        limits_from({name: value}, "request")
    assert refused.value.kind == "bad_limits"


def test_a_cost_limit_of_nothing_is_a_limit() -> None:
    assert limits_from({"max_cost": 0}, "request").max_cost == Limit(value=Decimal(0), source="request")
