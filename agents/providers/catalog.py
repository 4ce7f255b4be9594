"""What is known of a model: price, window and output cap; what is not known is None, never zero.

The operator's own table counts first, then the scripted models, then the price library, which is only asked about
public addresses: the same open model costs something else at every host, so a price belongs to both.
"""

from dataclasses import dataclass
from urllib.parse import urlsplit

from agents.providers import overrides, prices
from agents.providers.caps import caps
from agents.providers.prices import NOTHING, UNPRICED, Known, Later, Price, flat
from agents.providers.profiles import by_host

__all__ = ["DRILL_MODELS", "Price", "later", "output_cap", "price", "warm", "window"]

warm = prices.warm


_DRILL_PRICE = flat("0.50", "1.50", version="drill")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted:
    """A model that the drill server plays; wherever it runs, it costs this much."""

    price: Price = _DRILL_PRICE
    window: int | None = None
    output_cap: int | None = None


DRILL: dict[str, Scripted] = {
    name: Scripted() for name in ("tour", "slow", "runaway", "batch", "family", "family-child", "tree", "chat", "bench")
}
DRILL_MODELS = frozenset(DRILL)


def price(model: str, base_url: str) -> Price | None:
    """The price of a model at a base URL. Raises ConfigError `bad_model_catalog` for the operator's table."""
    for row in overrides.rows():
        if row.price is not None and row.fits(model, base_url):
            return row.price
    if model in DRILL:
        return DRILL[model].price
    return _known(model, base_url).price


def later(model: str, base_url: str) -> Later:
    """The price as a question to be asked later, so that no event loop waits for the library; asked every time, since
    some prices go by the hour. Raises ConfigError at once."""
    given = [row.price for row in overrides.rows() if row.price is not None and row.fits(model, base_url)]
    if given or model in DRILL:
        return Later(known=given[0] if given else DRILL[model].price)
    if prices.is_private(base_url):
        return UNPRICED
    prices.warm()
    return Later(ask=lambda: _known(model, base_url).price)


def window(model: str, base_url: str | None = None) -> int | None:
    """How many tokens a request and its answer may have together. Raises ConfigError `bad_model_catalog`."""
    for row in overrides.rows():
        if row.window is not None and row.fits(model, base_url):
            return row.window
    if model in DRILL:
        return DRILL[model].window
    return caps(model)[0] or _known(model, base_url).window


def output_cap(model: str, base_url: str | None = None) -> int | None:
    """The most tokens that one answer may have. Raises ConfigError `bad_model_catalog`."""
    for row in overrides.rows():
        if row.output_cap is not None and row.fits(model, base_url):
            return row.output_cap
    return DRILL[model].output_cap if model in DRILL else caps(model)[1]


def _known(model: str, base_url: str | None) -> Known:
    if base_url is None:
        return prices.look_up(model)
    if prices.is_private(base_url):
        return NOTHING
    profile = by_host(urlsplit(base_url).hostname or "")
    if profile is not None and profile.prices:
        return prices.look_up(model, provider=profile.prices)
    return prices.look_up(model, url=base_url)
