"""The words of answers: failing, waiting, over for good, empty, acknowledged; and the numbers that tell progress."""

import re
from typing import Any

from agents.policy.vocabulary import phrases, words

AUTH, INVALID, TRANSIENT, MISSING, UNKNOWN_TOOL, OTHER = (
    "auth",
    "invalid",
    "transient",
    "missing",
    "unknown_tool",
    "other",
)
_WORD = re.compile(r"[^\W\d](?:[\w'-]*\w)?:?|[❌✗✖]")
_JOINTS = str.maketrans(dict.fromkeys(",;()[]{}\"'!?=<>|:*`~#\n\t", " "))
_FAIL_WORDS, _FAIL_PHRASES = words("answers", "fail_words"), phrases("answers", "fail_phrases")
_SORTS = (
    (UNKNOWN_TOOL, phrases("answers", "unknown_tool")),
    (AUTH, phrases("answers", "auth")),
    (TRANSIENT, phrases("answers", "transient")),
    (MISSING, phrases("answers", "missing")),
    (INVALID, phrases("answers", "invalid")),
)
_PENDING_WORDS, _PENDING_PHRASES = words("answers", "pending_words"), phrases("answers", "pending_phrases")
_ENDED_WORDS, _ENDED_PHRASES = words("answers", "ended_words"), phrases("answers", "ended_phrases")
_DONE_WORDS = words("answers", "done_words")
_EMPTY_PHRASES = phrases("answers", "empty_phrases")
_FRUITLESS = phrases("answers", "fruitless")
_SENT_WORDS = words("answers", "sent_words")
_ACK_WORDS = words("answers", "ack_words")
_LEFT_WORDS, _DONE_COUNTS = words("answers", "left_words"), words("answers", "done_counts")
# The naught of 1000 is none.
_ZERO = re.compile(r"[1-9][0-9.,]*")
_EXIT = re.compile(r"exit(?:ed)?(?: with)?(?: code| status)?[ :=]+[1-9]")
_HTTP = re.compile(r"^\W*(?:http/\S+ )?[45]\d\d\b(?! (?:rows|items|records|files|lines|results|passed))")
_NAMED = re.compile(r"^\W*[a-z_.]*(?:error|exception)\b\s*[:(]")
_PART_DONE = re.compile(
    r"^\W*(?:\w+\W+){0,4}(\d{1,3}(?:\.\d+)?)\s?%\W*$"
    r"|(\d{1,3}(?:\.\d+)?)\s?% (?:complete|done|finished|loaded|uploaded|processed|ready)"
)
_NO_TOOL = re.compile(
    r"\b(?:tool|function)s?\b[^.\n]{0,60}"
    r"\b(?:not found|not available|not exist|n't exist|unknown|not registered|unavailable|not a valid)"
    r"|\b(?:unknown|no such|invalid|unrecogni[sz]ed|undefined|nonexistent|no) (?:tool|function)\b"
)
_DIGITS = frozenset("0123456789")
# A longer text is prose, in which something is always running.
_BRIEF = 300
NOTHING = frozenset({"", "none", "null", "nil", "empty", "n/a", "na", "[]", "{}", "0", "false", "no", "-"})


def _holds(text: str, phrases: tuple[str, ...]) -> bool:
    # A plain loop: a generator would take twice as long, and this is most of what an answer costs.
    for phrase in phrases:  # noqa: SIM110
        if phrase in text:
            return True
    return False


def heard(low: str) -> tuple[str, ...]:
    """The words of a text, each without what only joins it."""
    return tuple(word[:-1] if word[-1] == "." and len(word) > 1 else word for word in low.translate(_JOINTS).split())


def reports_failure(low: str, value: Any) -> bool:
    """Whether an answer that was not flagged tells of a failure. `low`: its head, lower case; `value`: parsed."""
    if isinstance(value, dict):
        return _object_fails(value)
    start = low[:90]
    found = _WORD.findall(start)[:3]
    if any(word in _FAIL_WORDS and (at == 0 or word.endswith(":")) for at, word in enumerate(found)):
        return not start.startswith(("no error", "error rate", "errors: 0", "failed: 0"))
    if _HTTP.match(start) or _NAMED.match(start):
        return True
    if _holds(start, _FAIL_PHRASES):
        return True
    return "exit" in low and _EXIT.search(low) is not None


def _object_fails(value: dict[str, Any]) -> bool:
    if value.get("ok") is False or value.get("success") is False or value.get("isError") is True:
        return True
    error = value.get("error") or value.get("errors") or value.get("error_code")
    if error not in (None, False, "", 0, "null", "none") and error != [] and error != {}:
        return True
    code = value.get("exit_code", value.get("exitCode", value.get("returncode", 0)))
    if isinstance(code, int) and code != 0:
        return True
    http = value.get("status_code", value.get("statusCode", value.get("code", value.get("status"))))
    if isinstance(http, int) and not isinstance(http, bool) and 400 <= http < 600:
        return True
    return value.get("status") in ("error", "fail")


def sort_of_fault(low: str) -> str:
    if ("tool" in low or "function" in low) and _NO_TOOL.search(low):
        return UNKNOWN_TOOL
    for sort, found in _SORTS:
        if _holds(low, found):
            return sort
    return OTHER


def pending(low: str, status: str, said: tuple[str, ...]) -> tuple[bool, bool]:
    """(something is still going on, it is over and will not change by itself). A status field says it best."""
    if status:
        one = frozenset({status, *status.replace("_", " ").replace("-", " ").split()})
        if one & _ENDED_WORDS:
            return False, True
        if one & _PENDING_WORDS or status == "open":
            return True, _holds(low, _ENDED_PHRASES)
        if one & _DONE_WORDS:
            return False, True
    ended = not _ENDED_WORDS.isdisjoint(said) or _holds(low, _ENDED_PHRASES)
    if ended:
        return False, True
    waits = len(low) < _BRIEF and not _PENDING_WORDS.isdisjoint(said)
    waits = waits or _holds(low, _PENDING_PHRASES)
    if not waits and "%" in low:
        waits = any(float(one or other) < 100 for one, other in _PART_DONE.findall(low))
    return waits, False


def is_empty(low: str, value: Any) -> bool:
    if isinstance(value, list):
        return not value
    if isinstance(value, dict):
        lists = [one for one in value.values() if isinstance(one, list)]
        totals = [value.get(key) for key in ("total", "count", "hits", "total_count", "totalCount", "n")]
        nothing = 0 in totals or "0" in totals
        return not value or nothing or (bool(lists) and not any(lists))
    bare = low.strip(" \t\n.!'\"")
    return bare in NOTHING or (len(low) < 160 and _holds(_ZERO.sub("#", low), _EMPTY_PHRASES))


def is_fruitless(low: str) -> bool:
    """Whether a report tells, in whatever words, that nothing came of it."""
    return low.startswith(("no ", "nothing", "none", "kein", "aucun", "ingen", "nada", "nessun")) or _holds(
        low, _FRUITLESS
    )


def tells_sent(said: tuple[str, ...]) -> bool:
    """Whether something has reached somebody or was made anew."""
    return not _SENT_WORDS.isdisjoint(said)


def acknowledges(said: tuple[str, ...]) -> bool:
    return not _ACK_WORDS.isdisjoint(said)


def tally(words_heard: tuple[str, ...]) -> tuple[float, float] | None:
    """(how much is left, how much is done), -1 for what is not counted; None where nothing is."""
    left, done = 0.0, -1.0
    counted = False
    last = len(words_heard) - 1
    for at in [at for at, word in enumerate(words_heard) if word[0] in _DIGITS]:
        word = words_heard[at]
        head, _, whole = word.partition("/")
        bare = head.rstrip("%")
        if not bare.replace(".", "", 1).isdecimal() or len(bare) > 12:
            continue
        near = words_heard[at + 1 : at + 3] if at < last else ()
        if head != bare or (whole and whole.isdecimal()) or not _DONE_COUNTS.isdisjoint(near[:1]):
            done = max(done, float(bare))
        elif not _LEFT_WORDS.isdisjoint(near):
            left, counted = left + float(bare), True
        elif not _DONE_COUNTS.isdisjoint(near):
            done = max(done, float(bare))
    if not counted and done < 0:
        return None
    return (left if counted else -1.0), done
