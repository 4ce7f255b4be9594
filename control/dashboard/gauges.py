"""How much of each fuse a run has used: of its frozen limits from its row, of its policy's other fuses from its log."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from django.db.models import QuerySet, Sum
from django.db.models.fields.json import KeyTransform

from agents.errors import ConfigError
from agents.policy.accounts import run_key
from agents.policy.policies import Policy, policy_from
from agents.spec import DEFAULT_MAX_TURNS, LIMIT_NAMES
from control.dashboard import tally as tallies
from control.dashboard.policy_words import FUSES
from control.runs.models import Account, Call, Run

NEAR = 0.8
_TIMES = frozenset({"max_seconds", "max_working_seconds"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fuse:
    """`used` and `limit` in the fuse's own unit; None is unknown or no limit; `share` is 0 to 1. `since`: where a clock
    that runs now has begun. `tripped`: it has ended the run. `what` names what is counted, e.g. a tool."""

    name: str
    title: str
    used: Decimal | None
    limit: Decimal | None
    source: str
    since: datetime | None = None
    tripped: bool = False
    what: str = ""

    @property
    def unit(self) -> str:
        """`money`, `time` or `count`."""
        return "money" if self.name == "max_cost" else "time" if self.name in _TIMES else "count"

    @property
    def share(self) -> float | None:
        if self.limit is None or self.used is None:
            return None
        share = float(self.used / self.limit) if self.limit else 1.0
        # Time passes by itself: a bar that moved by hairs would be sent again and again.
        return round(share, 2) if self.unit == "time" else share

    @property
    def near(self) -> bool:
        return self.share is not None and self.share >= NEAR


def with_limits(runs: QuerySet[Run]) -> QuerySet[Run]:
    """These runs with no more of what was frozen than their rows show. All of it is thousands of characters a run, and
    reading it was half of what a fleet page cost."""
    return runs.defer("spec", "final").annotate(frozen_limits=KeyTransform("limits", "spec"))


def limit_of(run: Run, name: str) -> tuple[Decimal | None, str]:
    """A frozen limit and where it came from, in either form in which it may be written."""
    if hasattr(run, "frozen_limits"):
        limits: Any = run.frozen_limits
    else:
        limits = run.spec.get("limits") if isinstance(run.spec, dict) else None
    value = limits.get(name) if isinstance(limits, dict) else None
    source = "default"
    if isinstance(value, dict):
        source = str(value.get("source", ""))
        value = value.get("value")
    if value is None and name == "max_turns":
        value = DEFAULT_MAX_TURNS
    return _number(value), source


def _number(value: Any) -> Decimal | None:
    try:
        number = None if value is None else Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number is None or number.is_finite() else None


def fuses(run: Run, now: datetime, raised: dict[str, str] | None = None) -> list[Fuse]:
    """The five hard limits, those without a value last. `raised`: what an operator has set meanwhile."""
    end = run.finished_at or now
    used: dict[str, Decimal | None] = {
        "max_turns": Decimal(run.turns),
        "max_steps": Decimal(run.steps),
        "max_tokens": Decimal(run.input_tokens + run.output_tokens),
        "max_cost": None if run.cost_unknown and run.cost_usd is None else run.cost_usd or Decimal(0),
        "max_seconds": Decimal((end - run.started_at).total_seconds()) if run.started_at else Decimal(0),
    }
    made = []
    for name in LIMIT_NAMES:
        limit, source = limit_of(run, name)
        if raised and (higher := _number(raised.get(name))) is not None:
            limit, source = higher, "raised"
        since = run.started_at if name == "max_seconds" and run.finished_at is None else None
        made.append(_fuse(run, name, used[name], limit, source, since=since))
    return sorted(made, key=lambda fuse: fuse.limit is None)


def all_fuses(run: Run, now: datetime, family: Sequence[Run]) -> list[Fuse]:
    """Every fuse of the run page: the hard limits, and what else the frozen policy sets."""
    policy = policy_of(run)
    tally = tallies.of(run, policy)
    hard = fuses(run, now, tally.raised)
    others = [
        _fuse(run, name, used, _number(getattr(policy.fuses, name)), "policy", since=since, what=what)
        for name, used, since, what in _used(run, now, family, tally, policy)
        if getattr(policy.fuses, name) is not None
    ]
    return [*(one for one in hard if one.limit is not None), *others, *(one for one in hard if one.limit is None)]


def policy_of(run: Run) -> Policy:
    """The policy that the run holds; an empty one where what it holds can no longer be read."""
    body = run.spec.get("policy_body") if isinstance(run.spec, dict) else None
    given = {name: value for name, value in body.items() if name != "name"} if isinstance(body, dict) else {}
    try:
        return policy_from(given, run.policy)
    except ConfigError:
        return Policy(name=run.policy)


def _used(
    run: Run, now: datetime, family: Sequence[Run], tally: tallies.Tally, policy: Policy
) -> list[tuple[str, Decimal, datetime | None, str]]:
    below = [other for other in family if other.path.startswith(f"{run.path}/")]
    depth = max((other.path.count("/") for other in (run, *below)), default=0)
    end = run.finished_at or now
    return [
        ("max_working_seconds", Decimal(tally.seconds(end)), tally.since, ""),
        ("max_model_calls", _model_calls(run), None, ""),
        ("max_identical_calls", Decimal(tally.identical), None, tally.identical_name if tally.identical > 1 else ""),
        ("max_oscillations", Decimal(tally.oscillations), None, ""),
        ("max_failures_in_a_row", Decimal(tally.failures), None, ""),
        # The root counts every sub-agent of its tree.
        ("max_children", Decimal(run.children if run.parent is None else len(below)), None, ""),
        ("max_depth", Decimal(depth), None, ""),
    ]


def _model_calls(run: Run) -> Decimal:
    """As its account has them, sub-agents included; where no account was needed, by the run's own calls."""
    spent = Account.objects.filter(pk=run_key(run.pk)).values_list("calls_spent", flat=True).first()
    if spent is None:
        own = Call.objects.filter(run_id=run.pk, operation="chat").aggregate(all=Sum("attempts"))
        spent = own["all"] or 0
    return Decimal(spent)


def _fuse(run: Run, name: str, used: Decimal | None, limit: Decimal | None, source: str, **more: Any) -> Fuse:
    tripped = run.exit_reason == f"fuse:{name}"
    return Fuse(name=name, title=FUSES[name], used=used, limit=limit, source=source, tripped=tripped, **more)
