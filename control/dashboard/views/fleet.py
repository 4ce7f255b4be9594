"""The fleet: every run at a glance."""

from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from control.dashboard import fleet_rows
from control.dashboard.fleet_rows import VIEWS, Filters
from control.runs.models import Run


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
    runs, cursor = fleet_rows.page_of(fleet_rows.select(filters, now), request.GET.get("cursor", ""))
    following = {name: value for name, value in (("q", filters.q), ("view", filters.view), ("cursor", cursor)) if value}
    context: dict[str, Any] = {
        "section": "fleet",
        "filters": filters,
        "filtered": filters.any or bool(request.GET.get("cursor")),
        "rows": fleet_rows.rows_html(runs),
        "strip": fleet_rows.strip_html(),
        "chips": _chips(filters),
        "next": f"?{urlencode(following)}" if cursor else "",
    }
    return render(request, "runs/fleet.html", context)


def _chips(filters: Filters) -> list[dict[str, Any]]:
    now = timezone.now()
    chips = []
    for view, word in VIEWS.items():
        asked = {name: value for name, value in (("q", filters.q), ("view", view)) if value}
        many = fleet_rows.in_view(Run.objects.all(), view, filters.me, now).count() if view else None
        chips.append({"word": word, "count": many, "on": view == filters.view, "href": f"?{urlencode(asked)}"})
    return chips


@login_required
def changes(request: HttpRequest) -> HttpResponse:
    """Rows and strip as patches; the page asks this while sockets fail."""
    filters = _filters(request)
    runs, _ = fleet_rows.page_of(fleet_rows.select(filters, timezone.now()), "")
    patches = [
        {"op": "prepend", "target": "rows", "id": f"run-{run.pk}", "html": fleet_rows.row_html(run)}
        for run in reversed(runs)
    ]
    patches.append({"op": "replace", "target": "strip", "id": "strip", "html": fleet_rows.strip_html()})
    return JsonResponse({"type": "patches", "patches": patches})


def home(request: HttpRequest) -> HttpResponse:
    """`/runs/` is a habit of hands; the fleet lives at the root."""
    return redirect("fleet")
