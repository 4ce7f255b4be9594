"""Which key of a pool is used next, and what an attempt's end means for the health of its key."""

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum

# A limit that came without a wait: short at first, so that a single key is soon tried again, then ever longer.
FIRST_REST_S = 5.0
LONGEST_REST_S = 600.0
# What a provider may name: a monthly allowance, not more.
LONGEST_NAMED_S = 31 * 86_400.0
# A key that this call has passed over is not away; whoever asks again need not wait for a person.
PASSED_OVER = timedelta(seconds=1)
PERIODS = ("hour", "day", "week", "month")


class Health(StrEnum):
    OK = "ok"
    RESTING = "resting"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyState:
    """One key as the pool sees it. `failures` counts limits in a row; `spent_usd` is what counts against `limit_usd`,
    which starts anew at `period_ends` (None: never). `said`: the provider's sentence on why the key is not well, where
    some tell what is left of its credit or which limit of the key is reached."""

    label: str
    health: Health = Health.OK
    reason: str | None = None
    cooldown_until: datetime | None = None
    failures: int = 0
    spent_usd: Decimal = Decimal(0)
    limit_usd: Decimal | None = None
    period_ends: datetime | None = None
    last_used: datetime | None = None
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """No key may be used. `until`: when the first one is back; None when only a person can bring one back."""

    until: datetime | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How an attempt ended for its key: a reason, or None after a success."""

    reason: str | None = None
    cooldown_s: float | None = None
    said: str = ""


def choose(states: Sequence[KeyState], now: datetime, avoid: Set[str], jitter: float) -> str | Rest:
    """The label of the key whose turn it is: least recently used, then least spent; `jitter` in 0..1 decides ties."""
    fit = [state for state in states if state.label not in avoid and rest_of(state, now) is None]
    if not fit:
        return _all_rest(states, now, avoid)
    turn = min(_turn(state) for state in fit)
    ties = [state.label for state in fit if _turn(state) == turn]
    return ties[min(int(jitter * len(ties)), len(ties) - 1)]


def rest_of(state: KeyState, now: datetime) -> Rest | None:
    """Why a key may not be used now; None if it may."""
    if state.health is Health.DEAD:
        return Rest(until=None, why=f"{state.label} is dead ({state.reason or 'unknown'}) until an operator revives it")
    cooling = state.cooldown_until if state.health is Health.RESTING else None
    rests = cooling is not None and cooling > now
    if state.limit_usd is not None and state.spent_usd >= state.limit_usd:
        until = state.period_ends
        if until is not None and cooling is not None and rests:
            until = max(until, cooling)
        return Rest(until=until, why=f"{state.label} has spent its limit of ${state.limit_usd:f}")
    if rests:
        return Rest(until=cooling, why=f"{state.label} rests ({state.reason or 'unknown'})")
    return None


def after(state: KeyState, report: Report, now: datetime) -> KeyState:
    """The key's state after one attempt.

    A dead key stays dead: only an operator knows that it was cured. A rest is never cut short, neither by a success
    nor by a shorter wait, since both may come from a call that began before it. A `permission` error or trouble of
    the server says nothing about the key.
    """
    if state.health is Health.DEAD:
        return state
    then = _then(state, report, now)
    if then == state or report.reason is None:
        return then
    return replace(then, said=report.said)


def _then(state: KeyState, report: Report, now: datetime) -> KeyState:
    named = _seconds(report.cooldown_s)
    match report.reason:
        case None:
            return _well(state, now)
        case "auth":
            return _dead(state, "auth")
        case "billing":
            return _dead(state, "billing") if named is None else _resting(state, "billing", named, now)
        case "rate_limit":
            rest = min(FIRST_REST_S * 2 ** min(state.failures, 20), LONGEST_REST_S) if named is None else named
            # One burst is one failure, however many calls were in it.
            if _rests(state, now) and named is None:
                return state
            return _resting(state, "rate_limit", rest, now)
        case other:
            return state if named is None else _resting(state, other, named, now)


def revived(state: KeyState) -> KeyState:
    """As good as new, but for what it has spent."""
    return replace(state, health=Health.OK, reason=None, cooldown_until=None, failures=0, said="")


def laid_aside(state: KeyState, until: datetime) -> KeyState:
    """Resting because a person said so. A dead key stays dead; a longer rest stays as it is."""
    if state.health is Health.DEAD or (state.cooldown_until is not None and state.cooldown_until >= until):
        return state
    return replace(state, health=Health.RESTING, reason="operator", cooldown_until=until, said="")


def period(per: str, now: datetime) -> tuple[datetime, datetime]:
    """The period of a spend limit that `now` falls into, in UTC: its start and its end."""
    start = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    if per == "hour":
        return start, start + timedelta(hours=1)
    start = start.replace(hour=0)
    if per == "day":
        return start, start + timedelta(days=1)
    if per == "week":
        start -= timedelta(days=start.weekday())
        return start, start + timedelta(days=7)
    if per == "month":
        start = start.replace(day=1)
        return start, (start + timedelta(days=32)).replace(day=1)
    raise ValueError(f"no such period: {per!r}")


def _turn(state: KeyState) -> tuple[datetime, Decimal]:
    return state.last_used or datetime.min.replace(tzinfo=UTC), state.spent_usd


def _all_rest(states: Sequence[KeyState], now: datetime, avoid: Set[str]) -> Rest:
    whys, backs = [], []
    for state in states:
        rest = rest_of(state, now)
        if rest is None:
            rest = Rest(until=now + PASSED_OVER, why=f"{state.label} was tried")
        whys.append(rest.why)
        if rest.until is not None:
            backs.append(rest.until)
    return Rest(until=min(backs, default=None), why="; ".join(whys) or "there is no key")


def _rests(state: KeyState, now: datetime) -> bool:
    return state.health is Health.RESTING and state.cooldown_until is not None and state.cooldown_until > now


def _well(state: KeyState, now: datetime) -> KeyState:
    if _rests(state, now):
        return replace(state, failures=0)
    return revived(state)


def _dead(state: KeyState, reason: str) -> KeyState:
    return replace(state, health=Health.DEAD, reason=reason, cooldown_until=None)


def _resting(state: KeyState, reason: str, seconds: float, now: datetime) -> KeyState:
    until = now + timedelta(seconds=seconds)
    if _rests(state, now):
        if state.cooldown_until is None or until <= state.cooldown_until:
            return state
        return replace(state, reason=reason, cooldown_until=until)
    return replace(
        state, health=Health.RESTING, reason=reason, cooldown_until=until, failures=min(state.failures + 1, 1000)
    )


def _seconds(given: float | None) -> float | None:
    """A wait that was named, in sane bounds; None for none."""
    if given is None or math.isnan(given):
        return None
    return min(max(given, 0.0), LONGEST_NAMED_S)
