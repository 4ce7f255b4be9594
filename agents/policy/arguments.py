"""Tool arguments as history, log and page hold them; what executes is the text as given."""

import json
from typing import Any

import orjson

from agents.policy.redaction import Safe, make_safe, make_safe_value, merge


def safe_args(raw: str) -> Safe:
    """The text made safe, by pattern everywhere and by key name where it is JSON; untouched if nothing was amiss."""
    safe = make_safe(raw)
    try:
        value = _loads(safe.text)
        clean = make_safe_value(value)
        if clean.altered is None:
            return safe
        return Safe(text=orjson.dumps(clean.value).decode(), altered=merge(safe.altered, clean.altered))
    except (ValueError, TypeError, RecursionError):  # no JSON, or numbers that only Python can hold
        return safe


def _loads(text: str) -> Any:
    """Also what strict parsers refuse and lenient ones on the way would not: half a character as an escape, NaN."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text, strict=False)
