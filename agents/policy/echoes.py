"""What an answer merely repeats of its question: no news, and no difference either."""

from collections.abc import Mapping
from typing import Any

from agents.policy.canonical import COSMETIC

_SHORTEST, _LONGEST = 3, 200
ECHO = "~"


def without_remarks(text: str, pairs: Mapping[str, Any]) -> str:
    """An answer without the remarks of its call: `switched to code mode because <reason>`. What does not count in the
    question must not count in the answer. `pairs`: the arguments by their flat names."""
    if COSMETIC.isdisjoint(pairs):
        return text
    for key in COSMETIC.intersection(pairs):
        remark = pairs[key]
        if isinstance(remark, str) and len(remark) >= _SHORTEST and remark in text:
            text = text.replace(remark, ECHO)
    return text


def without_echo(text: str, pairs: Mapping[str, Any]) -> str:
    """A text in lower case without what it repeats of the arguments."""
    for value in pairs.values():
        if type(value) is str and _SHORTEST <= len(value) <= _LONGEST and (low := value.casefold()) in text:
            text = text.replace(low, ECHO)
    return text
