"""What an attempt has cost: as reported, by the price table, or estimated from the text where nobody counted."""

from collections.abc import Callable
from decimal import Decimal

from agents.errors import Spent
from agents.messages import Usage
from agents.policy.budgets import text_tokens
from agents.providers.prices import Price
from agents.providers.stream import Fold
from agents.providers.usage import plain

NOTHING = Spent(usage=None, cost_usd="0", cost_source="none")
UNKNOWN = Spent(usage=None, cost_usd=None, cost_source="unknown")

PriceNow = Callable[[], Price | None]


def of_answer(fold: Fold, body: bytes, price: PriceNow, reported: str | None) -> Spent:
    """A complete answer. `reported` is the cost that the provider named itself; it counts before our table."""
    usage, guessed = fold.usage(), not fold.counted
    if guessed:
        usage = estimate(fold, body)
    if reported is not None:
        return Spent(usage=usage, cost_usd=reported, cost_source="reported", estimated=guessed, notes=fold.notes())
    return _priced(usage, price, guessed, fold.notes())


def of_failure(
    fold: Fold, body: bytes, price: PriceNow, *, sent: bool, status: int | None, reported: str | None = None
) -> Spent:
    """An attempt that gave no answer.

    One that never reached the provider, or was turned down by it, cost nothing. One that was under way is counted, if
    need be by its text; of one that was sent and never answered nothing is known.
    """
    if not sent or (status is not None and status >= 300 and not fold.counted):
        return NOTHING
    if fold.counted:
        usage = fold.usage()
        if reported is not None:
            return Spent(usage=usage, cost_usd=reported, cost_source="reported", notes=fold.notes())
        return _priced(usage, price, False, fold.notes())
    if status is None:
        return UNKNOWN
    return _priced(estimate(fold, body), price, True, fold.notes())


def estimate(fold: Fold, body: bytes) -> Usage:
    """Tokens by the text that went out and came in; what a provider has counted so far is taken from it."""
    told = fold.usage() or Usage()
    prompt = told if told.prompt else Usage(input=text_tokens(body.decode("utf-8", "replace")))
    output = max(told.output, text_tokens(fold.written()))
    return Usage(
        input=prompt.input,
        cache_read=prompt.cache_read,
        cache_write=prompt.cache_write,
        output=output,
        reasoning=told.reasoning,
    )


def _priced(usage: Usage | None, price: PriceNow, guessed: bool, notes: tuple[str, ...]) -> Spent:
    rate = price() if usage is not None else None
    if usage is None or rate is None:
        return Spent(usage=usage, cost_usd=None, cost_source="unknown", estimated=guessed, notes=notes)
    return Spent(
        usage=usage,
        cost_usd=rate.of(usage),
        cost_source="estimated" if guessed else "price_table",
        price_version=rate.version,
        estimated=guessed,
        notes=notes,
    )


def added(first: Spent, second: Spent) -> Spent:
    """Two requests that make one attempt; unknown when either is."""
    usage = first.usage.plus(second.usage) if first.usage and second.usage else first.usage or second.usage
    known = first.cost_usd is not None and second.cost_usd is not None
    sources = {first.cost_source, second.cost_source} - {"none"}
    return Spent(
        usage=usage,
        cost_usd=plain(Decimal(first.cost_usd or 0) + Decimal(second.cost_usd or 0)) if known else None,
        cost_source=("estimated" if "estimated" in sources else min(sources, default="none")) if known else "unknown",
        price_version=second.price_version or first.price_version,
        estimated=first.estimated or second.estimated,
        notes=(*first.notes, *(note for note in second.notes if note not in first.notes)),
    )
