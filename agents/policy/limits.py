"""Fuse values: read from loose numbers, checked, and joined so that of several sources the tightest wins."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from agents.errors import ConfigError
from agents.spec import LIMIT_NAMES, Limit, Limits

WHOLE = frozenset({"max_turns", "max_steps", "max_tokens"})
# Above any real use; keeps a typing error like 1e999 out of the database's number columns.
LARGEST = Decimal(10) ** 15


def limits_from(values: Mapping[str, Any], source: str) -> Limits:
    """Limits of one source; None and absent values set nothing. Raises ConfigError `bad_limits`.

    Values are numbers or their text, above 0 (`max_cost` may be 0: nothing may be spent).
    """
    unknown = sorted(set(values) - set(LIMIT_NAMES))
    if unknown:
        raise ConfigError("bad_limits", f"There is no limit {', '.join(unknown)}; there are {', '.join(LIMIT_NAMES)}.")
    return Limits(**{name: _limit(name, value, source) for name, value in values.items() if value is not None})


def _limit(name: str, value: Any, source: str) -> Limit:
    try:
        number = Decimal(str(value)) if not isinstance(value, bool) else Decimal("NaN")
    except InvalidOperation:
        number = Decimal("NaN")
    lowest_fits = number.is_finite() and (number > 0 or (name == "max_cost" and number == 0))
    if not lowest_fits or number > LARGEST:
        raise ConfigError("bad_limits", f"{name} from {source} must be a number above 0, not {str(value)[:40]!r}.")
    if name in WHOLE and number != number.to_integral_value():
        raise ConfigError("bad_limits", f"{name} from {source} must be a whole number, not {str(value)[:40]!r}.")
    return Limit(value=number, source=source)


def of_policy(body: Mapping[str, Any]) -> Limits:
    """The fuses of a policy that are limits of a run, tighter of `fuses` and `stop_when`. Raises ConfigError."""
    tables = [table for name in ("fuses", "stop_when") if isinstance(table := body.get(name), Mapping)]
    return tightest(*(limits_from({name: given.get(name) for name in LIMIT_NAMES}, "policy") for given in tables))


def of_parent(limits: Limits) -> Limits:
    """What a sub-agent takes over."""
    found = {name: getattr(limits, name) for name in LIMIT_NAMES}
    return Limits(**{name: Limit(value=one.value, source="parent") for name, one in found.items() if one is not None})


def tightest(*given: Limits) -> Limits:
    """Of each fuse the lowest value with its source; of equal ones the first given."""
    joined: dict[str, Limit] = {}
    for limits in given:
        for name in LIMIT_NAMES:
            limit: Limit | None = getattr(limits, name)
            if limit is not None and (name not in joined or limit.value < joined[name].value):
                joined[name] = limit
    return Limits(**joined)
