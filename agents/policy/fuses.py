"""Hard per-run limits: what has been used, and which limit is spent. Fails closed."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from agents.policy.accounts import Gauge
from agents.spec import Limit, Limits
from agents.verdicts import Rung, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What a run has used so far; `cost` None when nothing is priced yet; seconds since the first start,
    `working` of them neither waiting for a person or for quota nor without a worker.
    """

    turns: int = 0
    steps: int = 0
    tokens: int = 0
    cost: Decimal | None = None
    seconds: float = 0.0
    working: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    """A limit that forbids to go on. `count`: what was used, in the fuse's own unit, rounded."""

    fuse: str
    explanation: str
    count: int = 0

    def verdict(self, step: int) -> Verdict:
        """As the log has it; `step`: tool calls of the run so far."""
        return Verdict(
            detector="fuses",
            rung=Rung.STOP,
            rule=self.fuse,
            fingerprint="",
            step=step,
            count=self.count,
            evidence=(),
            explanation=self.explanation,
            advice=f"Raise {self.fuse} to let a run like this go on.",
        )


# A fuse that is used so far is told of, once.
WARN_SHARE = Decimal("0.8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearing:
    """`share` in percent, or the count itself where the policy names one to warn at."""

    fuse: str
    share: int
    explanation: str

    def verdict(self, step: int) -> Verdict:
        return Verdict(
            detector="fuses",
            rung=Rung.OBSERVE,
            rule=self.fuse,
            fingerprint="",
            step=step,
            count=self.share,
            evidence=(),
            explanation=self.explanation,
        )


def warnings(limits: Limits, used: Used, gauges: Mapping[str, Gauge], warn_calls: int | None) -> list[Nearing]:
    """The fuses of which four fifths are used. `gauges` are those of the run's account, its sub-agents included; what
    is its parent's is told of there."""
    shares: dict[str, tuple[Decimal, Decimal]] = {
        name: (Decimal(one.used), Decimal(one.limit)) for name, one in gauges.items()
    }
    calls = shares.get("max_model_calls")
    own = {"max_turns": used.turns, "max_steps": used.steps, "max_seconds": used.seconds}
    for name, amount in own.items():
        if (limit := getattr(limits, name)) is not None:
            shares[name] = Decimal(amount), limit.value
    found = [
        Nearing(fuse=name, share=int(amount * 100 / limit), explanation=f"{_percent(amount, limit)} of {name} is used")
        for name, (amount, limit) in shares.items()
        if limit > 0 and amount >= limit * WARN_SHARE
    ]
    if warn_calls is not None and calls is not None and calls[0] >= warn_calls:
        what = f"{calls[0]} of {calls[1]} model calls are made"
        found.append(Nearing(fuse="warn_model_calls", share=int(calls[0]), explanation=what))
    return found


def _percent(amount: Decimal, limit: Decimal) -> str:
    return f"{int(amount * 100 / limit)} %"


def before_model_call(limits: Limits, used: Used) -> Trip | None:
    """The fuse that forbids another model call, if one does. The turn budget is none: it exhausts, not trips.

    What a sub-agent's parent is limited to is kept by the parent's account.
    """
    if _own(limits.max_tokens) and limits.max_tokens and used.tokens >= limits.max_tokens.value:
        return Trip(
            fuse="max_tokens",
            explanation=f"{used.tokens} of {limits.max_tokens.value} tokens are used",
            count=used.tokens,
        )
    if _own(limits.max_cost) and limits.max_cost and used.cost is not None and used.cost >= limits.max_cost.value:
        return Trip(fuse="max_cost", explanation=f"${used.cost} of ${limits.max_cost.value} is spent")
    return out_of_time(limits, None, used)


def _own(limit: Limit | None) -> bool:
    return limit is not None and limit.source != "parent"


def out_of_time(limits: Limits, working_limit: float | None, used: Used) -> Trip | None:
    """The clock that has run out, if one has; `working_limit` in seconds."""
    if limits.max_seconds and used.seconds >= limits.max_seconds.value:
        return Trip(
            fuse="max_seconds",
            explanation=f"{used.seconds:.0f} of {limits.max_seconds.value} seconds have passed",
            count=int(used.seconds),
        )
    if working_limit is not None and used.working >= working_limit:
        return Trip(
            fuse="max_working_seconds",
            explanation=f"{used.working:.0f} of {working_limit:.0f} seconds of work have passed",
            count=int(used.working),
        )
    return None


def time_left(limits: Limits, working_limit: float | None, used: Used) -> float | None:
    """Seconds until a clock runs out at the earliest; None if none will."""
    left = [float(limits.max_seconds.value) - used.seconds] if limits.max_seconds else []
    if working_limit is not None:
        left.append(working_limit - used.working)
    return min(left, default=None)
