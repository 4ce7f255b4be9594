"""A new version of an agent or a policy: rows are never changed, only followed, and exactly one is current."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from django.db import IntegrityError, transaction
from django.utils import timezone

from control.fleet.models import Agent, Policy

M = TypeVar("M", Agent, Policy)


class VersionConflict(Exception):
    """Someone else saved meanwhile. `current` is the version that is in force (0: none)."""

    def __init__(self, current: int) -> None:
        super().__init__(f"version {current} is current")
        self.current = current


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved(Generic[M]):
    row: M
    before: M | None
    changed: bool


def current(model: type[M], name: str) -> M | None:
    return model.objects.filter(name=name, current=True).first()


def save(
    model: type[M],
    name: str,
    fields: Mapping[str, Any],
    *,
    by: str,
    expected: int | None = None,
    about: Mapping[str, Any] = MappingProxyType({}),
) -> Saved[M]:
    """Make `fields` the current version. `expected` guards against lost updates: raises VersionConflict if it is not
    the current one. Saving what is there already changes nothing; `about` is kept with a new version and makes none."""
    try:
        with transaction.atomic():
            before = current(model, name)
            number = before.version if before else 0
            if expected is not None and expected != number:
                raise VersionConflict(number)
            if before and all(getattr(before, field) == value for field, value in fields.items()):
                return Saved(row=before, before=before, changed=False)
            # Conditional: of two writers that saw the same current row, one retires it; the other meets 0 rows.
            if before and not model.objects.filter(pk=before.pk, current=True).update(current=False):
                raise VersionConflict(number + 1)
            row = model.objects.create(
                name=name,
                version=number + 1,
                current=True,
                created_at=timezone.now(),
                created_by=by,
                **fields,
                **about,
            )
            return Saved(row=row, before=before, changed=True)
    except IntegrityError as error:
        now = current(model, name)
        raise VersionConflict(now.version if now else 0) from error
