"""One spelling for one meaning: arguments with key order, case, blanks, number forms, nonces and URL noise taken out.

Merging too much here is safe: equal spelling condemns a call only together with an equal answer.
"""

import json
import math
import re
import unicodedata
import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from agents.policy.vocabulary import words

_MAX_DEPTH = 12
_MAX_ITEMS = 400
_LONG = 8_000

VOLATILE = words("arguments", "volatile")
COSMETIC = words("arguments", "cosmetic")
TITLES = frozenset({"title", "label", "summary", "description", "name", "displayname"})
# Beside one of these a title says nothing of the act.
BODIES = frozenset({"command", "cmd", "query", "code", "sql", "script", "prompt"})
_TIME_KEYS = frozenset({"time", "at", "date", "until", "since", "asof", "currenttime", "clock"})
_PRECISE = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?$")
_NUMBER = re.compile(r"^[+-]?\d{1,15}(?:\.\d{1,10})?$")
_URL = re.compile(r"^https?://(?:www\.)?", re.I)
_TRACKING = re.compile(r"(?:^|&)(?:utm_\w+|ref|fbclid|gclid|_|cb|cachebust\w*|nocache|rand|t|ts)=[^&]*")
_SLASHES = re.compile(r"(?<!:)/{2,}|/\./")
_MADE_UP = re.compile(
    r"(?:client|request|req|idempot|correlation|trace|dedup)\w*(?:id|uid|uuid|guid|key|ref|nonce|token)$|(?:msg|message|call)u?(?:uid|uuid|guid)$"
)
_WORDLESS = re.compile(r"[^a-z0-9]+")


def flat_key(key: Any) -> str:
    """`Request-ID`, `request_id` and `requestId` are one key."""
    return _flattened(key if isinstance(key, str) else str(key))


@lru_cache(maxsize=4096)
def _flattened(text: str) -> str:
    low = text.casefold()
    return low if low.isalnum() else _WORDLESS.sub("", low) or low


def parse(args: Any) -> Any:
    """The arguments as an object where they are one; else as they came. Never raises."""
    if isinstance(args, str):
        text = args.strip()
        if text[:1] in ("{", "["):
            try:
                return json.loads(text)
            except (ValueError, RecursionError):
                return args
    return args


def exact(tool: str, args: Any) -> str:
    """Fingerprint of the arguments as given; only the order of keys does not matter."""
    return digest(f"{tool}\0{_dumped(parse(args))}")


def meaning(args: Any) -> str:
    """The arguments in their one spelling."""
    out: list[str] = []
    _walk(args, out, 0)
    return "".join(out)


def digest(text: str) -> str:
    """Sixteen hex digits. Two checksums are enough: nobody gains by forging a repeat."""
    raw = text.encode("utf-8", "surrogatepass")
    return f"{zlib.crc32(raw):08x}{zlib.adler32(raw) & 0xFFFFFFFF:08x}{len(raw) & 0xFFFF:04x}"


def _dumped(value: Any) -> str:
    try:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=repr)
    except (ValueError, TypeError, RecursionError):
        return meaning(value)


def _walk(value: Any, out: list[str], depth: int) -> None:
    if depth > _MAX_DEPTH:
        out.append("…")
    elif isinstance(value, str):
        _walk_text(value, out, depth)
    elif isinstance(value, bool):
        out.append("true" if value else "false")
    elif isinstance(value, int):
        out.append(str(value) if abs(value) < 10**15 else f"{value:x}")
    elif isinstance(value, float):
        out.append(
            str(int(value)) if math.isfinite(value) and value == int(value) and abs(value) < 1e15 else repr(value)
        )
    elif isinstance(value, Mapping):
        _walk_object(value, out, depth)
    elif isinstance(value, (list, tuple)):
        _walk_list(value, out, depth)
    elif value is not None:
        out.append(repr(value)[:200])


def _walk_list(value: list[Any] | tuple[Any, ...], out: list[str], depth: int) -> None:
    parts: list[str] = []
    for one in value[:_MAX_ITEMS]:
        part: list[str] = []
        _walk(one, part, depth + 1)
        parts.append("".join(part))
    # Names in another order are the same names.
    out.append(f"[{','.join(sorted(parts))}]")


def _walk_object(value: Mapping[Any, Any], out: list[str], depth: int) -> None:
    pairs = sorted(((flat_key(key), one) for key, one in list(value.items())[:_MAX_ITEMS]), key=lambda pair: pair[0])
    hide_titles = any(key in BODIES for key, _ in pairs)
    out.append("{")
    for key, one in pairs:
        if one is None or one == "" or is_volatile(key) or key in COSMETIC or (hide_titles and key in TITLES):
            continue
        if isinstance(one, str) and key in _TIME_KEYS and _PRECISE.match(one) and one[17:19] not in ("00", "59"):
            continue
        out.append(key)
        out.append("=")
        _walk(one, out, depth + 1)
        out.append(";")
    out.append("}")


@lru_cache(maxsize=4096)
def is_volatile(key: str) -> bool:
    """Whether an argument is made up anew for each call: nonces, request and client ids, times of asking."""
    return key in VOLATILE or _MADE_UP.match(key) is not None


def _walk_text(text: str, out: list[str], depth: int) -> None:
    if len(text) > _LONG:
        out.append(text)
        return
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    text = " ".join(text.casefold().split())
    if text[:1] in ("{", "[") and text[-1:] in ("}", "]"):
        inner = parse(text)
        if not isinstance(inner, str):
            _walk(inner, out, depth + 1)
            return
    if _NUMBER.match(text):
        number = float(text)
        out.append(str(int(number)) if number == int(number) else repr(number))
        return
    if text in ("null", "none"):
        return
    out.append(plain_place(text) if "/" in text and " " not in text else text)


def plain_place(text: str) -> str:
    """A path or address without what does not change where it leads."""
    at = _URL.match(text)
    if at:
        text = text[at.end() :].split("#", 1)[0]
        if "?" in text:
            head, _, query = text.partition("?")
            query = _TRACKING.sub("", query).strip("&")
            text = f"{head.rstrip('/')}?{query}" if query else head
    text = _SLASHES.sub("/", text)
    return text.removeprefix("./").rstrip("/") or "/"
