"""Whether a call measures: then the times in its answer are what was asked for."""

import re
from functools import lru_cache

from agents.policy.identity import Act
from agents.policy.vocabulary import Phrases

_MEASURES = re.compile(
    r"(?i)(?:\b|_)(?:hyperfine|bench\w*|perf|wrk|ab|k6|timeit|time|latency|measure\w*|profile)(?:\b|_)"
)
# Looked for first: the pattern may begin anywhere.
_HINTS = Phrases(
    {"measures": ("hyperfine", "bench", "perf", "wrk", "ab", "k6", "timeit", "time", "latency", "measure", "profile")}
)


def measures(act: Act) -> bool:
    """By its command, or by the name of its tool."""
    return _of_tool(act.tool) if act.command is None else _measures(act.command.text)


def _measures(text: str) -> bool:
    return _HINTS.holds(text.casefold()) and _MEASURES.search(text) is not None


_of_tool = lru_cache(maxsize=1_024)(_measures)
