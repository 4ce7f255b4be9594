"""Answers that are objects: parsed, as lines without what is different each time, the state that they tell."""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from agents.policy.canonical import flat_key
from agents.policy.vocabulary import words

_TIMELY = re.compile(r"(?:_at|At|_ts|Ts|_timestamp)$")
_TIMELY_STARTS = ("duration", "elapsed", "latency", "tookms", "ratelimit", "xratelimit", "queuedfor", "waitedfor")
_TIMELY_ENDS = ("duration", "elapsed", "latency", "traceid", "requestid", "timestamp", "fors", "forseconds")
# How long it took, where it is no whole number.
_TIMES = frozenset({"t", "dt", "rt", "s"})
_MADE_UP = re.compile(r"(?:[a-z]{1,4}-)?(?=[0-9]*[a-f])[0-9a-f]{4,}$")
_OPENING = frozenset("{[")
# `json.loads` without its looks for other encodings and for blanks around.
_decode = json.JSONDecoder().raw_decode
_VOLATILE_KEYS, _ID_KEYS = words("answers", "volatile_keys"), words("answers", "id_keys")


def parsed(text: str) -> Any:
    """The object or list that a text is; None for any other text."""
    bare = text.strip()
    if bare[:1] in _OPENING:
        try:
            value, end = _decode(bare)
        except (ValueError, RecursionError):
            return None
        return value if end == len(bare) else None
    return None


def flat(value: Any, depth: int) -> str:
    """Its fields as lines, in the order of their names, without those that are different each time."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is dict:
        if depth > 12:
            return "…"
        lines = []
        keys = tuple(value)
        for key in _KEPT.get(keys) or _kept(keys):
            one = value[key]
            inner = type(one)
            if len(key) < 3 and inner is not int and _is_of_answering(key, one):
                continue
            lines.append(f"{key}:{one if inner is str or inner is int else flat(one, depth + 1)}")
        return "{" + "\n".join(lines) + "}"
    if kind is list:
        return "[" + "\n".join([flat(one, depth + 1) for one in value]) + "]" if depth <= 12 else "…"
    return repr(value)


def _is_of_answering(key: str, value: Any) -> bool:
    """Whether a field whose name tells nothing holds how long it took, or an id made up for this answer."""
    return (type(value) is float and key in _TIMES) or (type(value) is str and _MADE_UP.match(value) is not None)


# The objects of an answer, and the answers of a tool, have the same few sets of keys.
_KEPT: dict[tuple[str, ...], list[str]] = {}
_MANY, _WIDE = 1_024, 24


def _kept(keys: tuple[str, ...]) -> list[str]:
    """The keys that are not volatile, in their order."""
    found = _KEPT.get(keys)
    if found is None:
        found = sorted([key for key in keys if not volatile_key(key)])
        if len(keys) <= _WIDE:
            if len(_KEPT) >= _MANY:
                _KEPT.clear()
            _KEPT[keys] = found
    return found


@lru_cache(maxsize=2048)
def volatile_key(key: str) -> bool:
    """Whether a field says only when, how fast or in which request."""
    low = flat_key(key)
    return (
        low in _VOLATILE_KEYS
        or low.startswith(_TIMELY_STARTS)
        or low.endswith(_TIMELY_ENDS)
        or _TIMELY.search(key) is not None
    )


def nameless(value: Any, depth: int) -> Any:
    """An object without its ids and addresses."""
    if type(value) is dict and depth < 4:
        return {key: nameless(one, depth + 1) for key, one in value.items() if not _names_id(flat_key(key))}
    return "~" if type(value) is str and "://" in value[:12] else value


def _names_id(key: str) -> bool:
    return key in _ID_KEYS or key.endswith("id")


def is_table(value: Any) -> bool:
    """Whether an answer is a list of things: what one of them says is not said of the whole."""
    if type(value) is dict:
        return any(len(one) > 1 for one in value.values() if type(one) is list)
    return type(value) is list and len(value) > 1


_DEEP = 6
_STATES = ("status", "state", "phase", "conclusion", "result", "Status", "State")
_TELLS_STATE = frozenset(_STATES)


def status_of(value: Mapping[str, Any], depth: int = 0) -> str:
    """What its status field says, or that of one of its first fields; empty where there is none."""
    if not _TELLS_STATE.isdisjoint(value):
        for key in _STATES:
            one = value.get(key)
            if isinstance(one, str) and len(one) < 40:
                return one.casefold()
    for one in list(value.values())[:6] if depth < _DEEP else ():
        if isinstance(one, Mapping) and (found := status_of(one, depth + 1)):
            return found
    return ""


def longest_text(value: Any, depth: int = 0) -> str:
    """The longest text in it."""
    if isinstance(value, str):
        return value
    if depth > _DEEP or not isinstance(value, (dict, list)):
        return ""
    inner = list(value.values() if isinstance(value, dict) else value)[:40]
    return max((longest_text(one, depth + 1) for one in inner), key=len, default="")
