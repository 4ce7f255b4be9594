"""Hard per-run limits: what has been used, and which limit is spent. Fails closed."""

from dataclasses import dataclass
from decimal import Decimal

from agents.spec import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What a run has used so far; `cost` None when nothing is priced yet; seconds since the first start."""

    turns: int = 0
    steps: int = 0
    tokens: int = 0
    cost: Decimal | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    fuse: str
    explanation: str


def before_model_call(limits: Limits, used: Used) -> Trip | None:
    """The fuse that forbids another model call, if one does. The turn budget is none: it exhausts, not trips."""
    if limits.max_tokens and used.tokens >= limits.max_tokens.value:
        return _trip("max_tokens", f"{used.tokens} of {limits.max_tokens.value} tokens are used")
    if limits.max_cost and used.cost is not None and used.cost >= limits.max_cost.value:
        return _trip("max_cost", f"${used.cost} of ${limits.max_cost.value} is spent")
    if limits.max_seconds and used.seconds >= limits.max_seconds.value:
        return _trip("max_seconds", f"{used.seconds:.0f} of {limits.max_seconds.value} seconds have passed")
    return None


def before_steps(limits: Limits, used: Used, asked: int) -> Trip | None:
    """The fuse that forbids the `asked` tool calls of the coming batch; none of them runs then."""
    if limits.max_steps and used.steps + asked > limits.max_steps.value:
        return _trip("max_steps", f"step {used.steps + asked} would pass the limit of {limits.max_steps.value}")
    return before_model_call(limits, used)


def _trip(fuse: str, what: str) -> Trip:
    return Trip(fuse=fuse, explanation=f"{what}; raise {fuse} to let a run like this go on")
