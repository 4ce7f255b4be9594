"""The API describes itself: its OpenAPI document and a page that shows it, everything from our own origin."""

import json
from functools import cache

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from ninja.responses import NinjaJSONEncoder

from control.api.answers import raw
from control.api.room import api

# Swagger's icons are data: images in its style sheet; nothing else may come from anywhere but here.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)


@require_safe
def openapi(request: HttpRequest) -> HttpResponse:
    return raw(_schema())


@cache
def _schema() -> bytes:
    # Made by walking every route, so once is enough; keys are statuses, which the standard encoder turns into text.
    return json.dumps(api.get_openapi_schema(path_prefix="/api/"), cls=NinjaJSONEncoder).encode()


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    page = render(request, "api/docs.html", {"api": api})
    page["Content-Security-Policy"] = POLICY
    return page
