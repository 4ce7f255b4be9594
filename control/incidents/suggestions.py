"""Limits suggested from healthy runs: how an agent's completed runs are spread, and a fuse with a margin above them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

import tomli_w

from agents.spec import LIMIT_NAMES, Status
from control.fleet import agents, policies
from control.runs.clock import database_now
from control.runs.models import Run

# The newest of one agent: more say nothing new of a quantile.
MOST_RUNS = 5_000
# A quantile that fewer runs than this lie above is hardly more than the largest that was seen.
ABOVE = 3
FEWEST = 30
WORDS = {
    "max_turns": "turns",
    "max_steps": "tool calls",
    "max_tokens": "tokens",
    "max_cost": "dollars",
    "max_seconds": "seconds",
}
# What no run shall be cut below, however small the healthy ones are.
_FLOORS = {"max_turns": 3.0, "max_steps": 3.0, "max_tokens": 1_000.0, "max_cost": 0.01, "max_seconds": 30.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    agent: str | None = None
    days: int = 30
    quantile: float = 0.99
    margin: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How one number is spread over `runs` runs, and the limit that follows; None where nothing is known of it."""

    name: str
    runs: int
    median: float
    high: float
    most: float
    limit: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    agent: str
    policy: str
    runs: int
    asked: Asked
    spreads: tuple[Spread, ...]
    # The agent's policy as it stands, which the draft is made from.
    base: Mapping[str, Any]

    @property
    def needed(self) -> int:
        """So many runs the quantile needs."""
        return max(FEWEST, math.ceil(round(ABOVE / (1 - self.asked.quantile), 6)))

    @property
    def warning(self) -> str | None:
        if self.runs >= self.needed:
            return None
        what = "1 completed run" if self.runs == 1 else f"{self.runs} completed runs"
        return f"Only {what}; a quantile of {self.asked.quantile:g} wants {self.needed}. Take these limits as a guess."

    @property
    def limits(self) -> dict[str, int | float]:
        found = {spread.name: spread.limit for spread in self.spreads if spread.limit is not None}
        return {name: value if name in ("max_cost", "max_seconds") else int(value) for name, value in found.items()}

    def body(self) -> dict[str, Any]:
        """A policy with these limits as fuses; what else it holds is that of the agent's policy."""
        made = {name: value for name, value in self.base.items() if name != "note"}
        note = (
            f"Limits from {self.runs} completed runs of {self.agent} in {self.asked.days} days: quantile "
            f"{self.asked.quantile:g}, and {self.asked.margin:.0%} more."
        )
        return {"note": note, **made, "fuses": {**made.get("fuses", {}), **self.limits}}

    def toml(self) -> str:
        """The draft as text; where there are too few runs it says so itself."""
        remark = f"# {self.warning}\n" if self.warning else ""
        return remark + tomli_w.dumps(self.body())

    def as_json(self) -> dict[str, Any]:
        names = ("median", "high", "most", "limit", "runs")
        return {
            "agent": self.agent,
            "runs": self.runs,
            "needed": self.needed,
            "warning": self.warning,
            "spreads": {one.name: {name: getattr(one, name) for name in names} for one in self.spreads},
            "limits": self.limits,
            "policy": self.body(),
            "toml": self.toml(),
        }


def suggest(asked: Asked) -> list[Suggestion]:
    """One per agent with completed runs in these days, by name."""
    healthy = Run.objects.filter(
        status=Status.COMPLETED.value,
        created_at__gte=database_now() - timedelta(days=asked.days),
        replay_of=None,
        parent=None,
    )
    if asked.agent:
        healthy = healthy.filter(agent=asked.agent)
    names = healthy.order_by("agent").values_list("agent", flat=True).distinct()
    return [_of(agent, healthy.filter(agent=agent), asked) for agent in names]


def _of(agent: str, healthy: Any, asked: Asked) -> Suggestion:
    rows = list(healthy.order_by("-created_at").defer("spec", "final", "task")[:MOST_RUNS])
    values: dict[str, list[float]] = {name: [] for name in LIMIT_NAMES}
    for run in rows:
        for name, value in _used(run):
            values[name].append(value)
    spreads = (spread_of(name, found, asked) for name, found in values.items())
    known = agents.current(agent)
    row = policies.current(known.policy if known else rows[0].policy)
    name, base = (row.name, row.body) if row else ("", {})
    return Suggestion(agent=agent, policy=name, runs=len(rows), asked=asked, spreads=tuple(spreads), base=base)


def _used(run: Run) -> Iterator[tuple[str, float]]:
    """What one run took. A cost that is partly unknown is none to go by."""
    yield "max_turns", run.turns
    yield "max_steps", run.steps
    yield "max_tokens", run.input_tokens + run.output_tokens
    if run.cost_usd is not None and not run.cost_unknown:
        yield "max_cost", float(run.cost_usd)
    if run.started_at is not None and run.finished_at is not None:
        yield "max_seconds", (run.finished_at - run.started_at).total_seconds()


def spread_of(name: str, values: Sequence[float], asked: Asked) -> Spread:
    """Pure. The limit is the quantile (an observed value, the next above it), the margin on top, rounded up to two
    digits."""
    if not values:
        return Spread(name=name, runs=0, median=0, high=0, most=0, limit=None)
    ordered = sorted(values)
    high, most = quantile(ordered, asked.quantile), ordered[-1]
    known = most > 0
    limit = _rounded(max(high * (1 + asked.margin), _FLOORS[name])) if known else None
    return Spread(name=name, runs=len(values), median=quantile(ordered, 0.5), high=high, most=most, limit=limit)


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of them does not pass."""
    return ordered[max(math.ceil(round(share * len(ordered), 9)), 1) - 1]


def _rounded(value: float) -> float:
    """Up to two significant digits: 37,214 becomes 38,000. Decimal, for a float would bring 0.060000000000000005."""
    exact = Decimal(repr(value))
    unit = Decimal(1).scaleb(exact.adjusted() - 1)
    return float((exact / unit).to_integral_value(rounding="ROUND_CEILING") * unit)
