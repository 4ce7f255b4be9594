"""The words of answers: failing, waiting, over for good, empty, acknowledged; and the numbers that tell progress."""

import re
from collections.abc import Mapping
from typing import Any

from agents.policy.scrubbing import HAS_DIGIT
from agents.policy.vocabulary import JOINTS, Phrases, phrases, words

AUTH, INVALID, TRANSIENT, MISSING, UNKNOWN_TOOL, OTHER = (
    "auth",
    "invalid",
    "transient",
    "missing",
    "unknown_tool",
    "other",
)
# What an answer tells that is no failure itself: the thing asked about has failed for good.
LOST = "lost"
_WORD = re.compile(r"[^\W\d](?:[\w'-]*\w)?:?|[❌✗✖]")
_FIRST_WORDS = 3
_AS_BLANK = bytes.maketrans(JOINTS.encode(), b" " * len(JOINTS))
# What a failure is, by the first of these of which a phrase stands in it.
_SORTS = (UNKNOWN_TOOL, AUTH, TRANSIENT, MISSING, INVALID)
# A call that lacks something stays so, although its answer asks to try again.
_INVALID_CALL = "invalid_call"
_FAIL, _PENDING, _ENDED = "fail_phrases", "pending_phrases", "ended_phrases"
_EMPTY, _EASING, _FRUITLESS = (
    Phrases({name: phrases("answers", name)}) for name in ("empty_phrases", "easing", "fruitless")
)
_FAIL_WORDS, _PENDING_WORDS = words("answers", "fail_words"), words("answers", "pending_words")
_ENDED_WORDS, _DONE_WORDS = words("answers", "ended_words"), words("answers", "done_words")
_SENT_WORDS = words("answers", "sent_words")
_ACK_WORDS = words("answers", "ack_words")
_LEFT_WORDS, _DONE_COUNTS = words("answers", "left_words"), words("answers", "done_counts")
_COUNTED = _LEFT_WORDS | _DONE_COUNTS
DONE = _SENT_WORDS | _ACK_WORDS
_ALL = Phrases(
    {"fail_words": _FAIL_WORDS}
    | {name: phrases("answers", name) for name in (*_SORTS, _INVALID_CALL, _FAIL, _PENDING, _ENDED)},
    words=_PENDING_WORDS | _ENDED_WORDS | DONE | _COUNTED,
)
_TOTALS = frozenset({"total", "count", "hits", "total_count", "totalCount", "n"})
# An object that has none of these does not tell how it went.
_OUTCOMES = frozenset(
    {"ok", "success", "isError", "error", "errors", "error_code", "exit_code", "exitCode", "returncode", "status_code"}
    | {"statusCode", "code", "status"}
)
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
_PART_OF = re.compile(r"[0-9](?<![^ ][0-9])[0-9]{0,14} (?:out )?of (?:the )?[0-9]")
_DIGITS = frozenset("0123456789")
_OF_WHOLE = re.compile(r"/(?<=[\d.]/)\d")
# An answer says that it fails at once, a failure what it is a little later.
_START, _WINDOW = 90, 240
# A longer text is prose, in which something is always running.
_BRIEF = 300
NOTHING = frozenset({"", "none", "null", "nil", "empty", "n/a", "na", "[]", "{}", "0", "false", "no", "-"})


def heard(low: str) -> tuple[dict[str, int], dict[str, int]]:
    """What a text says: the lists of which a phrase stands in it, each with the place behind the first one, and the
    words in it that mean something here, each with the place of the last."""
    return _ALL.heard(low)


def reports_failure(low: str, spoken: Mapping[str, int], value: Any) -> bool:
    """Whether an answer that was not flagged tells of a failure. `low`: its head, lower case; `value`: parsed."""
    if isinstance(value, dict):
        return _object_fails(value)
    start = low[:_START]
    for at, match in enumerate(_WORD.finditer(start) if spoken.get("fail_words", _START + 1) <= _START else ()):
        if at == _FIRST_WORDS:
            break
        word = match.group()
        if word in _FAIL_WORDS and (at == 0 or word[-1] == ":"):
            return not start.startswith(("no error", "error rate", "errors: 0", "failed: 0"))
    if _HTTP.match(start) or _NAMED.match(start):
        return True
    if spoken.get(_FAIL, _START + 1) <= _START:
        return True
    return "exit" in low and _EXIT.search(low) is not None


def _object_fails(value: dict[str, Any]) -> bool:
    if _OUTCOMES.isdisjoint(value):
        return False
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


def sort_of_fault(low: str, spoken: Mapping[str, int]) -> str:
    low = low[:_WINDOW]
    if ("tool" in low or "function" in low) and _NO_TOOL.search(low):
        return UNKNOWN_TOOL
    if spoken.get(_INVALID_CALL, _WINDOW + 1) <= _WINDOW:
        return INVALID
    return next((sort for sort in _SORTS if spoken.get(sort, _WINDOW + 1) <= _WINDOW), OTHER)


def pending(low: str, spoken: Mapping[str, int], status: str, said: Mapping[str, int]) -> tuple[bool, bool]:
    """(something is still going on, it is over and will not change by itself). A status field says it best."""
    if status:
        one = frozenset({status, *status.replace("_", " ").replace("-", " ").split()})
        if one & _ENDED_WORDS:
            return False, True
        if one & _PENDING_WORDS or status == "open":
            return True, _ENDED in spoken
        if one & _DONE_WORDS:
            return False, True
    ended = not _ENDED_WORDS.isdisjoint(said) or _ENDED in spoken
    if ended:
        return False, True
    waits = _PENDING in spoken or (len(low) < _BRIEF and not _PENDING_WORDS.isdisjoint(said))
    if not waits and "%" in low:
        waits = any(float(one or other) < 100 for one, other in _PART_DONE.findall(low))
    return waits, False


def is_lost(low: str, status: str, said: Mapping[str, int]) -> bool:
    """Whether what is over (see `pending`) ended badly."""
    if status:
        return not _ENDED_WORDS.isdisjoint({status, *status.replace("_", " ").replace("-", " ").split()})
    return len(low) < _BRIEF and not _ENDED_WORDS.isdisjoint(said)


def is_empty(low: str, value: Any) -> bool:
    if isinstance(value, list):
        return not value
    if isinstance(value, dict):
        totals = [value[key] for key in _TOTALS.intersection(value)]
        if not value or 0 in totals or "0" in totals:
            return True
        lists = [one for one in value.values() if type(one) is list]
        for part in value.values():
            if type(part) is dict:
                lists += [one for one in part.values() if type(one) is list]
        return bool(lists) and not any(lists)
    bare = low.strip(" \t\n.!'\"")
    return bare in NOTHING or (len(low) < 160 and _EMPTY.holds(_ZERO.sub("#", low)))


def is_fruitless(low: str) -> bool:
    """Whether a report tells, in whatever words, that nothing came of it."""
    starts = ("no ", "nothing", "none", "kein", "aucun", "ingen", "nada", "nessun")
    return low.startswith(starts) or _FRUITLESS.holds(low)


def eases(text: str) -> bool:
    """Whether a failure asks to be tried again later."""
    return _EASING.holds(text.casefold())


def tells_sent(said: Mapping[str, int]) -> bool:
    """Whether something has reached somebody or was made anew."""
    return not _SENT_WORDS.isdisjoint(said)


def acknowledges(said: Mapping[str, int]) -> bool:
    return not _ACK_WORDS.isdisjoint(said)


def tally(low: str, said: Mapping[str, int], value: Any) -> tuple[float, float] | None:
    """(how much is left, how much is done), -1 for what is not counted; None where nothing is."""
    # What is counted stands behind its number.
    last = max([said[word] for word in _COUNTED.intersection(said)], default=0)
    counts = HAS_DIGIT(low, 0, last) is not None or "%" in low or ("/" in low and _OF_WHOLE.search(low) is not None)
    part = _part_of(low) if " of " in low else None
    if not (counts or part is not None or isinstance(value, dict)) or HAS_DIGIT(low) is None:
        return None
    if isinstance(value, dict) and (found := _tally_of_object(value)) is not None:
        return found
    found = _tally_of_words(_words_of(low)) if counts else None
    return found if found is not None or part is None else (-1.0, part)


def _part_of(low: str) -> float | None:
    """The three of `3 out of 8 replicas`."""
    part = _PART_OF.search(low)
    return None if part is None else float(part[0].split(" ", 1)[0])


def _words_of(low: str) -> list[str]:
    """The words of a text, each without what only joins it."""
    plain = low.encode("utf-8", "surrogatepass").translate(_AS_BLANK).decode("utf-8", "surrogatepass")
    return f"{plain} ".replace(". ", " ").split()


def _tally_of_words(words_heard: list[str]) -> tuple[float, float] | None:
    left, done = 0.0, -1.0
    counted = False
    for at, word in enumerate(words_heard):
        if word >= ":" or word[0] not in _DIGITS:
            continue
        near = words_heard[at + 1 : at + 3]
        if near and near[0].isdigit():
            near = []  # what follows is counted by the number before it: `assert 4 == 7`, `1 failed`
        if word.isdigit() and _COUNTED.isdisjoint(near):
            continue
        head, _, whole = word.partition("/")
        bare = head.rstrip("%")
        if (len(bare) == len(word) and _COUNTED.isdisjoint(near)) or len(bare) > 12:
            continue
        if not bare.replace(".", "", 1).isdecimal():
            continue
        if head != bare or (whole and whole.isdecimal()) or not _DONE_COUNTS.isdisjoint(near[:1]):
            done = max(done, float(bare))
        elif not _LEFT_WORDS.isdisjoint(near):
            left, counted = left + float(bare), True
        elif not _DONE_COUNTS.isdisjoint(near):
            done = max(done, float(bare))
    if not counted and done < 0:
        return None
    return (left if counted else -1.0), done


def _tally_of_object(value: dict[str, Any]) -> tuple[float, float] | None:
    left = done = -1.0
    for key, one in value.items():
        if type(one) is int and 0 <= one < 1e12:
            flat = key.casefold()
            if flat in _LEFT_WORDS:
                left = max(left, 0.0) + one
            elif flat in _DONE_COUNTS:
                done = max(done, float(one))
    return None if left < 0 and done < 0 else (left, done)
