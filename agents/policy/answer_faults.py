"""How an answer failed: the failure without its numbers, and also without the names in it."""

import re

from agents.policy.canonical import digest
from agents.policy.scrubbing import without_random

NUMBERS = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_QUOTED = re.compile(r"['\"`](?:(?<=')[^'\n]{1,120}'|(?<=\")[^\"\n]{1,120}\"|(?<=`)[^`\n]{1,120}`)")
# An id that mixes letters and digits, once its numbers are masked: `90cf7`, `a62c7`.
_MIXED = re.compile(r"#[a-z]{1,3}#[a-z#]*")
_LEADS = re.compile(r"[a-z]{1,4}$")
# A database shows the line of the query.
_SHOWN = re.compile(
    r"[lzr](?<!\w.)(?:(?<=l)(?:ine|igne|ínea|inha|inje)|(?<=z)eile|(?<=r)iga) [0-9]{1,3} ?: .*?(?:\^|$)"
)
_MARKUP = re.compile(r"</?[a-z][\w:-]*(?: [^<>]{0,100})?>")


def fault_of(scrubbed: str, tally: tuple[float, float] | None) -> tuple[str, str, bool]:
    """(the failure without numbers, also without names, whether there were names)."""
    window = without_random(window_of(scrubbed)).casefold()
    if "</" in window:
        window = " ".join(_MARKUP.sub(" ", window).split())
    masked = _unnamed(window)
    bare = _numberless(window)
    names = masked != window
    return digest(f"{bare}{tally or ''}"), digest(_numberless(masked) if names else bare), names


def _numberless(text: str) -> str:
    bare = NUMBERS.sub("#", text)
    if _MIXED.search(bare) is None:
        return bare
    head, *rest = _MIXED.split(bare)
    # The letters that such an id begins with belong to it.
    return "#".join([*(_LEADS.sub("", part) for part in (head, *rest[:-1])), rest[-1]])


def window_of(text: str) -> str:
    """Where an error says what it is: its beginning and its last words."""
    return text if len(text) <= 300 else f"{text[:120]} … {text[-180:]}"


def _unnamed(text: str) -> str:
    """Without the names in it: what stands in quotes, paths, files."""
    if "^" in text or "line " in text:
        text = _SHOWN.sub("~", text)
    text = _QUOTED.sub("~", text)
    return " ".join(
        ["~" if ("/" in word or "." in word) and _has_inside(word[1:-1]) else word for word in text.split()]
    )


def _has_inside(word: str) -> bool:
    return "/" in word or "." in word
