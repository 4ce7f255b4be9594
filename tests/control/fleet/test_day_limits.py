"""Limits of a day: what they may be, and that they are no limits of single runs."""

import os
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest
from django.conf import settings

from control.fleet import day_limits


def test_limits_of_a_day_are_told_from_those_of_a_run() -> None:
    given = {"max_cost_per_day": "2.50", "max_tokens_per_day": 10, "max_turns": 5, "max_steps": None}
    assert day_limits.read(given, "agent") == {"max_cost_per_day": Decimal("2.50"), "max_tokens_per_day": Decimal(10)}
    assert day_limits.without(given) == {"max_turns": 5, "max_steps": None}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_cost_per_day", "-1"),
        ("max_cost_per_day", "much"),
        ("max_cost_per_day", True),
        ("max_cost_per_day", "NaN"),
        ("max_tokens_per_day", 0),
        ("max_tokens_per_day", "1.5"),
    ],
)
def test_what_is_no_limit_is_refused_with_its_name(name: str, value: Any) -> None:
    with pytest.raises(day_limits.BadDayLimit, match=name):
        day_limits.read({name: value}, "agent")


def test_a_wrong_limit_in_the_environment_stops_the_start() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import django; django.setup()"],
        cwd=settings.BASE_DIR,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "control.settings", "FLEET_MAX_COST_PER_DAY": "a lot"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode and "max_cost_per_day (FLEET_ in the environment) is an amount of dollars" in done.stderr
