"""How long a provider asks us to wait: headers, fields of the body, sentences; seconds, or None when it named no time.

First that applies: `retry-after-ms`, `retry-after` in seconds, as a date (RFC 9110, section 10.2.3), a delay that is
data in the body, a duration in the sentence, the reset header of the dimension that has nothing left.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from agents.policy.fault_body import Said

# Beyond a century it is a mistake of ours or theirs.
_MAX_S = 100 * 366 * 86400.0
_UNITS = {
    "ms": 0.001, "msec": 0.001, "millis": 0.001, "millisecond": 0.001, "s": 1, "sec": 1, "second": 1, "m": 60,
    "min": 60, "minute": 60, "h": 3600, "hr": 3600, "hour": 3600, "d": 86400, "day": 86400, "w": 604800,
    "week": 604800, "毫秒": 0.001, "秒": 1, "秒钟": 1, "秒鐘": 1, "分": 60, "分钟": 60, "分鐘": 60, "小时": 3600,
    "小時": 3600, "时": 3600, "天": 86400, "日": 86400, "時間": 3600, "分間": 60, "秒間": 1, "초": 1, "분": 60,
    "시간": 3600, "일": 86400, "sekunde": 1, "sekunden": 1, "sek": 1, "minuten": 60, "stunde": 3600,
    "stunden": 3600, "tage": 86400, "tagen": 86400, "seconde": 1, "heure": 3600, "jour": 86400, "segundo": 1,
    "minuto": 60, "hora": 3600, "día": 86400, "dia": 86400, "secondi": 1, "minuti": 60, "ore": 3600,
    "giorni": 86400, "сек": 1, "секунд": 1, "мин": 60, "минут": 60, "час": 3600, "ч": 3600, "дн": 86400,
    "день": 86400, "дней": 86400,
}  # fmt: skip
_UNIT_NAMES = "|".join(sorted((re.escape(unit) for unit in _UNITS), key=len, reverse=True))
_PART = (
    rf"(?<![0-9])([0-9]{{1,12}}(?:[.,][0-9]{{1,12}})?)\s*({_UNIT_NAMES})"
    r"(?:s\b|es\b|ы\b|у\b|а\b|ов\b|\b|(?=[0-9]|[^\x00-\x7f]))"
)
_PARTS = re.compile(_PART, re.IGNORECASE)
_DURATION = rf"(?:{_PART}[\s,]*(?:and\s+|und\s+|et\s+|y\s+|и\s+)?){{1,5}}"
# A duration is a wait only where the sentence speaks of waiting; elsewhere it is the length of a window.
_CUES = (
    "try retry retrying retries again reset resets wait available refresh\\w* resum\\w* cool\\w* renew\\w* recover\\w* "
    "unlock\\w* replenish\\w* lifted backoff retry[-_]?after expires? versuchen erneut warten wiederholen "
    "zurückgesetzt réessay\\w* attend\\w* patient\\w* intent\\w* inténtelo reintent\\w* esper\\w* tente novamente "
    "aguard\\w* riprova\\w* повтор\\w* попробуй\\w* подожд\\w* через"
)
_LINKS = (
    "in after for about around approximately another least wait within is of until by reset dans après en em nach "
    "über tra fra через после"
)
_HEDGES = "the next |about |approximately |at least |another |~|ca\\. |environ |unos |cerca de |circa |etwa |примерно "
_SENTENCE = re.compile(
    rf"\b(?:{_CUES.replace(' ', '|')})\b[^\n.;]{{0,40}}?"
    rf"(?:\b(?:{_LINKS.replace(' ', '|')}|up to|dentro de|después de|depois de|approx\.)|[:=~≈(])\s*"
    rf"(?:{_HEDGES})*({_DURATION})",
    re.IGNORECASE,
)
# "retry-after: 30": seconds, where no unit follows.
_PLAIN = re.compile(
    r"\bretry[-_ ]?after\b[\"']?\s*(?:header)?\s*[:=]?\s*([0-9]{1,12}(?:\.[0-9]{1,12})?)(?![0-9.]|\s*[a-z%-]|[-:/])",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    rf"({_DURATION})\s*(?:later|before (?:retrying|trying|making|sending|your next|another)|remaining until|left until|"
    r"until (?:reset|retry|it resets|the limit)|cooldown)",
    re.IGNORECASE,
)
_UNSPACED = re.compile(
    rf"({_DURATION})\s*(?:之?[后後]|以后|以後|내에 다시|후에?|뒤에?|お待ち|待って|待ち)", re.IGNORECASE
)
_UNSPACED_WAIT = re.compile(
    r"(?:请等待|等待|請等待|请在|請在|稍等|冷却|冷卻|还需|剩余|再等|还剩)\s*(?:约|大约|約|大約|时间)?[：:\s]*"
    rf"({_DURATION})",
    re.IGNORECASE,
)
_COMPOUND = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|us|µs|ns)", re.IGNORECASE)
_CLOCK = re.compile(r"\b([0-9]{1,2}):([0-9]{2}):([0-9]{2})\b")
_STAMP = re.compile(
    r"\b20[0-9]{2}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?"
    r"(?:\s?(?:Z|UTC|GMT)|\s?[+-][0-9]{2}:?[0-9]{2})",
    re.IGNORECASE,
)


def retry_after(headers: Mapping[str, str], said: Said | None = None, *, now: datetime | None) -> float | None:
    """Seconds until the provider wants to be asked again; `now` stands in for a missing `date` header."""
    lower = _lower(headers)
    inner = _lower(said.headers) if said is not None else {}
    moment = date(lower.get("date")) or date(inner.get("date")) or now
    for wait in _waits(lower, inner, said, moment):
        if wait is not None and 0 < wait < _MAX_S:
            return wait
    return None


def _waits(
    lower: Mapping[str, str], inner: Mapping[str, str], said: Said | None, now: datetime | None
) -> Iterator[float | None]:
    """In the order of trust."""
    yield from _direct(lower, now)
    if said is not None:
        yield max(said.delays, default=None)
        yield from _direct(inner, now)
        yield max((wait for value in said.moments if (wait := _until(value, now)) is not None), default=None)
        yield in_words(said.text, now)
    yield _exhausted(lower, now)
    yield _exhausted(inner, now)


def _direct(headers: Mapping[str, str], now: datetime | None) -> Iterator[float | None]:
    if (ms := number(headers.get("retry-after-ms") or headers.get("x-ms-retry-after-ms"))) is not None:
        yield ms / 1000
    value = headers.get("retry-after")
    if value is not None:
        if (seconds := number(value)) is not None:
            yield seconds
        elif (until := date(value)) is not None and now is not None:
            yield (until - now).total_seconds()
        else:
            yield duration(value)


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {str(name).lower(): str(value).strip() for name, value in headers.items()} if headers else {}


def number(text: str | None) -> float | None:
    """A positive, finite number of a plain form; sentinels such as -1 and 0 name no time."""
    try:
        value = float(text) if text else 0.0
    except ValueError:
        return None
    return value if 0 < value < float("inf") else None


def date(text: str | None) -> datetime | None:
    """An HTTP date. "-0000" and a missing zone give a naive time, which cannot be compared."""
    try:
        moment = parsedate_to_datetime(text) if text else None
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment if moment is not None and moment.tzinfo is not None else None


def duration(text: str) -> float | None:
    """`6m0s`, `7.5s`, `350ms`, `1h2m`, `00:01:30`, or None."""
    text = text.strip()
    clock = _CLOCK.fullmatch(text)
    if clock:
        return int(clock[1]) * 3600 + int(clock[2]) * 60 + int(clock[3])
    parts = _COMPOUND.findall(text)
    if not parts or "".join(f"{amount}{unit}" for amount, unit in parts) != text.replace(" ", ""):
        return _spelled(text)
    scale = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
    return sum(float(amount) * scale[unit.lower()] for amount, unit in parts)


def _spelled(text: str) -> float | None:
    parts = _PARTS.findall(text)
    if not parts:
        return None
    return sum(float(amount.replace(",", ".")) * _UNITS.get(unit.lower(), 1) for amount, unit in parts)


def in_words(text: str, now: datetime | None) -> float | None:
    """The wait that a sentence names."""
    text = text[:4000]
    if not any(mark.isdigit() for mark in text):
        return None
    for pattern in (_SENTENCE, _BEFORE):
        if (match := pattern.search(text)) is not None:
            return _spelled(match[1])
    if (match := _PLAIN.search(text)) is not None:
        return float(match[1])
    if not text.isascii():
        for pattern in (_UNSPACED, _UNSPACED_WAIT):
            if (match := pattern.search(text)) is not None:
                return _spelled(match[1])
    if now is not None and (stamp := _STAMP.search(text)) is not None:
        return _until(stamp[0], now)
    return None


def _until(value: Any, now: datetime | None) -> float | None:
    """From now until a moment: a date with its zone, epoch seconds or milliseconds; a small number is seconds."""
    if isinstance(value, str):
        text = value.strip()
        if (plain := number(text)) is not None:
            return _until(plain, now)
        moment = _iso(text) or date(text)
        if moment is None:
            return duration(text)
        return (moment - now).total_seconds() if now is not None else None
    if not isinstance(value, int | float) or not 0 < value < 1e15:
        return None
    if value > 1e11:
        value = value / 1000
    if value > 1e9:
        return value - now.timestamp() if now is not None else None
    return float(value)


def _iso(text: str) -> datetime | None:
    text = text.upper().replace(" UTC", "Z").replace(" GMT", "Z").replace("UTC", "Z")
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00").replace(" +", "+"))
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo is not None else None


def _exhausted(headers: Mapping[str, str], now: datetime | None) -> float | None:
    """The latest reset among the dimensions of which nothing remains; the reset of any other means nothing."""
    waits = []
    for name, left in headers.items():
        if "remaining" in name and number(left) is None and left.strip().rstrip(".0") in ("", "0"):
            for reset in (name.replace("remaining", "reset"), name.replace("remaining", "reset-after")):
                if reset in headers and (wait := _until(headers[reset], now)) is not None:
                    waits.append(wait)
    return max(waits, default=None)
