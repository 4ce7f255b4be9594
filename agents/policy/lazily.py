"""Values that are worked out when somebody first asks for them."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class lazy(Generic[Value]):
    """`functools.cached_property` without its lock, which costs more than most of what is worked out here."""

    def __init__(self, work: Callable[[Any], Value]) -> None:
        self._work = work
        self._name = work.__name__
        self.__doc__ = work.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> "lazy[Value]": ...

    @overload
    def __get__(self, owner: object, kind: type | None = None) -> Value: ...

    def __get__(self, owner: object | None, kind: type | None = None) -> "Value | lazy[Value]":
        if owner is None:
            return self
        value = owner.__dict__[self._name] = self._work(owner)
        return value
