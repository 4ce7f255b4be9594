"""What to do about a failed attempt at the model: wait, mend the request, change the key or the model, or give up.

Permissions come from the judgement of the failure, the order from here: mend what was wrong with the request, take
another key, wait and try again, go on with the next model, wait for quota, give up. Nothing is retried without a wait.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from agents.errors import ClassifiedError

MAX_ATTEMPTS = 3
# Of a failure that says nothing: one careful retry.
MAX_ATTEMPTS_UNKNOWN = 2
FIRST_WAIT_S = 1.0
# A provider may ask for hours; a person would rather be told. One wait and their sum in one call are both bounded.
MAX_WAIT_S = 120.0
MAX_TOTAL_WAIT_S = 300.0
# Before a request that is another one than the last: short, so that a burst of failures is no burst of requests.
SOON_S = 0.4
# A limit without an end that outlasted every attempt; and the longest that a named one is believed.
PAUSE_S = 60.0
MAX_PAUSE_S = 7 * 86_400.0
# An answer that may hold less than this is no use; then the request has to shrink.
MIN_OUTPUT_TOKENS = 256

_MENDED = frozenset({"context_overflow", "payload_too_large", "invalid_tool_call_history"})
_QUOTA = frozenset({"rate_limit", "billing"})
# What lies in the request, the key or the account does not pass by itself.
_LASTING = frozenset({"auth", "billing", "permission", "model_not_found", "format_error", "content_policy"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What one call has been through. `failures` at the present model and key that were simply tried again; `waited_s`
    over all of them; the rest are repairs, each of which is tried once."""

    failures: int = 0
    waited_s: float = 0.0
    compressed: bool = False
    repaired: bool = False
    lowered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chances:
    """What there is to go on with.

    `key`: another key for this model may be used now. `rests_s`: seconds until the first key is back (inf: nobody knows
    when; None: keys do not rest). `pooled`: the key belongs to a pool, where it rests for as long as it was told to.
    `output_cap`: what the provider says that the output may be.
    """

    key: bool = False
    model: bool = False
    rests_s: float | None = None
    pooled: bool = False
    compress: bool = False
    repair: bool = False
    output_cap: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    action: ClassVar[str] = "retry"
    wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotate:
    """Go on with another key; this one rests for `cooldown_s` (None: as the pool sees fit, or for good)."""

    action: ClassVar[str] = "rotate"
    wait_s: float
    cooldown_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FallBack:
    action: ClassVar[str] = "fall_back"
    wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Compress:
    action: ClassVar[str] = "compress"
    wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    action: ClassVar[str] = "repair"
    wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerOutput:
    action: ClassVar[str] = "lower_output"
    wait_s: float
    cap: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitForQuota:
    """Wait outside of the call. `after_s`: when to look again; None: only a person can bring money."""

    after_s: float | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    why: str


Another = Retry | Rotate | FallBack | Compress | Repair | LowerOutput
Step = Another | WaitForQuota | GiveUp


def decide(fault: ClassifiedError, tried: Tried, chances: Chances, jitter: float) -> Step:
    """What comes after one more failure; `jitter` in 0..1 spreads the waits."""
    if fault.reason == "cancelled":
        return GiveUp(why="it was cancelled by this side")
    soon = _soon(jitter)
    mended = _mend(fault, tried, chances, soon)
    if mended is not None:
        return mended
    if fault.should_rotate_credential and chances.key:
        return Rotate(wait_s=soon, cooldown_s=fault.retry_after_s)
    again = _again(fault, tried, chances, jitter)
    if isinstance(again, Retry):
        return again
    if chances.model and (fault.should_fallback_model or fault.retryable):
        return FallBack(wait_s=soon)
    return _quota(fault, chances, again) or GiveUp(why=again)


def at_rest(rests_s: float, tried: Tried, *, model: bool, why: str, jitter: float) -> Retry | FallBack | WaitForQuota:
    """No key may be used now, and none was tried: wait if it is not for long, else go on with the next model."""
    wait = round(rests_s + _soon(jitter) / 2, 3) if rests_s <= MAX_WAIT_S else math.inf
    if tried.waited_s + wait <= MAX_TOTAL_WAIT_S:
        return Retry(wait_s=wait)
    if model:
        return FallBack(wait_s=_soon(jitter))
    return WaitForQuota(after_s=_pause(rests_s), why=why)


def lasts(reason: str) -> bool:
    """Whether a model that was left for this reason is not worth going back to."""
    return reason in _LASTING


def _mend(fault: ClassifiedError, tried: Tried, chances: Chances, soon: float) -> Another | None:
    """The one repair that the reason names, once."""
    cap = chances.output_cap
    if cap is not None and not tried.lowered and fault.reason in ("format_error", "context_overflow"):
        if cap >= MIN_OUTPUT_TOKENS:
            return LowerOutput(wait_s=soon, cap=cap)
        if chances.compress and not tried.compressed:
            return Compress(wait_s=soon)
    if fault.should_compress and chances.compress and not tried.compressed:
        return Compress(wait_s=soon)
    if fault.reason == "invalid_tool_call_history" and chances.repair and not tried.repaired:
        return Repair(wait_s=soon)
    return None


def _again(fault: ClassifiedError, tried: Tried, chances: Chances, jitter: float) -> Retry | str:
    """The same once more after a wait; or why not."""
    if not fault.retryable and not _another_rests(fault, chances):
        return f"{fault.reason} is not cured by trying again"
    if fault.reason in _MENDED:
        return "there is nothing left to mend about the request"
    failures = tried.failures + 1
    if failures >= (MAX_ATTEMPTS_UNKNOWN if fault.reason == "unknown" else MAX_ATTEMPTS):
        return f"{failures} attempts failed"
    wait = FIRST_WAIT_S * 2 ** (failures - 1) * (0.5 + jitter / 2)
    named = _named(fault, chances)
    if named > MAX_WAIT_S:
        if chances.pooled:
            return f"the wait that was named, {named:.0f} s, is too long for one call"
        named = MAX_WAIT_S
    if named:
        # A little later than told, and not all at once: many runs may wait for the same moment.
        wait = max(wait, named + jitter * min(1.0, named / 10))
    wait = round(min(wait, MAX_WAIT_S), 3)
    if tried.waited_s + wait > MAX_TOTAL_WAIT_S:
        return f"waited {tried.waited_s:.0f} s in all"
    return Retry(wait_s=wait)


def _quota(fault: ClassifiedError, chances: Chances, why: str) -> WaitForQuota | None:
    """Money or a limit is used up: not a failure, a pause. A short limit without a pool is one."""
    if fault.reason not in _QUOTA and not _another_rests(fault, chances):
        return None
    if fault.reason == "billing":
        return WaitForQuota(after_s=_pause(chances.rests_s or math.inf), why="the account has no money left")
    named = _named(fault, chances)
    if named <= MAX_WAIT_S and not chances.pooled:
        return None
    return WaitForQuota(after_s=_pause(max(named, PAUSE_S)), why=why)


def _another_rests(fault: ClassifiedError, chances: Chances) -> bool:
    """This key is refused for good, but another one of its pool is only at rest."""
    return fault.reason == "auth" and chances.pooled and chances.rests_s is not None and math.isfinite(chances.rests_s)


def _named(fault: ClassifiedError, chances: Chances) -> float:
    return max(fault.retry_after_s or 0.0, chances.rests_s or 0.0)


def _pause(seconds: float) -> float | None:
    return None if math.isinf(seconds) else min(seconds, MAX_PAUSE_S)


def _soon(jitter: float) -> float:
    return round(SOON_S * (0.5 + jitter / 2), 3)
