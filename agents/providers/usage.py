"""Token counts and cost as providers report them, brought to one normal form."""

from collections.abc import Mapping
from decimal import Context, Decimal, InvalidOperation, Overflow
from typing import Any

from agents.messages import Usage

# Nothing that is counted or paid here comes near these; more than that is noise, and breaks whoever stores it.
MAX_COUNT = 10**12
_MAX_MONEY = Decimal(10**9)
# More than any model thinks in one answer; a sum that is further off is wrong, not full of thoughts.
_MAX_HIDDEN = 262_144
# A cost that went through binary floating point somewhere carries noise after its fifteenth digit; twelve are plenty.
_DIGITS = Context(prec=12)


def count(value: Any) -> int:
    """A token count; 0 for anything that is none."""
    if value.__class__ is int:
        return value if 0 < value <= MAX_COUNT else 0
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
    for name in names:
        value = source.get(name)
        if value is not None and (found := count(value)):
            return found
    return 0


def _details(source: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        found = source.get(name)
        if found is not None and isinstance(found, Mapping):
            return found
    return {}


def openai_usage(raw: Mapping[str, Any]) -> Usage | None:
    """The usage object of a chat completion or a response; None when it counts nothing."""
    return read_openai(raw)[0]


def read_openai(raw: Mapping[str, Any]) -> tuple[Usage | None, tuple[str, ...]]:
    """The counts in their normal form, and what is odd about them.

    `prompt_tokens` includes what came from the cache, so that part is taken out, and `completion_tokens` includes
    reasoning. Not everywhere: where there is a total, it shows what was counted beside.
    """
    prompt = _first(raw, "prompt_tokens", "input_tokens", "promptTokenCount")
    output = _first(raw, "completion_tokens", "output_tokens", "candidatesTokenCount")
    ins = _details(raw, "prompt_tokens_details", "input_tokens_details")
    outs = _details(raw, "completion_tokens_details", "output_tokens_details")
    beside = _first(raw, "cache_read_input_tokens"), _first(raw, "cache_creation_input_tokens")
    read = _first(ins, "cached_tokens") or _first(
        raw, "prompt_cache_hit_tokens", "cached_tokens", "cachedContentTokenCount"
    ) or beside[0]  # fmt: skip
    write = _first(ins, "cache_write_tokens", "cache_creation_tokens") or beside[1]
    reasoning = _first(outs, "reasoning_tokens") or _first(raw, "reasoning_tokens", "thoughtsTokenCount")
    total = _first(raw, "total_tokens", "totalTokenCount")
    if not (prompt or output or read or write):
        return None, ()
    notes = []
    rest = total - prompt - output if total else 0
    if read + write and (rest in (read + write, read + write + reasoning) or (beside != (0, 0) and not total)):
        # The cache counted beside the prompt, as the messages API does it. Gateways mix the two.
        rest -= read + write if total else 0
        fresh = prompt if total or read + write > prompt else prompt - read - write
    else:
        if read + write > prompt:
            notes.append("cache_exceeds_prompt")
            read = min(read, prompt)
            write = min(write, prompt - read)
        fresh = prompt - read - write
    if rest > 0 and (rest == reasoning or (not reasoning and rest <= _MAX_HIDDEN)):
        # Counted beside the output; where nobody names them, what is missing in the sum can only be hidden thoughts.
        notes += [] if reasoning else ["reasoning_by_total"]
        output, reasoning = output + rest, rest
    elif rest:
        notes.append("total_mismatch")
    if not (total or reasoning or "reasoning_tokens" in outs or "reasoning_tokens" in raw):
        notes.append("reasoning_unknown")
    usage = Usage(input=fresh, output=max(output, reasoning), cache_read=read, cache_write=write, reasoning=reasoning)
    return usage, tuple(notes)


def anthropic_usage(raw: Mapping[str, Any]) -> Usage | None:
    """The usage object of the messages API, where `input_tokens` counts uncached tokens only."""
    usage = Usage(
        input=count(raw.get("input_tokens")),
        output=count(raw.get("output_tokens")),
        cache_read=count(raw.get("cache_read_input_tokens")),
        cache_write=count(raw.get("cache_creation_input_tokens")),
    )
    return usage if usage.total else None
