"""What to do about a failed attempt at the model: wait and try again, or give up with a clear reason."""

from dataclasses import dataclass

RETRYABLE = frozenset({"rate_limit", "overloaded", "server_error", "timeout", "connection", "malformed_response"})
MAX_ATTEMPTS = 3
FIRST_WAIT_S = 1.0
# A provider may ask for hours; a person would rather be told. One wait and their sum are both bounded.
MAX_WAIT_S = 120.0
MAX_TOTAL_WAIT_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    why: str


def decide(*, kind: str, attempt: int, retry_after_s: float | None, waited_s: float, jitter: float) -> Retry | GiveUp:
    """`attempt` counts from 1; `jitter` in 0..1 spreads the back-off; nothing is retried without a wait."""
    if kind not in RETRYABLE:
        return GiveUp(why=f"{kind} is not cured by trying again")
    if attempt >= MAX_ATTEMPTS:
        return GiveUp(why=f"{attempt} attempts failed")
    wait = FIRST_WAIT_S * 2 ** (attempt - 1) * (0.5 + jitter / 2)
    if retry_after_s is not None:
        wait = max(wait, min(retry_after_s, MAX_WAIT_S))
    if waited_s + wait > MAX_TOTAL_WAIT_S:
        return GiveUp(why=f"waited {waited_s:.0f} s in all")
    return Retry(wait_s=round(min(wait, MAX_WAIT_S), 3))
