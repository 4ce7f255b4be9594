"""A table that forgets what was not touched for longest, so that the guard's memory never grows with the run."""

from collections.abc import Iterable
from typing import Any, TypeVar

Value = TypeVar("Value")


class Bounded(dict[str, Value]):
    """String keys; values are plain data (numbers, strings, lists), so that `dump` is JSON. Add with `put` only."""

    __slots__ = ("_limit",)

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def put(self, key: str, value: Value) -> None:
        self.pop(key, None)
        self[key] = value
        if len(self) > self._limit:
            del self[next(iter(self))]

    def drop(self, key: str) -> None:
        self.pop(key, None)

    def dump(self) -> list[Any]:
        return [[key, value] for key, value in self.items()]

    def load(self, rows: Any) -> None:
        self.clear()
        self.update((str(key), value) for key, value in rows)


def remember(seen: dict[Any, None], new: Iterable[Any], limit: int, slack: int = 512) -> None:
    """Add to what was seen. Past limit and slack the oldest go, many at a time: a dict whose first entries were deleted
    one by one is slow to begin."""
    seen.update(dict.fromkeys(new))
    if len(seen) > limit + slack:
        for one in list(seen)[:-limit]:
            del seen[one]
