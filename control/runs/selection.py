"""Which runs are meant: one filter for listing, bulk interrupt and the command line; and keyset paging."""

import base64
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from django.db.models import Q, QuerySet
from django.db.models.fields.json import KeyTransform

from agents.spec import Status
from control.runs.models import Run


class BadSelection(Exception):
    """The filter or the cursor cannot be read. `code` is stable, `message` says what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def as_id(given: str) -> str | None:
    """The id in its one form, or None if it is no id."""
    lowered = given.strip().lower()
    return lowered if _UUID.fullmatch(lowered) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A filter over runs; None means any. `status` and `agent` may list several, separated by commas."""

    all: bool = False
    ids: tuple[str, ...] | None = None
    status: str | None = None
    agent: str | None = None
    label: str | None = None
    project: str | None = None
    q: str | None = None

    @classmethod
    def of(cls, **given: Any) -> Self:
        """From loose values; blank ones count as not given. Raises `bad_status` for an unknown status."""
        ids, every = given.pop("ids", None), bool(given.pop("all", False))
        words: dict[str, Any] = {key: (value or None) for key, value in given.items()}
        made = cls(all=every, ids=tuple(ids) if ids is not None else None, **words)
        made._statuses()
        return made

    def refuse_empty(self) -> None:
        """An empty filter is more often a slip of a script than a wish to stop everything. Raises BadSelection."""
        if self.empty:
            message = 'The filter is empty. Name what to stop, or say {"all": true} to stop every run.'
            raise BadSelection("empty_filter", message)

    @property
    def empty(self) -> bool:
        return not self.all and self == type(self)()

    def as_json(self) -> dict[str, Any]:
        """Only what was given."""
        values = {name: getattr(self, name) for name in ("ids", "status", "agent", "label", "project", "q")}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items() if v is not None}

    def runs(self) -> QuerySet[Run]:
        found = Run.objects.all()
        if self.ids is not None:
            found = found.filter(pk__in=[known for given in self.ids if (known := as_id(given))])
        if statuses := self._statuses():
            found = found.filter(status__in=statuses)
        if self.agent:
            found = found.filter(agent__in=_list(self.agent))
        if self.project:
            found = found.filter(project=self.project)
        if self.label:
            found = _labelled(found, self.label)
        if self.q:
            word = self.q.strip()
            found = found.filter(Q(task__icontains=word) | Q(pk__startswith=word.lower()) | Q(agent__icontains=word))
        return found

    def _statuses(self) -> list[str]:
        words = _list(self.status) if self.status else []
        unknown = [word for word in words if word not in set(Status)]
        if unknown:
            known = ", ".join(Status)
            raise BadSelection("bad_status", f"There is no status {unknown[0]!r:.60}. Use one of: {known}.")
        return words


def _list(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def split_label(label: str) -> tuple[str, str | None]:
    """`team=payments` or `team:payments` -> key and value; a bare `team` -> key and None (any value)."""
    found = re.match(r"([^=:]+)[=:](.*)", label, re.DOTALL)
    return (found[1].strip(), found[2].strip()) if found else (label.strip(), None)


def _labelled(found: QuerySet[Run], label: str) -> QuerySet[Run]:
    key, value = split_label(label)
    # An explicit transform: a key with two underscores in a lookup name would be read as a path.
    named = found.alias(label_value=KeyTransform(key, "labels"))
    return named.filter(label_value__isnull=False) if value is None else named.filter(label_value=value)


# --- paging -------------------------------------------------------------------------------------------------


def page(found: QuerySet[Run], cursor: str | None, limit: int) -> tuple[list[Run], str | None]:
    """Newest first; `cursor` goes on behind the last row of the page before. Rows that come meanwhile shift nothing."""
    if cursor:
        at, last = _read_cursor(cursor)
        found = found.filter(Q(created_at__lt=at) | Q(created_at=at, pk__lt=last))
    rows = list(found.defer("spec", "final").order_by("-created_at", "-pk")[: limit + 1])
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], _cursor(rows[limit - 1])


def _cursor(run: Run) -> str:
    return base64.urlsafe_b64encode(f"{run.created_at.isoformat()} {run.pk}".encode()).decode().rstrip("=")


def _read_cursor(cursor: str) -> tuple[datetime, str]:
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        at, _, last = text.partition(" ")
        moment = datetime.fromisoformat(at)
        if moment.tzinfo is None or not as_id(last):
            raise ValueError
    except ValueError as error:
        message = "This cursor is not one of ours. Start again without it, then use `next` of each answer."
        raise BadSelection("bad_cursor", message) from error
    return moment, last
