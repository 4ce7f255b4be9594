"""Taking out of an answer what is different each time and says nothing: times, durations, process numbers, ids.

All other numbers stay, they are progress. Each step first looks, cheaply, whether there is anything to take out.
"""

import re

from agents.policy.vocabulary import Phrases, words

HAS_DIGIT = re.compile("[0-9]").search
# The rest of a word from its first digit on, where words are parted by blanks.
FROM_DIGIT = re.compile("[0-9][^ ]*")
# All begin with a digit, so that a text without digits costs nothing; what cannot end otherwise is never tried anew.
_SCRUB = re.compile(
    r"[0-9](?<![\w.][0-9])(?:"
    r"\d{3}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:\s?Z|\s?[+-]\d\d:?\d\d)?)"
    r"|\d?:\d\d:\d\d(?:[.,]\d+)?(?:\s?[AP]M)?"
    r"|x[0-9a-fA-F]+\b"
    r"|\d*+(?:d\d{1,2}h|h\d{1,2}m|m\d{1,2}s)(?:\d{1,2}m)?(?:\d{1,2}s)?\b(?:\s?ago)?"
    r"|(?<=1)[5-9]\d{8}(?:\d{3})?\b"
    r"|\d*+(?:\.\d+)?+\s?+(?:ms|msec|µs|us|ns|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)\b(?:\d+s\b)?(?:\s?ago)?"
    r")"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
# Where a login page leads back to: what was asked, not what was answered.
_LED_BACK = re.compile(r"(?i)(?<=[?&])[\w-]*(?:redirect|return)[\w-]*=(?:https?(?:%3A|:)|%2F|/)[^\s&\"'<>)]*")
_TEMPORARY = re.compile(r"/(?:tmp|var/folders)/[\w./-]+")
# Begins with the letters that may begin a label, not with a border of words: those are found much faster.
_LABELLED = re.compile(
    r"[pPrRtTsScCeEnNiIoOaA](?<!\w.)(?i:"
    r"(?<=p)(?:id|rocess)\s?[:=#]?\s?\d+"
    r"|(?:(?<=r)eq(?:uest)?|(?<=t)race|(?<=s)pan|(?<=c)orrelation|(?<=r)ay|(?<=s)ession|(?<=t)oken|(?<=e)tag|(?<=n)once"
    r"|(?<=s)eed|(?<=e)xecution|(?<=i)nvocation|(?<=o)peration)"
    r"(?:[ _-]?ids?\s?[:=#]?\s?|\s?[:=#]\s?|-| (?=[a-f]*[0-9])(?=[0-9]*[a-f])(?=[0-9a-f]{4,}\b))\"?(?=[\w-]*\d)[\w-]+"
    r"|(?<=r)ef=(?:[a-z]{1,2}\d+){1,3}\b"
    r"|(?:(?<=r)e(?:ad|try)|(?<=a)ttempts?|(?<=t)r(?:y|ied))\s?#?\s?\d+(?:\s?(?:times|of \d+|/\s?\d+))?)"
)
# When it was told, to the minute; the number of a notebook's cell; the file of a picture taken just now.
_TOLD_AT = re.compile(r"[0-9](?<![\w.][0-9])[0-9]?:[0-9]{2}\b(?!:)")
_TOLD_BY = re.compile(
    r"(?i)\b(?:clock|stand|as of|now|local time|current time|(?:last )?(?:updated|checked|refreshed|synced)(?: at)?)"
    r"\s?:?\s?$"
)
# How far before a time it stands what time it is, in characters.
_BY = 24
_CELL = re.compile(r"\b(?:In|Out) ?\[[0-9]+\]")
_PICTURE = re.compile(r"(?<=screenshot)[^\n\]]{0,40}?[\w-]*[0-9][\w-]*\.(?:png|jpe?g|webp)\b")
_LABEL_WORDS = (
    "pid|process |request|req-|req_|req |trace-|trace_|traceid|trace id|trace:|span|correl|ray id|ray-id|session|token"
    "|ref=|etag|seed|nonce|execution|invocation|operation|attempt|try |tried |read "
)
_LABELS = Phrases({"label": _LABEL_WORDS.split("|")})
# Made up anew for each answer: hexadecimal, or letters of both cases mixed with digits.
_LONG = re.compile(r"[A-Za-z0-9_-]{16,}")
_ODD = re.compile(r"\b(?:[a-z]{1,8}_)?[A-Za-z]{0,16}[0-9]\w{2,}")
_ODD_END = re.compile(r"[0-9]\w\w")
_HEX = frozenset("0123456789abcdef")
_HEADERS = re.compile(
    r"(?im)^(?:date|age|expires|etag|last-modified|set-cookie|cookie|server-timing|via|cf-[\w-]+|x-[\w-]*(?:id|time|remaining|reset|trace\w*)"
    r"|retry-after|report-to|nel|alt-svc):[^\n]*\n?"
)
_NUMBERED_THINGS = words("answers", "numbered_things")
_JOINTS = frozenset(".:#=")
_IDS = re.compile(
    r"\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{4,}\b|#\d+|\b\d{4,}\b"
    rf"|\b(?=[A-Za-z]{{2,11}}+\s?[.:#=]?\s?\d)(?i:(?:{'|'.join(sorted(_NUMBERED_THINGS))})\s?[.:#=]?\s?)\d+\b"
)


def _classes() -> tuple[bytes, bytes]:
    """Each byte as what it is within a long word: one letter for all, or capital, digit, other apart."""
    one, apart = bytearray(b" " * 256), bytearray(b" " * 256)
    for code in range(128):
        char = chr(code)
        if char.isalnum() or char in "_-":
            one[code] = ord("a")
            apart[code] = ord("A") if char.isupper() else ord("1") if char.isdigit() else ord("a")
    return bytes(one), bytes(apart)


_ONE_CLASS, _APART = _classes()
_RUN = b"a" * 16


def scrub(text: str) -> str:
    """Without what is different each time and says nothing. Lines stay lines."""
    low = text.casefold()
    if "http/" in low[:40]:
        text = _HEADERS.sub("", text)
    digits = HAS_DIGIT(text) is not None
    if digits:
        raw = text.encode("utf-8", "surrogatepass")
        long = _RUN in raw.translate(_ONE_CLASS)
        if long and text.count("-") > 3:
            text = _UUID.sub("~", text)
        text = _SCRUB.sub("~", text)
        if long and _may_hold_secret(raw):
            text = _LONG.sub(_if_secret, text)
    if "/tmp/" in text or "/folders/" in text:
        text = _TEMPORARY.sub("~", text)
    if "redirect" in low or "return" in low:
        text = _LED_BACK.sub("~", text)
    if digits and _LABELS.holds(low):
        text = _LABELLED.sub("~", text)
    if digits and (":" in text or "[" in text):
        text = _without_marks(text, low)
    return text


def _without_marks(text: str, low: str) -> str:
    """Without what only tells at which minute, from which cell, in which picture it was seen."""
    if "t[" in low or "n [" in low:
        text = _CELL.sub("~", text)
    if "screenshot" in low:
        text = _PICTURE.sub("~", text)
    return _TOLD_AT.sub(_if_told, text) if ":" in text else text


def _if_told(match: re.Match[str]) -> str:
    before = match.string[max(match.start() - _BY, 0) : match.start()]
    return "~" if _TOLD_BY.search(before) else match.group()


def _may_hold_secret(raw: bytes) -> bool:
    return any(len(word) > 15 and b"1" in word and word.count(b"A") > 2 for word in raw.translate(_APART).split())


def _if_secret(match: re.Match[str]) -> str:
    """A token made for this answer mixes cases and digits; names, hashes of content and words do not."""
    word = match.group()
    if word.islower() or word.isupper() or word.isalpha() or "__" in word:
        return word
    return "~" if any(map(str.isdigit, word)) and sum(map(str.isupper, word)) > 2 else word


def without_random(text: str) -> str:
    """`#` for each word made up anew for this answer: hexadecimal, or letters of both cases mixed with digits."""
    out: list[str] = []
    done = 0
    while (odd := _ODD_END.search(text, done)) is not None:
        start, end = text.rfind(" ", 0, odd.start()) + 1, text.find(" ", odd.start())
        end = end if end >= 0 else len(text)
        out += (text[done:start], _ODD.sub(_if_random, text[start:end]))
        done = end
    return "".join([*out, text[done:]]) if out else text


def _if_random(match: re.Match[str]) -> str:
    word = match.group()
    if len(word) > 5 and _HEX.issuperset(word):
        return "#"
    return word if word.islower() or word.isupper() or word.isdigit() else "#"


def _may_number(before: str) -> bool:
    """Whether what stands before a number may say what it is the number of: `order`, `ticket no.`"""
    bare = before[:-1] if before[-1:] in _JOINTS else before
    if not bare:
        return True
    return bare[-1].isalpha() and (not bare.isalpha() or bare.casefold() in _NUMBERED_THINGS)


def without_ids(text: str) -> str:
    """`#` for each id and each number that stands for one. `text`: words with single blanks between them."""
    found = [text.count(" ", 0, match.start()) for match in FROM_DIGIT.finditer(text)]
    if not found:
        return text
    words = text.split(" ")
    parts = list(words)
    spots = []
    for at in found:
        if words[at].isdigit() and not _may_number(words[at - 1] if at else ""):
            if len(words[at]) > 3:
                parts[at] = "#"
        else:
            spots.append(at)
    # What is replaced spans two words before the one with the digit at most: `order no. 5`.
    spans: list[list[int]] = []
    for spot in spots:
        if spans and spot - 2 <= spans[-1][1]:
            spans[-1][1] = spot + 1
        else:
            spans.append([max(spot - 2, 0), spot + 1])
    out: list[str] = []
    done = 0
    for first, end in spans:
        out += parts[done:first]
        out.append(_IDS.sub("#", " ".join(parts[first:end])))
        done = end
    return " ".join(out + parts[done:])
