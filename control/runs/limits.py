"""Limits of a run from several sources: of several values the tightest wins and keeps the name of its source."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from agents.spec import DEFAULT_MAX_TURNS, LIMIT_NAMES, Limit, Limits

_WHOLE = frozenset({"max_turns", "max_steps", "max_tokens"})
_MOST = Decimal(10) ** 12


class BadLimits(Exception):
    """A limit is unknown or no number above 0; the text says which and what to write."""


def read(given: Mapping[str, Any], source: str) -> dict[str, Limit]:
    """Limits of one source; None means not set. Raises BadLimits."""
    return {
        name: Limit(value=_value(name, value, source), source=source)
        for name, value in given.items()
        if value is not None
    }


def _value(name: str, given: Any, source: str) -> Decimal:
    if name not in LIMIT_NAMES:
        raise BadLimits(f"There is no limit {name!r:.60} ({source}). Known: {', '.join(LIMIT_NAMES)}.")
    try:
        # Through text, so that a float means what it shows: 0.1 is 0.1.
        value = Decimal(str(given)) if not isinstance(given, bool) else Decimal("NaN")
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or value <= 0 or value > _MOST:
        raise BadLimits(f"{name} ({source}) must be a number above 0, e.g. {name}: 50; it is {given!r:.60}.")
    if name in _WHOLE and value != value.to_integral_value():
        raise BadLimits(f"{name} ({source}) must be a whole number; it is {given!r:.60}.")
    return value


def tightest(*sources: Mapping[str, Limit]) -> Limits:
    """The smallest value of each name; of equal ones the first source. Turns have a default when nobody names them."""
    found: dict[str, Limit] = {}
    for source in sources:
        for name, limit in source.items():
            if name not in found or limit.value < found[name].value:
                found[name] = limit
    found.setdefault("max_turns", Limit(value=Decimal(DEFAULT_MAX_TURNS), source="default"))
    return Limits(**found)


def named(limits: Limits, source: str) -> dict[str, Limit]:
    """Frozen limits of another run, as a source of their own; its default of turns is not passed on."""
    found = {name: getattr(limits, name) for name in LIMIT_NAMES}
    return {
        name: Limit(value=limit.value, source=source)
        for name, limit in found.items()
        if limit is not None and limit.source != "default"
    }
