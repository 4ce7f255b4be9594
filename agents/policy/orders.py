"""What a person's message means for the guard: an order to repeat, a standing order, a new fact, or a mere nudge."""

import re

from agents.policy.vocabulary import words

_COUNTS = {word: int(n) for word, _, n in (one.partition("=") for one in words("orders", "counts"))}
_UNITS, _STANDING, _NUDGES = words("orders", "units"), words("orders", "standing"), words("orders", "nudges")
_EACH, _BEATS, _PAST = words("orders", "each"), words("orders", "beats"), words("orders", "past")
_MORE, _ANOTHER, _ENDS = words("orders", "more"), words("orders", "another"), words("orders", "ends")
_WORD = re.compile(r"[^\W_]+'?[^\W\d_]*|[?!]")
_MOST = 200
STANDING = 12


def repeats_ordered(text: str) -> int:
    """How many repeats a message asks for; 0 if it asks for none."""
    found = _WORD.findall(text[:2_000].casefold())
    most = 0
    for at, word in enumerate(found):
        number = int(word) if word.isdecimal() and len(word) < 4 else _COUNTS.get(word, 0)
        if word[:-1].isdecimal() and word.endswith("x") and len(word) < 5:
            most = max(most, int(word[:-1]))
        elif (word.endswith("mal") and word in _COUNTS) or (
            number
            and (word in ("twice", "thrice") or not _UNITS.isdisjoint(found[at + 1 : at + 3]) or _more(found, at))
        ):
            most = max(most, 0 if _tells(found, at) else number)
    if any(_stands(found, at) for at in range(len(found))):
        most = max(most, STANDING)
    return min(most, _MOST)


def _more(found: list[str], at: int) -> bool:
    """`four more in a row`, `another three`; not `three more reviewers`."""
    after = found[at + 1 : at + 3]
    if after[:1] and after[0] in _MORE:
        return not after[1:] or after[1] in _ENDS
    return at > 0 and found[at - 1] in _ANOTHER and (not after or after[0] in _ENDS)


def _tells(found: list[str], at: int) -> bool:
    """Whether a number tells what happened, as in `I was charged twice`."""
    before = found[max(at - 4, 0) : at]
    return not _PAST.isdisjoint(before) or any(word.endswith(("aron", "ieron")) for word in before)


def _stands(found: list[str], at: int) -> bool:
    """Whether a word says that something is to be done on and on: `until`, `every hour`; not `every service`."""
    if found[at] in _EACH:
        return any(word in _BEATS or word.isdecimal() or word in _COUNTS for word in found[at + 1 : at + 2])
    return found[at] in _STANDING and not _within_range(found, at)


def _within_range(found: list[str], at: int) -> bool:
    """`14. bis 16. August` is a time, no order."""
    return 0 < at < len(found) - 1 and found[at - 1].isdecimal() and found[at + 1].isdecimal()


def is_nudge(text: str) -> bool:
    """`continue`, `go on please`: urges without saying anything new."""
    found = _WORD.findall(text[:200].casefold())
    return len(text) < 60 and bool(found) and _NUDGES.issuperset(found)
