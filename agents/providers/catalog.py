"""What a token costs, by model and by who serves it; an unknown price is None, never zero."""

import re
from dataclasses import dataclass
from decimal import Decimal
from urllib.parse import urlsplit

from agents.messages import Usage
from agents.providers.usage import plain

PRICES_OF = "2026-01"
_MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars per million tokens."""

    input: Decimal
    output: Decimal
    cache_read: Decimal
    cache_write: Decimal
    version: str = PRICES_OF

    def of(self, usage: Usage) -> str:
        """The cost of one attempt as a decimal string."""
        amount = (
            usage.input * self.input
            + usage.output * self.output
            + usage.cache_read * self.cache_read
            + usage.cache_write * self.cache_write
        )
        return plain(amount / _MILLION)


def _price(input_: str, output: str, cache_read: str | None = None, cache_write: str | None = None) -> Price:
    """Without a price of their own, cached tokens cost what fresh ones do: an upper bound, never a free ride."""
    return Price(
        input=Decimal(input_),
        output=Decimal(output),
        cache_read=Decimal(cache_read or input_),
        cache_write=Decimal(cache_write or input_),
    )


# The same open model costs something else at every host, so a price belongs to a host as well as to a name.
_HOSTS: dict[str, dict[str, Price]] = {
    "api.openai.com": {
        "gpt-5": _price("1.25", "10", "0.125"),
        "gpt-5-mini": _price("0.25", "2", "0.025"),
        "gpt-5-nano": _price("0.05", "0.4", "0.005"),
        "gpt-4.1": _price("2", "8", "0.5"),
        "gpt-4.1-mini": _price("0.4", "1.6", "0.1"),
        "gpt-4.1-nano": _price("0.1", "0.4", "0.025"),
        "gpt-4o": _price("2.5", "10", "1.25"),
        "gpt-4o-mini": _price("0.15", "0.6", "0.075"),
        "o3": _price("2", "8", "0.5"),
        "o4-mini": _price("1.1", "4.4", "0.275"),
    },
    "api.anthropic.com": {
        "claude-opus-4-5": _price("5", "25", "0.5", "6.25"),
        "claude-opus-4-1": _price("15", "75", "1.5", "18.75"),
        "claude-sonnet-4-5": _price("3", "15", "0.3", "3.75"),
        "claude-sonnet-4": _price("3", "15", "0.3", "3.75"),
        "claude-haiku-4-5": _price("1", "5", "0.1", "1.25"),
    },
    "api.deepseek.com": {
        "deepseek-chat": _price("0.28", "0.42", "0.028"),
        "deepseek-reasoner": _price("0.28", "0.42", "0.028"),
    },
}

# The scripted models that the drill server plays; wherever it runs, they cost this much.
_DRILL = _price("0.50", "1.50")
DRILL_MODELS = frozenset({"tour", "slow", "runaway", "batch", "family", "family-child", "chat", "bench"})

_DATED = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|-latest)$")


def price(model: str, base_url: str) -> Price | None:
    """The price of a model at a base URL; dated names (`gpt-4o-2024-08-06`) cost what the plain one does."""
    if model in DRILL_MODELS:
        return _DRILL
    at_host = _HOSTS.get((urlsplit(base_url).hostname or "").lower(), {})
    return at_host.get(model) or at_host.get(_DATED.sub("", model))
