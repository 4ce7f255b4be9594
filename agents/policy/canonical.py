"""One spelling for one meaning: arguments with key order, case, blanks, number forms, nonces and URL noise taken out.

Merging too much here is safe: equal spelling condemns a call only together with an equal answer.
"""

import json
import math
import re
import unicodedata
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
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
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dt\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:z|[+-]\d\d:?\d\d)$", re.ASCII)
_PRECISE = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?$")
# Seconds since 1970, in this age.
_EPOCH = (1_500_000_000, 2_500_000_000)
_NUMBER = re.compile(r"^[+-]?\d{1,15}(?:\.\d{1,10})?$")
_HEXED = re.compile(r"0x([0-9a-f]{1,8})$|(?=[0-9]*[a-f])([0-9][0-9a-f]{0,7})h$")
_URL = re.compile(r"^https?://(?:www\.)?", re.I)
_TRACKING = re.compile(r"(?:^|&)(?:utm_\w+|ref|fbclid|gclid|_|cb|cachebust\w*|nocache|rand|t|ts)=[^&]*")
_SLASHES = re.compile(r"(?<!:)/{2,}|/\./")
_MADE_UP = re.compile(
    r"(?:client|request|req|idempot|correlation|trace|dedup)\w*(?:id|uid|uuid|guid|key|ref|nonce|token)$|(?:msg|message|call)u?(?:uid|uuid|guid)$"
)
_OF_REQUEST = re.compile(
    r"(?:client|app|sdk|api|http|x)?(?:req|request|corr|correlation|trace|span|idem\w*|dedup\w*|nonce|rid|rq)(?:id|ref|key|no|nr|num|uid)?$"
)
_RANDOM = re.compile(r"(?=[\w-]*[0-9])(?=[\w-]*[A-Za-z])[\w-]+$")
_HEX = re.compile(r"(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,}$")
_SHORT_NAMES = frozenset({"id", "pk"})
_WORDLESS = re.compile(r"[^a-z0-9]+")
# Beside other arguments these only number the calls.
_RUNNING = frozenset({"seq", "seqno", "sequence", "sequencenumber", "msgid", "rpcid"})
# `SO-5512`, `so 5512`, `#SO5512`; `+47 912 34 567`, `0047-91234567`.
_NAMED_NUMBER = re.compile(
    r"#?[a-z]{0,6}[ _#-]{0,2}[0-9]{3,}$|(?:\+|00)[0-9][0-9 ()-]{6,}$|[0-9]{2,5}(?:[ -][0-9]{2,4}){2,4}$"
)
# The same element after another look at the page: `s2e14`, `s3e14`.
_ELEMENT = re.compile(r"s[0-9]{1,4}(e[0-9]{1,5})$")
_DATE = re.compile(r"(?:19|20)\d\d-\d\d-\d\d")
_BETWEEN = re.compile(r"[ _#()+-]+")
_TELLING = 12
_OPENING, _CLOSING = frozenset("{["), frozenset("}]")
_SIGNS, _NOTHING = frozenset("+-0123456789"), frozenset({"null", "none"})


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
    return _spelt(args, 0)


def digest(text: str) -> str:
    """Twenty hex digits. Two checksums are enough: nobody gains by forging a repeat."""
    raw = text.encode("utf-8", "surrogatepass")
    return (zlib.crc32(raw) << 48 | zlib.adler32(raw) << 16 | len(raw) & 0xFFFF).to_bytes(10, "big").hex()


def _dumped(value: Any) -> str:
    try:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=repr)
    except (ValueError, TypeError, RecursionError):
        return meaning(value)


def _spelt(value: Any, depth: int) -> str:
    if depth > _MAX_DEPTH:
        return "…"
    kind = type(value)
    if kind is str:
        return _spelt_text(value, depth)
    if kind is dict:
        return _spelt_object(value, depth)
    if kind is list or kind is tuple:
        # Names in another order are the same names.
        return f"[{','.join(sorted([_spelt(one, depth + 1) for one in value[:_MAX_ITEMS]]))}]"
    if value is None:
        return ""
    return _spelt_other(value, depth)


def _spelt_other(value: Any, depth: int) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) < 10**15 else f"{value:x}"
    if isinstance(value, float):
        whole = math.isfinite(value) and value == int(value) and abs(value) < 1e15
        return str(int(value)) if whole else repr(value)
    if isinstance(value, str):
        return _spelt_text(value, depth)
    if isinstance(value, Mapping):
        return _spelt_object(value, depth)
    return repr(value)[:200]


def _spelt_object(value: Mapping[Any, Any], depth: int) -> str:
    parts = []
    for key, flat, of_asking in _layout(tuple(value)):
        one = value[key]
        if one is None or one == "" or (of_asking and _made_up(flat, one)):
            continue
        parts.append(f"{flat}={_spelt(one, depth + 1)};")
    return f"{{{''.join(parts)}}}"


def _of_asking(key: str) -> bool:
    """Whether an argument may tell when it was asked, or which request it is."""
    return key in _TIME_KEYS or _is_short(key) or _OF_REQUEST.match(key) is not None


def _is_short(key: str) -> bool:
    """`n`, `rq`: a name that tells nothing."""
    return len(key) < 3 and key not in _SHORT_NAMES


def _made_up(key: str, text: Any) -> bool:
    """The time of asking to the second; a random value for what names the request."""
    if type(text) is int:
        return key in _TIME_KEYS and _EPOCH[0] < text < _EPOCH[1]
    if not isinstance(text, str):
        return False
    if key in _TIME_KEYS:
        return _PRECISE.match(text) is not None and text[17:19] not in ("00", "59")
    if _is_short(key) and not _OF_REQUEST.match(key):
        return _HEX.match(text) is not None
    return len(text) > 5 and _RANDOM.match(text) is not None


Layout = list[tuple[Any, str, bool]]
# Tools are called with the same few sets of keys all the time.
_LAYOUTS: dict[tuple[Any, ...], Layout] = {}
_MANY, _WIDE = 1_024, 24


def _layout(keys: tuple[Any, ...]) -> Layout:
    """The keys that mean something, each with its flat form and whether it may be made up for this call, in the order
    of the flat form."""
    found = _LAYOUTS.get(keys)
    if found is None:
        pairs = sorted([(flat_key(key), key) for key in keys[:_MAX_ITEMS]], key=_first)
        hide_titles = any(flat in BODIES for flat, _ in pairs)
        named = any(flat == "element" for flat, _ in pairs)
        found = [
            (key, flat, _of_asking(flat))
            for flat, key in pairs
            if not _says_nothing(flat, hide_titles)
            and not (len(pairs) > 2 and flat in _RUNNING)
            and not (named and flat == "ref")
        ]
        if len(keys) <= _WIDE and sum(len(flat) for flat, _ in pairs) < 400:
            if len(_LAYOUTS) >= _MANY:
                _LAYOUTS.clear()
            _LAYOUTS[keys] = found
    return found


def _first(pair: tuple[str, Any]) -> str:
    return pair[0]


def _says_nothing(key: str, hide_titles: bool) -> bool:
    return is_volatile(key) or key in COSMETIC or (hide_titles and key in TITLES)


@lru_cache(maxsize=4096)
def is_volatile(key: str) -> bool:
    """Whether an argument is made up anew for each call: nonces, request and client ids, times of asking."""
    return key in VOLATILE or _MADE_UP.match(key) is not None


def _spelt_text(text: str, depth: int) -> str:
    if len(text) > _LONG:
        return text
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    text = one_line(text.casefold())
    first = text[:1]
    if first in _OPENING and text[-1:] in _CLOSING:
        inner = parse(text)
        if not isinstance(inner, str):
            return _spelt(inner, depth + 1)
    if first in _SIGNS:
        if len(text) > 16 and text[10] == "t" and (spelt := _spelt_moment(text)):
            return spelt
        if spelt := _spelt_number(text):
            return spelt
    if text in _NOTHING:
        return ""
    if first == "s" and len(text) < 12 and (element := _ELEMENT.match(text)):
        return element[1]
    if len(text) < 25 and _NAMED_NUMBER.match(text) and not _DATE.match(text):
        return _BETWEEN.sub("", text)[-_TELLING:]
    return plain_place(text) if "/" in text and " " not in text else text


def _spelt_moment(text: str) -> str:
    """A moment with its offset, in one time zone; empty for what is none."""
    if _MOMENT.match(text) is None:
        return ""
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return ""


def _spelt_number(text: str) -> str:
    """A number in its one spelling, also if it is hexadecimal; empty for what is none."""
    if _NUMBER.match(text):
        number = float(text)
        return str(int(number)) if number == int(number) else repr(number)
    hexed = _HEXED.match(text)
    return str(int(hexed[1] or hexed[2], 16)) if hexed else ""


def one_line(text: str) -> str:
    """The words of a text with single blanks between them."""
    # Of all blanks only the common one is printable: most texts show at one glance that they are so already.
    return text.strip(" ") if text.isprintable() and "  " not in text else " ".join(text.split())


def plain_place(text: str) -> str:
    """A path or address without what does not change where it leads."""
    at = _URL.match(text) if "//" in text else None
    if at:
        text = text[at.end() :].split("#", 1)[0]
        if "?" in text:
            head, _, query = text.partition("?")
            query = _TRACKING.sub("", query).strip("&")
            text = f"{head.rstrip('/')}?{query}" if query else head
    if "//" in text or "/./" in text:
        text = _SLASHES.sub("/", text)
    return text.removeprefix("./").rstrip("/") or "/"
