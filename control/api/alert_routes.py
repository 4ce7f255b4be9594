"""Routes of alert routes: made, changed, tried and looked at; their secrets go in and never come out."""

from datetime import time
from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from control.api.acts import Act, Done, actor_of, perform
from control.api.answers import answer
from control.api.auth import Needs
from control.api.errors import ApiError, not_found
from control.api.outputs import Out
from control.api.schemas import Body, Clean, Name
from control.incidents import listing, previews, routes
from control.incidents.models import AlertRoute
from control.incidents.routes import BadRoute, Wish
from control.runs.clock import database_now
from control.runs.selection import as_id

router = Router(tags=["incidents"])
SHOWN = 50
Clock = Annotated[str, Field(pattern=r"^([01]\d|2[0-3]):[0-5]\d$")]


class RouteOut(Out):
    """`secrets` tells which are there: `••••••••`, or the variable that holds one."""

    id: str
    name: str
    transport: str
    enabled: bool
    options: dict[str, str]
    secrets: dict[str, str]
    least: str


class RoutesOut(Out):
    routes: list[RouteOut]


class DeliveriesOut(Out):
    deliveries: list[dict[str, Any]]


class PreviewOut(Out):
    to: str
    headers: dict[str, str]
    body: str


class TestOut(Out):
    delivery: str


class RouteIn(Body):
    """What is left out has its default. In `secrets`, left out keeps what there is and null takes it away."""

    name: Name
    transport: Literal["pagerduty", "slack", "webhook", "alertmanager", "email"]
    enabled: bool = True
    options: dict[Name, Clean] = {}
    secrets: dict[Name, Clean | None] = {}
    least: Literal["critical", "error", "warning", "info"] = "warning"
    rules: list[Name] = []
    agents: list[Name] = []
    projects: list[Name] = []
    after_minutes: int = 0
    repeat_hours: int = 4
    group_seconds: int = 30
    send_resolved: bool = True
    quiet_from: Clock | None = None
    quiet_to: Clock | None = None
    zone: Clean = "UTC"

    def wish(self) -> Wish:
        given = self.dict(exclude={"quiet_from", "quiet_to"})
        return Wish(**given, quiet_from=_clock(self.quiet_from), quiet_to=_clock(self.quiet_to))


def _clock(text: str | None) -> time | None:
    return time.fromisoformat(text) if text else None


@router.get("/alert-routes", auth=Needs("view"), response=RoutesOut, summary="The alert routes, without their secrets")
def listed(request: HttpRequest) -> HttpResponse:
    return answer({"routes": [routes.row(route) for route in AlertRoute.objects.order_by("name")]})


@router.post("/alert-routes", auth=Needs("write_route"), response={201: RouteOut}, summary="Make a route")
def make(request: HttpRequest, payload: RouteIn) -> HttpResponse:
    def work() -> Done:
        made = _saved(request, payload, None)
        return Done(body=routes.row(made), status=201, target=f"route:{made.pk}", after=_told(made, payload))

    return perform(request, Act(action="write_route", target="route:new"), work)


@router.get("/alert-routes/{route_id}", auth=Needs("view"), response=RouteOut, summary="One route")
def one(request: HttpRequest, route_id: str) -> HttpResponse:
    return answer(routes.row(_find(route_id)))


@router.put("/alert-routes/{route_id}", auth=Needs("write_route"), response=RouteOut, summary="Change a route")
def change(request: HttpRequest, route_id: str, payload: RouteIn) -> HttpResponse:
    def work() -> Done:
        route = _find(route_id)
        before = routes.row(route)
        saved = _saved(request, payload, route)
        return Done(body=routes.row(saved), status=200, before=before, after=_told(saved, payload))

    return perform(request, Act(action="write_route", target=f"route:{route_id[:36]}"), work)


@router.post("/alert-routes/{route_id}/test", auth=Needs("write_route"), response={202: TestOut}, summary="Send a test")
def test(request: HttpRequest, route_id: str) -> HttpResponse:
    """The desk sends it; how it fared is in the deliveries of the route."""

    def work() -> Done:
        made = routes.test(_find(route_id), database_now())
        return Done(body={"delivery": made.pk}, after={"delivery": made.pk})

    return perform(request, Act(action="test_route", target=f"route:{route_id[:36]}"), work)


@router.get(
    "/alert-routes/{route_id}/preview", auth=Needs("view"), response=PreviewOut, summary="What a notice looks like"
)
def preview(request: HttpRequest, route_id: str) -> HttpResponse:
    made = previews.of(_find(route_id), database_now())
    return answer({"to": made.to, "headers": dict(made.headers), "body": made.body})


@router.get(
    "/alert-routes/{route_id}/deliveries", auth=Needs("view"), response=DeliveriesOut, summary="What was sent of late"
)
def deliveries(request: HttpRequest, route_id: str) -> HttpResponse:
    rows = _find(route_id).deliveries.select_related("route").order_by("-id")[:SHOWN]
    return answer({"deliveries": [listing.delivery_row(row) for row in rows]})


def _saved(request: HttpRequest, payload: RouteIn, route: AlertRoute | None) -> AlertRoute:
    try:
        return routes.save(payload.wish(), by=actor_of(request).name, now=database_now(), route=route)
    except BadRoute as error:
        status = 409 if error.code == "name_taken" else 422
        raise ApiError(error.code, f"{error.field}: {error.message}", status=status) from error


def _told(route: AlertRoute, payload: RouteIn) -> dict[str, Any]:
    """For the audit trail: also which secrets were given anew, since their looks do not tell."""
    return {**routes.row(route), "secrets_given": sorted(name for name, value in payload.secrets.items() if value)}


def _find(given: str) -> AlertRoute:
    known = as_id(given)
    found = AlertRoute.objects.filter(pk=known).first() if known else None
    if found is None:
        raise not_found("route", given)
    return found
