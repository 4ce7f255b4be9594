"""The accounts beside those of a tree: an agent's day, a credential's period, the fleet's day; and their limits now.

A limit that is changed holds from the next call on. An account that begins in the middle of its day knows what the
record says of that day.
"""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial

from django.conf import settings
from django.db.models import Sum

from agents.policy.accounts import NOTHING, Amounts, Ceilings, nano
from agents.policy.credentials import period
from control.fleet import credentials
from control.fleet.credentials import CredentialError
from control.fleet.day_limits import DAY_LIMITS
from control.fleet.models import Agent, CredentialState
from control.runs.models import Call, Run
from control.runs.recorded import without_recorded

# How long a worker goes by what it has read of an agent.
KEEP_S = 2.0

_read: dict[str, tuple[float, Mapping[str, Decimal]]] = {}


def accounts(agent: str, credential: str | None, now: datetime) -> dict[str, Ceilings]:
    """Blocking. The accounts with a limit that a call of this agent with this key touches at this time."""
    day = now.astimezone(UTC).date().isoformat()
    found = {
        f"agent:{agent}:{day}": _ceilings(_tightest(settings.AGENT_DAY_LIMITS, _of_agent(agent))),
        f"fleet:{day}": _ceilings(settings.FLEET_DAY_LIMITS),
    }
    if credential is not None:
        found |= _of_credential(credential, now)
    return {key: ceilings for key, ceilings in found.items() if ceilings.any()}


def limits_money(agent: str) -> str | None:
    """The limit of money, if any, that all runs of this agent are under on any day."""
    if "max_cost_per_day" in _tightest(settings.AGENT_DAY_LIMITS, _of_agent(agent)):
        return "agent_max_cost_per_day"
    return "fleet_max_cost_per_day" if "max_cost_per_day" in settings.FLEET_DAY_LIMITS else None


def _of_credential(label: str, now: datetime) -> dict[str, Ceilings]:
    try:
        known = credentials.all_of().get(label)
    except CredentialError:
        return {}
    if known is None or known.limit_usd is None:
        return {}
    begin = "ever" if known.per is None else period(known.per, now)[0].strftime("%Y-%m-%dT%H")
    return {f"credential:{label}:{begin}": Ceilings(usd=nano(known.limit_usd))}


def ends(key: str, now: datetime) -> datetime | None:
    """When a credential's account starts anew; None if it never does."""
    label = key.partition(":")[2].rpartition(":")[0]
    try:
        known = credentials.all_of().get(label)
    except CredentialError:
        return None
    return None if known is None or known.per is None else period(known.per, now)[1]


def _of_agent(name: str) -> Mapping[str, Decimal]:
    at, limits = _read.get(name, (0.0, {}))
    if not at or time.monotonic() - at > KEEP_S:
        given = Agent.objects.filter(name=name, current=True).values_list("limits", flat=True).first() or {}
        limits = {one: Decimal(str(given[one])) for one in DAY_LIMITS if given.get(one) is not None}
        _read[name] = (time.monotonic(), limits)
    return limits


def _tightest(*sources: Mapping[str, Decimal]) -> dict[str, Decimal]:
    given = {name: [source[name] for source in sources if name in source] for name in DAY_LIMITS}
    return {name: min(values) for name, values in given.items() if values}


def _ceilings(limits: Mapping[str, Decimal]) -> Ceilings:
    cost, tokens = limits.get("max_cost_per_day"), limits.get("max_tokens_per_day")
    return Ceilings(usd=None if cost is None else nano(cost), tokens=None if tokens is None else int(tokens))


# --- what was spent before an account began -----------------------------------------------------------------------


def opening(key: str) -> Amounts:
    """Blocking. What the record knows for a standing account that is not there yet."""
    kind, _, rest = key.partition(":")
    tell: Callable[[], Amounts] | None = None
    name, _, begin = rest.rpartition(":")
    if kind == "agent":
        tell = partial(_of_day, date.fromisoformat(begin), agent=name)
    elif kind == "fleet":
        tell = partial(_of_day, date.fromisoformat(rest))
    elif kind == "credential":
        tell = partial(_of_key, name, begin)
    return tell() if tell is not None else NOTHING


def _of_day(day: date, **whose: str) -> Amounts:
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    runs = without_recorded(Run.objects.filter(last_activity_at__gte=start, **whose))
    calls = Call.objects.filter(
        run_id__in=runs.values("pk"),
        operation="chat",
        completed_at__gte=start,
        completed_at__lt=start + timedelta(days=1),
    )
    sums = calls.aggregate(usd=Sum("cost_usd"), input=Sum("input_tokens"), output=Sum("output_tokens"))
    tokens = (sums["input"] or 0) + (sums["output"] or 0)
    return Amounts(usd=nano(sums["usd"] or "0"), tokens=tokens)


def _of_key(label: str, begin: str) -> Amounts:
    state = CredentialState.objects.filter(label=label).first()
    if state is None:
        return NOTHING
    if begin == "ever":
        return Amounts(usd=state.spent_nano)
    start = datetime.strptime(begin, "%Y-%m-%dT%H").replace(tzinfo=UTC)
    running = state.period_start is not None and state.period_start >= start
    return Amounts(usd=state.period_nano if running else 0)
