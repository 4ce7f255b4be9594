"""Tool arguments as history, log and page hold them; what executes is the text as given."""

import orjson

from agents.policy.redaction import Safe, make_safe, make_safe_value, merge


def safe_args(raw: str) -> Safe:
    """The text made safe, by pattern everywhere and by key name where it is JSON; untouched if nothing was amiss."""
    safe = make_safe(raw)
    try:
        value = orjson.loads(safe.text)
    except orjson.JSONDecodeError:
        return safe
    clean = make_safe_value(value)
    if clean.altered is None:
        return safe
    return Safe(text=orjson.dumps(clean.value).decode(), altered=merge(safe.altered, clean.altered))
