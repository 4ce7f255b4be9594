"""What is kept in versions, named as `name`, `name@3` or `name@shipped`, to be read and compared."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from control.fleet.models import Agent, Policy

Row = TypeVar("Row", Agent, Policy)

SHIPPED = "shipped"
# A choice of more versions than this is no choice; older ones have an address all the same.
LONGEST_REF = 140
LISTED = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a comparison. `version` None: what ships with this release."""

    name: str
    version: int | None
    body: Mapping[str, Any]
    source: str
    current: bool = False
    at: datetime | None = None
    by: str = ""

    @property
    def ref(self) -> str:
        return f"{self.name}@{SHIPPED if self.version is None else self.version}"

    @property
    def word(self) -> str:
        return f"{self.name} as it ships" if self.version is None else f"{self.name} v{self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides(Generic[Row]):
    """All versions of one model. `shipped` gives the data and the text of what ships under one of `shipped_names`."""

    model: type[Row]
    body_of: Callable[[Row], Mapping[str, Any]]
    source_of: Callable[[Row], str]
    shipped_names: Sequence[str]
    shipped: Callable[[str], tuple[Mapping[str, Any], str]]

    def find(self, name: str, version: int | None = None) -> Row | None:
        """A version, the current one if none is named."""
        if "\x00" in name:
            return None
        rows = self.model.objects.filter(name=name)
        return rows.filter(current=True).first() if version is None else rows.filter(version=version).first()

    def side(self, ref: str) -> Side | None:
        """What a reference names; None if there is no such thing."""
        name, at, version = ref.partition("@")
        if version == SHIPPED and name in self.shipped_names:
            body, source = self.shipped(name)
            return Side(name=name, version=None, body=body, source=source)
        if at and not (version.isascii() and version.isdigit() and len(version) < 9):
            return None
        row = self.find(name, int(version) if at else None)
        if row is None:
            return None
        return Side(
            name=row.name,
            version=row.version,
            body=self.body_of(row),
            source=self.source_of(row),
            current=row.current,
            at=row.created_at,
            by=row.created_by,
        )

    def facing(self, *asked: str) -> dict[str, Any]:
        """What a page shows of two references side by side: both sides, and which reference names nothing."""
        refs = [ref[:LONGEST_REF] for ref in asked]
        left, right = both = [self.side(ref) if ref else None for ref in refs]
        return {
            "choices": self.choices(),
            "left": left,
            "right": right,
            "sides": [("a", left.ref if left else refs[0]), ("b", right.ref if right else refs[1])],
            "both": both,
            "unknown": [ref for ref, side in zip(refs, both, strict=True) if ref and side is None],
        }

    def choices(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """Everything that can be compared, by name, the newest version first: `(reference, words)`."""
        found: dict[str, list[tuple[str, str]]] = {}
        rows = self.model.objects.order_by("name", "-version").values_list("name", "version", "current")
        for name, version, current in rows:
            listed = found.setdefault(name, [])
            if len(listed) < LISTED:
                listed.append((f"{name}@{version}", f"{name} v{version}{', current' if current else ''}"))
        for name in self.shipped_names:
            found.setdefault(name, []).append((f"{name}@{SHIPPED}", f"{name} as it ships"))
        return list(found.items())
