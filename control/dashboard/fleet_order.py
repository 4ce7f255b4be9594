"""The fleet sorted by a column: by numbers and never by their letters, over all runs, what is unknown always last.

A page ends with a cursor that holds the last row's value and id, and the moment at which the first page was asked for:
times are measured up to that moment, so that a run which goes on or ends meanwhile keeps its place.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from django.db.models import Case, DateTimeField, ExpressionWrapper, F, Q, QuerySet, Value, When
from django.db.models.expressions import Combinable
from django.db.models.fields import BigIntegerField, DurationField, FloatField, IntegerField
from django.db.models.functions import Cast, Coalesce, Greatest, Least

from agents.spec import FINAL
from control.dashboard.states import RUNGS
from control.runs.models import Run

STATES = (
    "running",
    "waiting",
    "stopping",
    "queued",
    "tripped",
    "failed",
    "lost",
    "interrupted",
    "exhausted",
    "completed",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A column and its direction, as the address says them."""

    column: str
    down: bool

    @property
    def said(self) -> str:
        return f"-{self.column}" if self.down else self.column


def _span(begin: str, at: datetime) -> Combinable:
    moment = Value(at, output_field=DateTimeField())
    end = Least(Coalesce(F("finished_at"), moment), moment)
    return ExpressionWrapper(Greatest(end, F(begin)) - F(begin), output_field=DurationField())


def _rank(field: str, words: tuple[str, ...]) -> Combinable:
    return Case(
        *(When(**{field: word}, then=Value(place)) for place, word in enumerate(words, 1)),
        default=Value(0),
        output_field=IntegerField(),
    )


def _cost(_: datetime) -> Combinable:
    """As the page shows it: nothing yet is 0, and unknown is no number at all."""
    known = Cast(Coalesce("cost_usd", Value(0)), FloatField())
    return Case(When(Q(cost_unknown=True, cost_usd=None), then=None), default=known, output_field=FloatField())


def _idle(at: datetime) -> Combinable:
    """Only what may still act is idle."""
    moment = Value(at, output_field=DateTimeField())
    span = ExpressionWrapper(moment - Least(F("last_activity_at"), moment), output_field=DurationField())
    ended = [status.value for status in FINAL]
    return Case(When(status__in=ended, then=None), default=span, output_field=DurationField())


# Column -> its value, and whether it begins with the largest.
COLUMNS: dict[str, tuple[Callable[[datetime], Combinable], bool]] = {
    "status": (lambda _: _rank("status", STATES), False),
    "agent": (lambda _: F("agent"), False),
    "idle": (_idle, True),
    "turns": (lambda _: F("turns"), True),
    "tokens": (
        lambda _: ExpressionWrapper(F("input_tokens") + F("output_tokens"), output_field=BigIntegerField()),
        True,
    ),
    "cost": (_cost, True),
    "ladder": (lambda _: _rank("rung", RUNGS), True),
    "errors": (lambda _: F("errors"), True),
    "owner": (lambda _: F("owner"), False),
    "took": (lambda at: _span("started_at", at), True),
}


def order_from(said: str) -> Order | None:
    """`cost`, `-cost`; None for the order of families, the newest first."""
    column = said.removeprefix("-")
    return Order(column=column, down=said.startswith("-")) if column in COLUMNS else None


def head(column: str, order: Order | None) -> tuple[str, str]:
    """What pressing a column's head asks for, and how it is sorted now (as `aria-sort` says it)."""
    if order is None or order.column != column:
        return f"-{column}" if COLUMNS[column][1] else column, ""
    turned = Order(column=column, down=not order.down)
    return turned.said, "descending" if order.down else "ascending"


def page_of(runs: QuerySet[Run], order: Order, cursor: str, now: datetime, size: int) -> tuple[list[Run], str]:
    """The runs of a page in this order, and the cursor of the next one."""
    after = _read(cursor)
    at = now if after is None else datetime.fromisoformat(after["at"])
    value = COLUMNS[order.column][0](at)
    runs = runs.annotate(sorted_by=value).annotate(
        unknown=Case(When(sorted_by=None, then=Value(1)), default=Value(0), output_field=IntegerField())
    )
    if after is not None:
        runs = runs.filter(_behind(after, order))
    first = F("sorted_by").desc() if order.down else F("sorted_by").asc()
    found: list[Run] = [*runs.order_by("unknown", first, "-id")[: size + 1]]
    if len(found) <= size:
        return found, ""
    return found[:size], _written(found[size - 1], at)


def _behind(after: dict[str, Any], order: Order) -> Q:
    """What comes after this value and id."""
    if after["value"] is None:
        return Q(unknown=1, id__lt=after["id"])
    value = timedelta(microseconds=after["value"]) if order.column in ("idle", "took") else after["value"]
    beyond = Q(sorted_by__lt=value) if order.down else Q(sorted_by__gt=value)
    return Q(unknown=1) | beyond | Q(sorted_by=value, id__lt=after["id"])


def _written(run: Run, at: datetime) -> str:
    value: Any = getattr(run, "sorted_by", None)
    if isinstance(value, timedelta):
        value = value // timedelta(microseconds=1)
    return orjson.dumps({"value": value, "id": run.pk, "at": at.astimezone(UTC).isoformat()}).decode()


def _read(cursor: str) -> dict[str, Any] | None:
    """A cursor as `_written` made it; any other begins again."""
    try:
        found = orjson.loads(cursor)
        datetime.fromisoformat(found["at"])
        good = isinstance(found["id"], str) and isinstance(found["value"], int | float | str | None)
    except (ValueError, TypeError, KeyError):
        return None
    return found if good else None
