"""A run's log in the form of a recorded call sequence, read from the database."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from agents.policy.sequences import sequence_of
from control.runs import artifacts, log

PAGE = 2000


def of_run(run: str) -> dict[str, Any]:
    """`{id, calls, hints?}` of one run, sub-agents not included. Calls that have no result yet are left out."""
    return sequence_of(run, (orjson.loads(body) for body in _bodies(run)), _content)


def _bodies(run: str) -> Iterator[bytes]:
    after = 0
    while bodies := log.read_after(run, after, PAGE):
        yield from bodies
        after = orjson.loads(bodies[-1])["seq"]


def _content(reference: Mapping[str, Any]) -> bytes | None:
    try:
        return artifacts.get(reference["sha256"])
    except (LookupError, FileNotFoundError):
        return None
