"""What every event body is, and how a kind is registered under its name."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, dataclass_transform

JSON = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """Base of all event bodies."""

    kind: ClassVar[str] = ""
    _nullable: ClassVar[frozenset[str]] = frozenset()
    _names: ClassVar[tuple[str, ...]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown(Body):
    """A kind this version does not know: kept and shown raw."""

    name: str
    raw: JSON


_KINDS: dict[str, type[Body]] = {}


@dataclass_transform(frozen_default=True, kw_only_default=True)
def event(kind: str, nullable: tuple[str, ...] = ()) -> Any:
    """Make the class the body of this kind."""

    def register(cls: type[Body]) -> type[Body]:
        made = dataclass(frozen=True, slots=True, kw_only=True)(cls)
        made.kind = kind
        made._nullable = frozenset(nullable)
        made._names = tuple(f.name for f in fields(made))
        _KINDS[kind] = made
        return made

    return register


def registered() -> Mapping[str, type[Body]]:
    return _KINDS
