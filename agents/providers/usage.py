"""Token counts and cost as providers report them, brought to one normal form."""

from collections.abc import Mapping
from decimal import Context, Decimal, InvalidOperation, Overflow
from typing import Any

from agents.messages import Usage

# Nothing that is counted or paid here comes near these; more than that is noise, and breaks whoever stores it.
MAX_COUNT = 10**12
_MAX_MONEY = Decimal(10**9)
# A cost that went through binary floating point somewhere carries noise after its fifteenth digit; twelve are plenty.
_DIGITS = Context(prec=12)


def count(value: Any) -> int:
    """A token count; 0 for anything that is none."""
    if isinstance(value, bool) or value is None:
        return 0
    try:
        found = max(int(value), 0)
    except (TypeError, ValueError, OverflowError):
        return 0
    return found if found <= MAX_COUNT else 0


def money(value: Any) -> str | None:
    """A reported amount in US dollars as a plain decimal string (`0.00042`, never `4.2e-04`); None if it is none."""
    if isinstance(value, Mapping):
        value = value.get("total_cost", value.get("total"))
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        amount = _DIGITS.create_decimal(repr(value) if isinstance(value, float) else value)
    except (InvalidOperation, Overflow):
        return None
    if not amount.is_finite() or not 0 <= amount <= _MAX_MONEY:
        return None
    return plain(round(amount, 18) if amount < 1 else amount)


def plain(amount: Decimal) -> str:
    """A decimal without exponent, trailing zeros or a negative zero."""
    text = format(amount, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _first(source: Mapping[str, Any], *names: str) -> int:
    return next((n for name in names if (n := count(source.get(name)))), 0)


def _details(source: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    return next((found for name in names if isinstance(found := source.get(name), Mapping)), {})


def openai_usage(raw: Mapping[str, Any]) -> Usage | None:
    """The usage object of a chat completion; None when it counts nothing.

    `prompt_tokens` includes what came from the cache, so that part is taken out. Reasoning tokens are inside
    `completion_tokens`, except where the total shows that a provider counts them beside it.
    """
    prompt = _first(raw, "prompt_tokens", "input_tokens")
    output = _first(raw, "completion_tokens", "output_tokens")
    ins = _details(raw, "prompt_tokens_details", "input_tokens_details")
    outs = _details(raw, "completion_tokens_details", "output_tokens_details")
    read = _first(ins, "cached_tokens") or _first(
        raw, "prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens"
    )
    write = _first(ins, "cache_write_tokens", "cache_creation_tokens") or _first(raw, "cache_creation_input_tokens")
    reasoning = _first(outs, "reasoning_tokens") or _first(raw, "reasoning_tokens")
    if reasoning and count(raw.get("total_tokens")) == prompt + output + reasoning:
        output += reasoning
    if not (prompt or output or read or write):
        return None
    # A gateway that counts the cache beside the prompt shows it by a cache larger than the prompt.
    uncached = prompt - read - write if read + write <= prompt else prompt
    return Usage(input=uncached, output=max(output, reasoning), cache_read=read, cache_write=write, reasoning=reasoning)


def anthropic_usage(raw: Mapping[str, Any]) -> Usage | None:
    """The usage object of the messages API, where `input_tokens` counts uncached tokens only."""
    usage = Usage(
        input=count(raw.get("input_tokens")),
        output=count(raw.get("output_tokens")),
        cache_read=count(raw.get("cache_read_input_tokens")),
        cache_write=count(raw.get("cache_creation_input_tokens")),
    )
    return usage if usage.total else None
