"""What an answer says: whether it failed and how, whether it waits for something, what in it is new.

Times, durations, process numbers, request ids and temporary names say nothing; all other numbers do, they are progress.
"""

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from agents.policy import answer_words as said
from agents.policy.canonical import digest, flat_key
from agents.policy.vocabulary import words

# Of a longer answer head and tail are read; the middle counts through its checksum.
_READ = 6_000
_UNITS = 160
# What an answer means stands at its beginning.
_HEAD = 400
_SHORT_LINE = 60
_PHRASES = re.compile(r"[;|]|, ")
_POSITIONS = words("fields", "ranges") | words("fields", "positions")
# All begin with a digit, so that a text without digits costs nothing.
_SCRUB = re.compile(
    r"[0-9](?<![\w.][0-9])(?:"
    r"\d{3}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:\s?Z|\s?[+-]\d\d:?\d\d)?)"
    r"|\d?:\d\d:\d\d(?:[.,]\d+)?(?:\s?[AP]M)?"
    r"|x[0-9a-fA-F]+\b"
    r"|(?<=1)[5-9]\d{8}(?:\d{3})?\b"
    r"|\d*(?:\.\d+)?\s?(?:ms|msec|µs|us|ns|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)\b(?:\d+s\b)?(?:\s?ago)?"
    r")"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_TEMPORARY = re.compile(r"/(?:tmp|var/folders)/[\w./-]+")
_LABELLED = re.compile(
    r"\b(?:pid|process)\s?[:=#]?\s?\d+"
    r"|\b(?:req(?:uest)?|trace|span|correlation|ray|session|token|etag|nonce|execution|invocation|operation)"
    r"(?:[ _-]?ids?\s?[:=#]?\s?|\s?[:=#]\s?|-)\"?(?=[\w-]*\d)[\w-]+"
    r"|\b(?:read|attempt|try|retry|tried|attempts)\s?#?\s?\d+(?:\s?(?:times|of \d+|/\s?\d+))?",
    re.I,
)
_LABELS: tuple[str, ...] = (
    "pid",
    "process ",
    "request",
    "req-",
    "req_",
    "req ",
    "trace-",
    "trace_",
    "traceid",
    "trace id",
    "trace:",
)
_LABELS += ("span", "correl", "ray id", "ray-id", "session", "token", "etag", "nonce", "execution", "invocation")
_LABELS += ("operation", "attempt", "try ", "tried ", "read ")
_IDS = re.compile(
    r"\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{4,}\b|#\d+|\b\d{4,}\b"
    r"|(?i:\b(?:id|no|nr|number|message|ticket|order|issue|refund|receipt|invoice|ref|comment|event|booking|txn|transaction|"
    r"payment|case|job|task|record|row|entry|mail|email|post|note|reminder)\s?[.:#=]?\s?)\d+\b"
)
_NUMBERS = re.compile(r"\d+(?:[.,]\d+)*")
_QUOTED = re.compile(r"['\"`](?:(?<=')[^'\n]{1,120}'|(?<=\")[^\"\n]{1,120}\"|(?<=`)[^`\n]{1,120}`)")
_NAMING = frozenset("/.")
_NUMBERED = re.compile(r"^\s*\d+\s*[.):|\t→]\s?", re.M)
# Made up anew for each answer: hexadecimal, or letters of both cases mixed with digits.
_LONG = re.compile(r"[A-Za-z0-9_-]{16,}")
_ODD = re.compile(r"\b[A-Za-z]{0,16}[0-9]\w{2,}")
_HEX = frozenset("0123456789abcdef")
_HEADERS = re.compile(
    r"(?im)^(?:date|age|expires|etag|last-modified|set-cookie|cookie|server-timing|via|cf-[\w-]+|x-[\w-]*(?:id|time|remaining|reset|trace\w*)"
    r"|retry-after|report-to|nel|alt-svc):[^\n]*\n?"
)
_TIMELY = re.compile(r"(?:_at|At|_ts|Ts|_timestamp)$")
_VOLATILE_KEYS, _ID_KEYS = words("answers", "volatile_keys"), words("answers", "id_keys")


@dataclass(slots=True, kw_only=True)
class Answer:
    """`same`: equal for equal meaning. `shape`: the same without ids made for this call. `fault`, `family`: how it
    failed, without numbers; the family also without names and paths. `units`: its lines or items, as checksums.
    `tally`: numbers that tell progress, (how many are left, how many are done). `names`: whether a failure names
    what it is about.
    """

    same: str
    shape: str
    failed: bool
    fault: str
    family: str
    sort: str
    pending: bool
    ended: bool
    empty: bool
    clock: bool
    acknowledges: bool
    sends: bool
    units: tuple[int, ...]
    length: int
    tally: tuple[float, float] | None
    names: bool
    fruitless: bool
    prose: str
    excerpt: str


def read_answer(text: str, is_error: bool, *, acts: bool = True, looks: bool = True) -> Answer:
    """Never raises. Linear in the first and last few thousand characters. Of a call that does not act the `shape` is
    not worked out, of one that does not look not the `units`."""
    short, rest = _within(text)
    value = _parsed(short) if not rest else None
    plain = _flat(value) if value is not None else short
    lines = scrub(plain)
    scrubbed = " ".join(lines.split())
    low = scrubbed[:_HEAD].casefold()
    failed = is_error or said.reports_failure(low, value)
    heard = said.heard(low)
    tally = said.tally(heard)
    sends = len(plain) < 400 and said.tells_sent(heard)
    fault = family = sort = ""
    names = False
    waits = ended = False
    if failed:
        window = _ODD.sub(_if_random, _window(scrubbed)).casefold()
        fault = digest(f"{_NUMBERS.sub('#', window)}{tally or ''}")
        masked = _unnamed(window)
        names = masked != window
        family = digest(_NUMBERS.sub("#", masked))
        sort = said.sort_of_fault(low[:240])
    if not is_error:
        waits, ended = said.pending(low, _status(value) if isinstance(value, dict) else "", heard)
    same = digest(f"{int(failed)}{scrubbed}{rest}")
    return Answer(
        same=same,
        shape=digest(f"{int(failed)}{_without_ids(scrubbed, value, sends)}{rest}") if acts else same,
        failed=failed,
        fault=fault,
        family=family,
        sort=sort,
        pending=waits,
        ended=ended,
        empty=said.is_empty(low, value),
        clock=len(scrubbed) < 60
        and scrubbed != plain
        and not _NUMBERS.sub("", scrubbed).strip(" ~\t\n.,:;-+TZ\"'{}[]"),
        acknowledges=len(plain) < 400 and said.acknowledges(heard),
        sends=sends,
        units=_units(lines, value is not None) if looks and not failed else (),
        length=len(plain),
        tally=tally,
        names=names,
        fruitless=acts and said.is_fruitless(low),
        prose=_prose(plain, value) if acts else "",
        excerpt=" ".join(text[:200].split())[:120],
    )


def answer_from(heard: Mapping[str, Any]) -> Answer:
    """An answer from its plain data."""
    tally = heard["tally"]
    return Answer(**{**heard, "units": tuple(heard["units"]), "tally": None if tally is None else tuple(tally)})


def scrub(text: str) -> str:
    """Without what is different each time and says nothing. Lines stay lines."""
    low = text.casefold()
    if "http/" in low[:40]:
        text = _HEADERS.sub("", text)
    if text.count("-") > 3:
        text = _UUID.sub("~", text)
    text = _SCRUB.sub("~", text)
    text = _LONG.sub(_if_secret, text)
    if "/tmp/" in text or "/folders/" in text:
        text = _TEMPORARY.sub("~", text)
    for label in _LABELS:
        if label in low:
            text = _LABELLED.sub("~", text)
            break
    return text


def _within(text: str) -> tuple[str, str]:
    if len(text) <= 2 * _READ:
        return text, ""
    middle = zlib.crc32(text[_READ:-_READ].encode("utf-8", "surrogatepass"))
    return f"{text[:_READ]}\n{text[-_READ:]}", f"{middle:08x}"


def _parsed(text: str) -> Any:
    start = text.lstrip()[:1]
    if start in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return None
    return None


def _flat(value: Any, depth: int = 0) -> str:
    if isinstance(value, Mapping):
        if depth > 12:
            return "…"
        return (
            "{"
            + "\n".join(f"{key}:{_flat(one, depth + 1)}" for key, one in sorted(value.items()) if not volatile_key(key))
            + "}"
        )
    if isinstance(value, list):
        return "[" + "\n".join(_flat(one, depth + 1) for one in value) + "]" if depth <= 12 else "…"
    return value if isinstance(value, str) else repr(value)


@lru_cache(maxsize=2048)
def volatile_key(key: str) -> bool:
    """Whether a field says only when, how fast or in which request."""
    flat = flat_key(key)
    return (
        flat in _VOLATILE_KEYS
        or flat.startswith(("duration", "elapsed", "latency", "tookms"))
        or flat.endswith(("duration", "elapsed", "latency", "traceid", "requestid", "timestamp"))
        or _TIMELY.search(key) is not None
    )


def _without_ids(scrubbed: str, value: Any, sends: bool) -> str:
    """The answer without ids that were made for this very call. Only short ones are acknowledgements."""
    if len(scrubbed) > 400:
        return scrubbed
    if isinstance(value, dict):
        kept = {key: one for key, one in value.items() if not _names_id(flat_key(key))}
        scrubbed = " ".join(scrub(_flat(kept)).split())
    return (_NUMBERS if sends else _IDS).sub("#", scrubbed)


def _prose(plain: str, value: Any) -> str:
    """What an answer says in words, without numbers and ids: its longest text."""
    if value is not None:
        plain = _longest_text(value)
    return " ".join(word for word in plain[:400].split() if not any(map(str.isdigit, word)))


def _names_id(key: str) -> bool:
    return key in _ID_KEYS or key.endswith("id")


def _status(value: Mapping[str, Any]) -> str:
    for key in ("status", "state", "phase", "conclusion", "result", "Status", "State"):
        one = value.get(key)
        if isinstance(one, str) and len(one) < 40:
            return one.casefold()
    for one in list(value.values())[:6]:
        if isinstance(one, Mapping) and (found := _status(one) if one is not value else ""):
            return found
    return ""


def _window(text: str) -> str:
    """Where an error says what it is: its beginning and its last words."""
    return text if len(text) <= 300 else f"{text[:120]} … {text[-180:]}"


def _if_secret(match: re.Match[str]) -> str:
    """A token made for this answer mixes cases and digits; names, hashes of content and words do not."""
    word = match.group()
    if word.islower() or word.isupper() or word.isalpha() or "__" in word:
        return word
    return "~" if any(map(str.isdigit, word)) and sum(map(str.isupper, word)) > 2 else word


def _if_random(match: re.Match[str]) -> str:
    """`#` for what was made up anew for this answer: hexadecimal, or letters of both cases mixed with digits."""
    word = match.group()
    if len(word) > 5 and _HEX.issuperset(word):
        return "#"
    return word if word.islower() or word.isupper() or word.isdigit() else "#"


def _units(text: str, is_object: bool) -> tuple[int, ...]:
    """The lines of a text or the leaves of an object. Where in a series an answer stands is no news."""
    parts = (_NUMBERED.sub("", text) if "\n" in text else text).split("\n")
    if len(parts) < 2 and len(text) > _SHORT_LINE:
        parts = _PHRASES.split(text)
    sums: dict[int, None] = {}
    for part in parts[: 2 * _UNITS]:
        bare = part.strip(" \t{}[],")
        if bare and not (is_object and flat_key(bare.partition(":")[0][:40]) in _POSITIONS):
            sums[zlib.crc32(bare.encode("utf-8", "surrogatepass"))] = None
    return tuple(sums)[:_UNITS]


def _unnamed(text: str) -> str:
    """Without the names in it: what stands in quotes, paths, files."""
    text = _QUOTED.sub("~", text)
    return " ".join("~" if _NAMING.intersection(word[1:-1]) else word for word in text.split())


def _longest_text(value: Any, depth: int = 0) -> str:
    if isinstance(value, str):
        return value
    if depth > 6 or not isinstance(value, (dict, list)):
        return ""
    inner = list(value.values() if isinstance(value, dict) else value)[:40]
    return max((_longest_text(one, depth + 1) for one in inner), key=len, default="")
