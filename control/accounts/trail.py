"""Reading the audit trail: what a query means, pages by key, and rows as other tools take them."""

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet

from control.accounts.models import AuditEntry

PAGE = 100
AT_ONCE = 500
COLUMNS = ("id", "at", "actor", "role", "action", "target", "filter", "reason", "before", "after", "result", "address")
_TERM = re.compile(r"(actor|role|action|target|result|address):(\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is looked for: `actor:ann action:raise` and words; from one day to another, UTC, both included."""

    q: str = ""
    since: str = ""
    until: str = ""

    @property
    def any(self) -> bool:
        return bool(self.q or self.since or self.until)

    @property
    def asked(self) -> dict[str, str]:
        return {name: value for name in ("q", "since", "until") if (value := getattr(self, name))}


def select(query: Query) -> "QuerySet[AuditEntry]":
    """The rows, the newest first. Days that are none are passed over."""
    rows = AuditEntry.objects.order_by("-id")
    for name, value in _TERM.findall(query.q):
        # A target is named by its beginning: `run:0193` finds every run of that time.
        rows = rows.filter(**{f"{name}__startswith" if name == "target" else name: value})
    for word in _TERM.sub(" ", query.q).split():
        found = Q(actor__icontains=word) | Q(action__icontains=word) | Q(target__icontains=word)
        rows = rows.filter(found | Q(reason__icontains=word) | Q(result__icontains=word) | Q(address=word))
    if since := _day(query.since):
        rows = rows.filter(at__gte=since)
    if until := _day(query.until):
        rows = rows.filter(at__lt=until + timedelta(days=1))
    return rows


def page_of(rows: "QuerySet[AuditEntry]", before: str) -> tuple[list[AuditEntry], int | None]:
    """One page, and the id before which the next one begins."""
    if before.isascii() and before.isdigit() and len(before) < 19:
        rows = rows.filter(id__lt=int(before))
    found = list(rows[: PAGE + 1])
    return found[:PAGE], found[PAGE - 1].pk if len(found) > PAGE else None


def jsonl(rows: "QuerySet[AuditEntry]") -> Iterator[bytes]:
    """A JSON object per line, times in UTC."""
    for row in _all(rows):
        yield json.dumps(_plain(row), ensure_ascii=False).encode() + b"\n"


def as_csv(rows: "QuerySet[AuditEntry]") -> Iterator[bytes]:
    """With a line of names; data as JSON. A cell that a spreadsheet would take for a formula gets an apostrophe."""
    yield _line(COLUMNS)
    for row in _all(rows):
        yield _line([_cell(value) for value in _plain(row).values()])


def _all(rows: "QuerySet[AuditEntry]") -> Iterator[AuditEntry]:
    """Page by page, so that a long trail neither fills the memory nor holds a transaction open."""
    before: int | None = None
    while found := list((rows if before is None else rows.filter(id__lt=before))[:AT_ONCE]):
        yield from found
        before = found[-1].pk


def _plain(row: AuditEntry) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in COLUMNS}
    return values | {"at": row.at.astimezone(UTC).isoformat().replace("+00:00", "Z")}


def _cell(value: Any) -> str:
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _line(cells: Any) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerow(cells)
    return out.getvalue().encode("utf-8", "replace")


def _day(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return None
