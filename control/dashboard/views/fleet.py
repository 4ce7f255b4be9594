"""The fleet: every run at a glance."""

from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from agents.drill.scenarios import SCENARIOS
from control.dashboard import bulk_form, fleet_order, fleet_rows, gauges
from control.dashboard.fleet_order import Order
from control.dashboard.fleet_rows import VIEWS, Filters
from control.runs.models import Run

DRILLS = (
    ("tour", "Start the drill", "A small project is mended; it asks you something on its way."),
    ("runaway", "Start one that runs away", "It reads what is not there, again and again, until its guard stops it."),
)


def _filters(request: HttpRequest) -> Filters:
    view = request.GET.get("view", "")
    return Filters(
        q=request.GET.get("q", "").strip()[:300],
        view=view if view in VIEWS else "",
        me=request.user.get_username(),
    )


@login_required
def page(request: HttpRequest) -> HttpResponse:
    filters = _filters(request)
    now = timezone.now()
    order = fleet_order.order_from(request.GET.get("sort", ""))
    runs, cursor = _page(request, filters, order, now)
    asked = _asked(filters, order)
    first = not runs and not Run.objects.exists()
    context: dict[str, Any] = {
        "section": "fleet",
        "first": first,
        "drills": _drills() if first else [],
        "filters": filters,
        "filtered": filters.any or order is not None or bool(request.GET.get("cursor")),
        "order": order,
        "heads": _heads(filters, order),
        "unsorted": f"?{urlencode(_asked(filters, None))}",
        "rows": fleet_rows.rows_html(runs),
        "strip": fleet_rows.strip_html(),
        "chips": _chips(filters, order),
        "bulk_query": bulk_form.from_fleet(filters.q, filters.view),
        "next": f"?{urlencode({**asked, 'cursor': cursor})}" if cursor else "",
    }
    return render(request, "runs/fleet.html", context)


def _page(
    request: HttpRequest, filters: Filters, order: Order | None, now: datetime, cursor: str | None = None
) -> tuple[list[Run], str]:
    cursor = request.GET.get("cursor", "")[:500] if cursor is None else cursor
    runs = fleet_rows.select(filters, now)
    if order is None:
        return fleet_rows.page_of(runs, cursor)
    return fleet_order.page_of(gauges.with_limits(runs), order, cursor, now, fleet_rows.PAGE)


def _asked(filters: Filters, order: Order | None) -> dict[str, str]:
    """What the address keeps while something else of it changes."""
    kept = (("q", filters.q), ("view", filters.view), ("sort", order.said if order else ""))
    return {name: value for name, value in kept if value}


def _heads(filters: Filters, order: Order | None) -> dict[str, dict[str, str]]:
    heads = {}
    for column in fleet_order.COLUMNS:
        said, now = fleet_order.head(column, order)
        heads[column] = {"href": f"?{urlencode({**_asked(filters, None), 'sort': said})}", "now": now}
    return heads


def _drills() -> list[dict[str, str]]:
    """What may be tried where nothing has run yet; nothing without a drill server."""
    if not (settings.EMBEDDED or settings.DRILL_URL_GIVEN):
        return []
    return [
        {"model": model, "word": word, "says": says, "task": SCENARIOS[model].task, "base_url": settings.DRILL_URL}
        for model, word, says in DRILLS
    ]


def _chips(filters: Filters, order: Order | None) -> list[dict[str, Any]]:
    now = timezone.now()
    chips = []
    for view, word in VIEWS.items():
        asked = _asked(replace(filters, view=view), order)
        many = fleet_rows.in_view(Run.objects.all(), view, filters.me, now).count() if view else None
        chips.append({"word": word, "count": many, "on": view == filters.view, "href": f"?{urlencode(asked)}"})
    return chips


@login_required
def changes(request: HttpRequest) -> HttpResponse:
    """Rows and strip as patches; the page asks this while sockets fail."""
    filters = _filters(request)
    order = fleet_order.order_from(request.GET.get("sort", ""))
    runs, _ = _page(request, filters, order, timezone.now(), cursor="")
    patches = [
        {"op": "prepend", "target": "rows", "id": f"run-{run.pk}", "html": fleet_rows.row_html(run)}
        for run in reversed(runs)
    ]
    patches.append({"op": "replace", "target": "strip", "id": "strip", "html": fleet_rows.strip_html()})
    return JsonResponse({"type": "patches", "patches": patches})


def home(request: HttpRequest) -> HttpResponse:
    """`/runs/` is a habit of hands; the fleet lives at the root."""
    return redirect("fleet")
