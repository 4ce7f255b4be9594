"""How much of each fuse a run has used, read from its row and from the limits frozen into it."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from agents.spec import DEFAULT_MAX_TURNS
from control.runs.models import Run

TITLES = {
    "max_turns": "Turns",
    "max_steps": "Tool steps",
    "max_tokens": "Tokens",
    "max_cost": "Cost",
    "max_seconds": "Wall clock",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fuse:
    """`used` and `limit` in the fuse's own unit; None is unknown or no limit; `share` is 0 to 1."""

    name: str
    title: str
    used: Decimal | None
    limit: Decimal | None
    source: str
    since: datetime | None = None

    @property
    def share(self) -> float | None:
        if self.limit is None or self.used is None:
            return None
        return float(self.used / self.limit) if self.limit else 1.0


def limit_of(run: Run, name: str) -> tuple[Decimal | None, str]:
    """A frozen limit and where it came from, in either form in which it may be written."""
    limits: Any = run.spec.get("limits") if isinstance(run.spec, dict) else None
    value = limits.get(name) if isinstance(limits, dict) else None
    source = "default"
    if isinstance(value, dict):
        source = str(value.get("source", ""))
        value = value.get("value")
    if value is None and name == "max_turns":
        value = DEFAULT_MAX_TURNS
    try:
        return (None if value is None else Decimal(str(value))), source
    except InvalidOperation:
        return None, source


def fuses(run: Run, now: datetime) -> list[Fuse]:
    """The five hard limits, those without a value last."""
    end = run.finished_at or now
    used: dict[str, Decimal | None] = {
        "max_turns": Decimal(run.turns),
        "max_steps": Decimal(run.steps),
        "max_tokens": Decimal(run.input_tokens + run.output_tokens),
        "max_cost": None if run.cost_unknown and run.cost_usd is None else run.cost_usd or Decimal(0),
        "max_seconds": Decimal((end - run.started_at).total_seconds()) if run.started_at else Decimal(0),
    }
    made = []
    for name, title in TITLES.items():
        limit, source = limit_of(run, name)
        made.append(Fuse(name=name, title=title, used=used[name], limit=limit, source=source))
    return sorted(made, key=lambda fuse: fuse.limit is None)
