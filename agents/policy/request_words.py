"""The words of a request, and those among them that single something out: numbers, names of files, addresses, ids."""

import re

from agents.policy.lexing import words_in

RequestWords = tuple[frozenset[str], frozenset[str]]

_SINGLE = re.compile(r"[\d/@._]")
LONGEST, _MOST = 1_000, 24


def words_of_request(meant: str) -> RequestWords:
    """(all words, those that single something out) of a request in its one spelling."""
    found = [word.strip(".:-/") for word in words_in(meant[:LONGEST].casefold())[:_MOST]]
    every = frozenset(found)
    single = _SINGLE.search
    return every, frozenset([word for word in every if single(word)])
