"""A table that forgets what was not touched for longest, so that the guard's memory never grows with the run."""

from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class Bounded(Generic[Value]):
    """String keys; values are plain data (numbers, strings, lists), so that `dump` is JSON."""

    __slots__ = ("_limit", "_rows")

    def __init__(self, limit: int, rows: Iterable[tuple[str, Value]] = ()) -> None:
        self._limit = limit
        self._rows: dict[str, Value] = dict(rows)

    def get(self, key: str) -> Value | None:
        return self._rows.get(key)

    def put(self, key: str, value: Value) -> None:
        self._rows.pop(key, None)
        self._rows[key] = value
        if len(self._rows) > self._limit:
            del self._rows[next(iter(self._rows))]

    def drop(self, key: str) -> None:
        self._rows.pop(key, None)

    def clear(self) -> None:
        self._rows.clear()

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._rows))

    def __len__(self) -> int:
        return len(self._rows)

    def dump(self) -> list[Any]:
        return [[key, value] for key, value in self._rows.items()]

    def load(self, rows: Any) -> None:
        self._rows = {str(key): value for key, value in rows}


def remember(seen: dict[Any, None], new: Iterable[Any], limit: int, slack: int = 512) -> None:
    """Add to what was seen. Past limit and slack the oldest go, many at a time: a dict whose first entries were deleted
    one by one is slow to begin."""
    seen.update(dict.fromkeys(new))
    if len(seen) > limit + slack:
        for one in list(seen)[:-limit]:
            del seen[one]
