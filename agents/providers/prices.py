"""What tokens cost: one price with its dearer tiers, and how it is read from the `genai-prices` library.

The library is a data table that comes with the package: it is imported when the first real model is used, since that
takes most of a second, and it never opens a socket unless its updater is started, which nobody here does.
"""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from agents.messages import Usage
from agents.providers.usage import plain

_MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars per million tokens, and per request where there is such a fee.

    `above` holds what counts instead for a prompt of more than so many tokens, smallest first. `version` names the
    table that the price comes from.
    """

    input: Decimal
    output: Decimal
    cache_read: Decimal
    cache_write: Decimal
    version: str
    request: Decimal = Decimal(0)
    above: tuple[tuple[int, "Price"], ...] = ()

    def of(self, usage: Usage) -> str:
        """The cost of one attempt as a decimal string."""
        rate = self
        for tokens, dearer in self.above:
            if usage.prompt > tokens:
                rate = dearer
        amount = (
            usage.input * rate.input
            + usage.output * rate.output
            + usage.cache_read * rate.cache_read
            + usage.cache_write * rate.cache_write
        )
        return plain(amount / _MILLION + rate.request)


def flat(
    input_: str | Decimal,
    output: str | Decimal,
    cache_read: str | Decimal | None = None,
    cache_write: str | Decimal | None = None,
    *,
    version: str,
) -> Price:
    """Without a price of their own, cached tokens cost what fresh ones do: an upper bound, never a free ride."""
    return Price(
        input=Decimal(input_),
        output=Decimal(output),
        cache_read=Decimal(input_ if cache_read is None else cache_read),
        cache_write=Decimal(input_ if cache_write is None else cache_write),
        version=version,
    )


# --- the library -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the library says of a model; None where it says nothing."""

    price: Price | None
    window: int | None


NOTHING = Known(price=None, window=None)


def look_up(model: str, *, provider: str | None = None, url: str | None = None) -> Known:
    """A model by the library's name of its provider, by an address, or by its name alone."""
    library = _library()
    where = {"provider_id": provider} if provider else {"provider_api_url": url} if url else {}
    try:
        found = library.calc_price(library.Usage(input_tokens=0, output_tokens=0), model, **where)
    except (LookupError, ValueError):
        return NOTHING
    if url and not provider and not _covers(found.provider.api_pattern, url):
        return NOTHING
    return Known(
        price=_price(found.model_price, f"genai-prices {library.__version__}"), window=found.model.context_window
    )


def warm() -> None:
    """Import the library in a thread of its own, so that no event loop waits for it later."""
    if not _warming.is_set():
        _warming.set()
        threading.Thread(target=_library, name="prices", daemon=True).start()


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """A price that is known, or that the library is asked for when it is needed."""

    known: Price | None = None
    ask: Callable[[], Price | None] | None = None

    def __call__(self) -> Price | None:
        return self.known if self.ask is None else self.ask()

    def at_once(self) -> Price | None:
        """None rather than waiting for the library, for whoever is being stopped."""
        return self() if self.ask is None or _ready.is_set() else None


UNPRICED = Later()


_warming, _ready = threading.Event(), threading.Event()


@cache
def _library() -> Any:
    import genai_prices

    # Its table is a module of its own that is read with the first question.
    try:
        genai_prices.calc_price(genai_prices.Usage(input_tokens=0, output_tokens=0), "gpt-5")
    except LookupError:
        pass
    _ready.set()
    return genai_prices


def is_private(url: str) -> bool:
    """Whether an address is a machine or a network of one's own, which no public price list speaks of."""
    host = (urlsplit(url).hostname or "").lower()
    try:
        return not ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".lan", ".home.arpa", ".localhost"))


def _covers(pattern: str, url: str) -> bool:
    """Patterns there match a beginning: `https://api.x.com` would also match `https://api.x.com.elsewhere.net`."""
    parts = urlsplit(url)
    found = re.match(pattern, url)
    return found is not None and found.end() >= len(f"{parts.scheme}://{parts.netloc}")


def _price(raw: Any, version: str) -> Price | None:
    """Without both a price for input and one for output there is none: half of one would make the rest free."""
    rates = {name: getattr(raw, f"{name}_mtok", None) for name in ("input", "output", "cache_read", "cache_write")}
    if rates["input"] is None or rates["output"] is None:
        return None
    fee = getattr(raw, "requests_kcount", None)
    starts = sorted({tier.start for rate in rates.values() for tier in getattr(rate, "tiers", ())})
    base = _rate(rates, fee, version, 0)
    return Price(
        input=base.input,
        output=base.output,
        cache_read=base.cache_read,
        cache_write=base.cache_write,
        version=version,
        request=base.request,
        above=tuple((start, _rate(rates, fee, version, start + 1)) for start in starts),
    )


def _rate(rates: dict[str, Any], fee: Any, version: str, prompt: int) -> Price:
    def at(name: str) -> Decimal | None:
        rate = rates[name]
        dearer = [tier.price for tier in getattr(rate, "tiers", ()) if prompt > tier.start]
        found: Decimal | None = dearer[-1] if dearer else getattr(rate, "base", rate)
        return found

    read, write, fresh, output = at("cache_read"), at("cache_write"), at("input") or Decimal(0), at("output")
    return Price(
        input=fresh,
        output=output or Decimal(0),
        cache_read=fresh if read is None else read,
        cache_write=fresh if write is None else write,
        version=version,
        request=Decimal(0) if fee is None else Decimal(getattr(fee, "base", fee)) / 1000,
    )
