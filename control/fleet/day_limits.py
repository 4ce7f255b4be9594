"""Limits of a whole day, UTC: what all runs of one agent, or of the fleet, may spend together."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

DAY_LIMITS = ("max_cost_per_day", "max_tokens_per_day")
# How many runs of an agent may be at work at once; `control.runs.dispatch` counts them.
MAX_RUNNING = "max_running"
_MOST = Decimal(10) ** 9


class BadDayLimit(Exception):
    """The text says which limit is wrong and what to write."""


def read(given: Mapping[str, Any], where: str) -> dict[str, Decimal]:
    """The limits of a day among `given`; None means not set. Raises BadDayLimit."""
    return {name: _value(name, given[name], where) for name in DAY_LIMITS if given.get(name) is not None}


def without(given: Mapping[str, Any]) -> dict[str, Any]:
    """The others: those of single runs. How many may be at work at once is none of a single run either."""
    return {name: value for name, value in given.items() if name not in (*DAY_LIMITS, MAX_RUNNING)}


def _value(name: str, given: Any, where: str) -> Decimal:
    try:
        value = Decimal(str(given)) if not isinstance(given, bool) else Decimal("NaN")
    except InvalidOperation:
        value = Decimal("NaN")
    if name == "max_cost_per_day":
        if not value.is_finite() or not 0 <= value <= _MOST:
            raise BadDayLimit(f"{name} ({where}) is an amount of dollars, e.g. 25 or 2.50; it is {given!r:.60}.")
    elif not value.is_finite() or value <= 0 or value > 10**15 or value != value.to_integral_value():
        raise BadDayLimit(f"{name} ({where}) is a whole number above 0, e.g. 5000000; it is {given!r:.60}.")
    return value
