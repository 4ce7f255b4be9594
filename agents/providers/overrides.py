"""The operator's own model table: the TOML file that MODEL_CATALOG names; it counts before everything else.

    [[model]]
    name = "our-model-*"            # shell pattern over the whole name
    base_url = "https://host/v1"    # only there; left out, everywhere
    window = 131072
    output_cap = 32768
    version = "contract 2026-11"    # kept with every cost; the file's name by default
    price = { input = "0.50", output = "1.50", cache_read = "0.05", cache_write = "0.60" }   # US dollars per million

A price of 0 declares a model free, which is something else than no price.
"""

import os
import tomllib
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

from agents.errors import ConfigError
from agents.providers.prices import Price, flat

VARIABLE = "MODEL_CATALOG"
_MAX_PRICE = Decimal(100_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One entry; None leaves the question to the other tables."""

    name: str
    base_url: str | None = None
    window: int | None = None
    output_cap: int | None = None
    price: Price | None = None

    def fits(self, model: str, base_url: str | None) -> bool:
        if not fnmatchcase(model, self.name):
            return False
        return self.base_url is None or (base_url is not None and base_url.strip().rstrip("/") == self.base_url)


def rows() -> tuple[Row, ...]:
    """The operator's entries; none without a file. Raises ConfigError `bad_model_catalog`."""
    path = os.environ.get(VARIABLE, "").strip()
    if not path:
        return ()
    try:
        return _read(path, os.stat(Path(path).expanduser()).st_mtime_ns)
    except OSError as error:
        raise ConfigError("bad_model_catalog", f"{VARIABLE} {path} cannot be read: {error.strerror}") from None


@lru_cache(maxsize=4)
def _read(path: str, changed: int) -> tuple[Row, ...]:
    try:
        raw = tomllib.loads(Path(path).expanduser().read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError("bad_model_catalog", f"{VARIABLE} {path} is no valid TOML: {error}") from None
    models = raw.get("model", [])
    if not isinstance(models, list):
        raise ConfigError("bad_model_catalog", f"{path}: write each model under [[model]]")
    return tuple(_row(entry, f"{path}, model {number}") for number, entry in enumerate(models, start=1))


def _row(entry: Any, where: str) -> Row:
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name:
        raise ConfigError("bad_model_catalog", f"{where}: it needs a name")
    if unknown := sorted(entry.keys() - {"name", "base_url", "window", "output_cap", "version", "price"}):
        raise ConfigError("bad_model_catalog", f"{where}: {', '.join(unknown)} is not known here")
    base_url = entry.get("base_url")
    version = str(entry.get("version") or Path(where.partition(",")[0]).name)
    return Row(
        name=name,
        base_url=str(base_url).strip().rstrip("/") if base_url else None,
        window=_count(entry, "window", where),
        output_cap=_count(entry, "output_cap", where),
        price=_price(entry["price"], version, where) if "price" in entry else None,
    )


def _count(entry: dict[str, Any], name: str, where: str) -> int | None:
    value = entry.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= 10**9:
        raise ConfigError("bad_model_catalog", f"{where}: {name} is a number of tokens, not {value!r:.60}")
    return value


def _price(raw: Any, version: str, where: str) -> Price:
    if not isinstance(raw, dict) or not {"input", "output"} <= raw.keys():
        raise ConfigError("bad_model_catalog", f"{where}: a price has input and output, in US dollars per million")
    rates = {}
    for name, value in raw.items():
        if name not in ("input", "output", "cache_read", "cache_write"):
            raise ConfigError("bad_model_catalog", f"{where}: price.{name} is not known here")
        try:
            rates[name] = Decimal(str(value))
        except InvalidOperation:
            rates[name] = Decimal(-1)
        if isinstance(value, bool) or not rates[name].is_finite() or not 0 <= rates[name] <= _MAX_PRICE:
            raise ConfigError(
                "bad_model_catalog", f"{where}: price.{name} is an amount of US dollars, not {value!r:.60}"
            )
    return flat(rates["input"], rates["output"], rates.get("cache_read"), rates.get("cache_write"), version=version)
