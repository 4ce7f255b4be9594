"""Accounts that model calls are paid from: what of each limit is spent and held, and how much of a call still fits.

Before a call its whole need is held on every account that it touches, all or nothing; after it the real amount is
spent and the hold is given back. So the sum of what is spent and held never passes a limit, however many calls run at
once. Only a provider that reports more than was asked for can pass it, and then the next call is refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import ROUND_CEILING, Decimal
from typing import Any

from agents.spec import Limits

# Money is counted in billionths of a dollar, in whole numbers.
NANO = 1_000_000_000
DEFAULT_MODEL_CALLS = 300
# An answer that may hold less than this is no use, so the call is not made.
MIN_OUTPUT = 1_024
# What the closing words of a run that was stopped may have.
LAST_WORD_OUTPUT = 1_000
DIMENSIONS = ("usd", "tokens", "calls")
# Far from every limit a run may hold so many calls like the one in hand at once, and hand them out by itself.
MOST_CALLS = 16
_FAR, _SHARE = 2, 16

_FUSES = {
    "run": {"usd": "max_cost", "tokens": "max_tokens", "calls": "max_model_calls"},
    "agent": {"usd": "agent_max_cost_per_day", "tokens": "agent_max_tokens_per_day"},
    "fleet": {"usd": "fleet_max_cost_per_day", "tokens": "fleet_max_tokens_per_day"},
    "credential": {"usd": "credential_limit"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """`usd` in billionths of a dollar. A difference may be negative."""

    usd: int = 0
    tokens: int = 0
    calls: int = 0

    def __add__(self, other: "Amounts") -> "Amounts":
        return Amounts(usd=self.usd + other.usd, tokens=self.tokens + other.tokens, calls=self.calls + other.calls)

    def __sub__(self, other: "Amounts") -> "Amounts":
        return self + other * -1

    def __mul__(self, times: int) -> "Amounts":
        return Amounts(usd=self.usd * times, tokens=self.tokens * times, calls=self.calls * times)

    def covers(self, other: "Amounts") -> bool:
        return all(getattr(self, name) >= getattr(other, name) for name in DIMENSIONS)


NOTHING = Amounts()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """The limits of one account; None = none."""

    usd: int | None = None
    tokens: int | None = None
    calls: int | None = None

    def any(self) -> bool:
        return any(getattr(self, name) is not None for name in DIMENSIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """`key` is `run:<id>`, `agent:<name>:<day>`, `credential:<label>:<period>` or `fleet:<day>`. `spare` is kept free
    for the last word of the run that the account belongs to."""

    key: str
    limit: Ceilings
    spent: Amounts = NOTHING
    held: Amounts = NOTHING
    spare: Amounts = NOTHING

    def left(self, name: str, *, with_spare: bool = False, alone: bool = False) -> int | None:
        """What is free of one limit; None without one. `with_spare` counts the spare as free, `alone` what is held."""
        limit: int | None = getattr(self.limit, name)
        if limit is None:
            return None
        taken: int = getattr(self.spent, name)
        taken += 0 if alone else getattr(self.held, name)
        taken += 0 if with_spare else getattr(self.spare, name)
        return limit - taken

    def hold(self, amounts: Amounts) -> "Account":
        return replace(self, held=self.held + amounts)

    def settle(self, held: Amounts, spent: Amounts) -> "Account":
        return replace(self, held=self.held - held, spent=self.spent + spent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What one model call may take: `input_tokens` as estimated, at most `output_tokens` of answer, no less than
    `floor`; near a limit `modest` is enough, so that one call does not keep all others waiting.

    `usd` is the price of the input, `usd_per_token` that of a token of output, in billionths; both 0 where no price is
    known. Without being `priced` a call is refused by every account that limits money. `spare` is what the run wants
    kept free for its last word; `last_word`: this is it.
    """

    input_tokens: int
    output_tokens: int
    floor: int = MIN_OUTPUT
    modest: int | None = None
    usd: int = 0
    usd_per_token: Decimal = Decimal(0)
    spare: Amounts = NOTHING
    last_word: bool = False
    priced: bool = True

    def amounts(self, output: int) -> Amounts:
        usd = self.usd + int((self.usd_per_token * output).to_integral_value(ROUND_CEILING))
        return Amounts(usd=usd, tokens=self.input_tokens + output, calls=1)

    @property
    def whole(self) -> Amounts:
        return self.amounts(self.output_tokens)

    @property
    def least(self) -> int:
        return min(self.floor, self.output_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """How far one fuse is used."""

    used: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a call may take. `tight`: a limit is near, so the answer must be told its cap `output_tokens`.

    `id` is the reservation behind it. `gauges` are the fuses of the run's own account, by name.
    """

    id: str
    output_tokens: int
    held: Amounts
    tight: bool
    gauges: Mapping[str, Gauge] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Short:
    """A call that may not be made. `waits`: others hold what it needs and may give it back. `used`: of the limit, in
    its own unit (dollars rounded); `until`: when the account starts anew, if it does."""

    key: str
    fuse: str
    explanation: str
    waits: bool
    used: int = 0
    until: datetime | None = None


# --- which accounts, with which limits ---------------------------------------------------------------------------


def run_key(run: str) -> str:
    return f"run:{run}"


def fuse_of(key: str, dimension: str) -> str:
    return _FUSES[key.partition(":")[0]].get(dimension, "max_model_calls")


def ceilings_of(limits: Limits, policy: Mapping[str, Any], *, root: bool) -> Ceilings:
    """The limits of a run's own account. What it took over from its parent is kept by the parent's account, so that
    the whole tree has it once, and has more of it when the parent's is raised."""
    cost, tokens = limits.max_cost, limits.max_tokens
    return Ceilings(
        usd=None if cost is None or cost.source == "parent" else nano(cost.value),
        tokens=None if tokens is None or tokens.source == "parent" else int(tokens.value),
        calls=model_calls(policy) or (DEFAULT_MODEL_CALLS if root else None),
    )


def model_calls(policy: Mapping[str, Any]) -> int | None:
    """`max_model_calls` of a policy, the tighter one of its two tables."""
    given = fuse_values(policy, "max_model_calls")
    return min(given, default=None)


def fuse_values(policy: Mapping[str, Any], name: str) -> list[int]:
    """What the tables of a policy's data say of one whole-number fuse."""
    tables = [policy.get(table) for table in ("fuses", "stop_when")]
    found = [table.get(name) for table in tables if isinstance(table, Mapping)]
    return [int(value) for value in found if isinstance(value, int | float) and not isinstance(value, bool)]


def tree_limit(policies: Sequence[Mapping[str, Any]], name: str, default: int) -> int:
    """`max_children` or `max_depth` of a tree: the tightest that the policies of a run and of those above it name."""
    return min((value for policy in policies for value in fuse_values(policy, name)), default=default)


def nano(usd: Decimal | str) -> int:
    """Dollars in billionths, rounded up."""
    return int((Decimal(usd) * NANO).to_integral_value(ROUND_CEILING))


def dollars(amount: int) -> str:
    text = f"{Decimal(amount) / NANO:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


# --- what fits ---------------------------------------------------------------------------------------------------


def fit(need: Need, accounts: Sequence[Account], own: str) -> int | Short:
    """How many tokens of output the call may have; a Short if it may not be made. `own` is the run's own account."""
    if not need.priced and (account := _of_money(accounts)) is not None:
        why = "no price is known for this model, so that a limit of money cannot hold"
        return Short(key=account.key, fuse=fuse_of(account.key, "usd"), explanation=why, waits=False)
    output = need.output_tokens
    for account in accounts:
        output = min(output, _output(need, account, own, alone=False))
    if output >= need.least:
        after = [account.hold(need.amounts(output)) for account in accounts]
        return min(output, max(need.modest, need.least)) if need.modest and tight(after) else output
    never = next((one for one in accounts if _output(need, one, own, alone=True) < need.least), None)
    account = never or next(one for one in accounts if _output(need, one, own, alone=False) < need.least)
    return _short(need, account, own, waits=never is None)


def _of_money(accounts: Sequence[Account]) -> Account | None:
    return next((account for account in accounts if account.limit.usd is not None), None)


def _output(need: Need, account: Account, own: str, *, alone: bool) -> int:
    """The output that one account has room for; -1 if not even the request itself fits."""
    spare = need.last_word and account.key == own
    usd, tokens, calls = (account.left(name, with_spare=spare, alone=alone) for name in DIMENSIONS)
    if calls is not None and calls < 1:
        return -1
    output = need.output_tokens
    if tokens is not None:
        output = min(output, tokens - need.input_tokens)
    if usd is not None:
        if usd < need.usd:
            return -1
        if need.usd_per_token > 0:
            output = min(output, int((usd - need.usd) / need.usd_per_token))
    return output


def _short(need: Need, account: Account, own: str, *, waits: bool) -> Short:
    least = need.amounts(need.least)
    spare = need.last_word and account.key == own
    for name in DIMENSIONS:
        left = account.left(name, with_spare=spare, alone=not waits)
        if left is None or left >= getattr(least, name):
            continue
        fuse, limit, held = fuse_of(account.key, name), getattr(account.limit, name), getattr(account.held, name)
        kept = 0 if spare else getattr(account.spare, name)
        what = f"{_told(name, max(left, 0))} of {_told(name, limit)} left, a model call may take "
        what += _told(name, getattr(least, name))
        what += f"; {_told(name, held)} held by other calls" if held else ""
        what += f"; {_told(name, kept)} kept for the last word" if kept else ""
        spent = getattr(account.spent, name)
        used = round(spent / NANO) if name == "usd" else spent
        return Short(key=account.key, fuse=fuse, explanation=what, waits=waits, used=used)
    raise AssertionError(f"{account} has room for {need}")


def _told(name: str, amount: int) -> str:
    return f"${dollars(amount)}" if name == "usd" else f"{amount} tokens" if name == "tokens" else f"{amount} calls"


def tight(accounts: Sequence[Account]) -> bool:
    """Whether some limit is half taken, so that nothing may go beyond what is held."""
    return any(
        (limit := getattr(account.limit, name)) is not None
        and (getattr(account.spent, name) + getattr(account.held, name)) * _FAR >= limit
        for account in accounts
        for name in DIMENSIONS
    )


def ahead(need: Need, accounts: Sequence[Account]) -> int:
    """How many calls like this one may be held at once: a sixteenth of each limit at most, and only while no limit is
    half taken after it. 1 near a limit."""
    times = MOST_CALLS
    whole = need.whole
    for account in accounts:
        for name in DIMENSIONS:
            limit, wanted = getattr(account.limit, name), getattr(whole, name)
            if limit is None or not wanted:
                continue
            half = limit // _FAR - getattr(account.spent, name) - getattr(account.held, name)
            times = min(times, limit // _SHARE // wanted, half // wanted)
    return max(times, 1)


def spent(account: Account) -> str | None:
    """The fuse of an account of which nothing is left, whatever is held."""
    lefts = {name: account.left(name, alone=True) for name in DIMENSIONS}
    return next((fuse_of(account.key, name) for name, left in lefts.items() if left is not None and left <= 0), None)


def gauges(account: Account | None) -> dict[str, Gauge]:
    """The fuses of a run's own account."""
    if account is None:
        return {}
    return {
        fuse_of(account.key, name): Gauge(used=getattr(account.spent, name), limit=limit)
        for name in DIMENSIONS
        if (limit := getattr(account.limit, name)) is not None
    }


# --- what it came to -------------------------------------------------------------------------------------------------


def spent_of(usage: Mapping[str, int] | None, cost_usd: str | None, cost_source: str | None, held: Amounts) -> Amounts:
    """What an attempt has taken, as the log tells it. What nobody knows counts as all that was held for it; an attempt
    that never reached the provider, or was turned down by it, took nothing."""
    if cost_source == "none":
        return NOTHING
    counted = ("input", "output", "cache_read", "cache_write")
    return Amounts(
        usd=held.usd if cost_usd is None else nano(cost_usd),
        tokens=sum(usage.get(name) or 0 for name in counted) if usage else held.tokens,
        calls=1,
    )
