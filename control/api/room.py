"""The API itself: its routes, put together from the rooms' routers, and how it reads, answers and refuses."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from control.api import (
    alert_routes,
    backtests,
    bulk,
    commands,
    fleet,
    incidents,
    memory,
    operations,
    postmortems,
    replays,
    runs,
    schedules,
)
from control.api.answers import StrictParser
from control.api.errors import on_error

DESCRIPTION = (
    "See, steer and verifiably stop running agents. Send `Authorization: Bearer <token>`, or a session cookie with "
    "`X-CSRFToken`. Every POST honours `Idempotency-Key`. Times are RFC 3339 in UTC with microseconds, money is a "
    'decimal string in US dollars, unknown is null. Errors are `{"error": {"code", "message", "detail"}}`.'
)

api = NinjaAPI(
    title="Pilothouse",
    version="1",
    description=DESCRIPTION,
    urls_namespace="api",
    parser=StrictParser(),
    # Both are views of our own, with assets from our own origin.
    openapi_url=None,
    docs_url=None,
)
_ROOMS = (
    *(runs, commands, bulk, fleet, memory, operations),
    *(backtests, incidents, postmortems, alert_routes, replays, schedules),
)
for _room in _ROOMS:
    api.add_router("", _room.router)


def _handle(request: HttpRequest, error: Any) -> HttpResponse:
    return on_error(request, error)


for _kind in (Exception, HttpError, ValidationError, AuthenticationError):
    api.add_exception_handler(_kind, _handle)
