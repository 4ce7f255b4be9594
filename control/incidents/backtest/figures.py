"""The sums of a backtest, one object per policy: made per piece, added up for the whole. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from control.incidents.backtest.outcome import BLOCKED, OBSERVED, STOPPED, Outcome

WORDS = (OBSERVED, BLOCKED, STOPPED)
_COUNTS = ("blocked_calls", "stubbed_calls", "saved_calls", "saved_model_calls", "saved_tokens")


def empty() -> dict[str, Any]:
    """`runs` is how many were judged; the words count runs by the worst that was said, `untouched` those without a
    word. `healthy` holds the same of the runs that had completed; `rules` counts runs by the rule that blocked or
    stopped. Money is a decimal string, None while nothing is known of it."""
    return {
        "runs": 0,
        "untouched": 0,
        **dict.fromkeys(WORDS, 0),
        "healthy": {"runs": 0, "untouched": 0, **dict.fromkeys(WORDS, 0)},
        **dict.fromkeys(_COUNTS, 0),
        "saved_usd": None,
        "rules": {},
    }


def take(figures: dict[str, Any], outcome: Outcome | None, *, healthy: bool) -> None:
    """Count one run in."""
    word = outcome.outcome if outcome else "untouched"
    for part in (figures, figures["healthy"]) if healthy else (figures,):
        part["runs"] += 1
        part[word] += 1
    if outcome is None:
        return
    figures["blocked_calls"] += outcome.blocked
    figures["stubbed_calls"] += outcome.stubbed
    figures["saved_calls"] += outcome.saved_calls
    figures["saved_model_calls"] += outcome.saved_model_calls
    figures["saved_tokens"] += outcome.saved_tokens
    figures["saved_usd"] = _sum(figures["saved_usd"], outcome.saved_usd)
    if outcome.outcome != OBSERVED:
        figures["rules"][outcome.rule] = figures["rules"].get(outcome.rule, 0) + 1


def added(parts: Iterable[Sequence[Mapping[str, Any]]], policies: int) -> list[dict[str, Any]]:
    """The figures of all pieces together."""
    whole = [empty() for _ in range(policies)]
    for part in parts:
        for mine, one in zip(whole, part, strict=True):
            _add(mine, one)
    return whole


def _add(mine: dict[str, Any], one: Mapping[str, Any]) -> None:
    for name, value in one.items():
        if name == "saved_usd":
            mine[name] = _sum(mine[name], value)
        elif isinstance(value, Mapping):
            for key, count in value.items():
                mine[name][key] = mine[name].get(key, 0) + count
        else:
            mine[name] += value


def _sum(one: str | None, other: str | Decimal | None) -> str | None:
    if other is None:
        return one
    return format(Decimal(one or 0) + Decimal(other), "f")
