"""Errors as the API tells them: one JSON object with a code, a sentence that says what to do next, and details."""

import logging
from collections.abc import Callable, Mapping
from typing import Any

import orjson
from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.core.exceptions import RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from ninja.errors import AuthenticationError, HttpError, ValidationError

from control.runs.inbox import NotFound, RunFinished
from control.runs.selection import BadSelection
from control.runs.starts import StartRefused

log = logging.getLogger("control.api")


class ApiError(Exception):
    """A refusal. `code` is stable, `message` says what to do next, `status` is the HTTP status."""

    def __init__(self, code: str, message: str, *, status: int = 400, detail: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.detail = dict(detail or {})


def not_found(what: str, given: str) -> ApiError:
    """404 for an id that is unknown or no id at all; both look the same from outside."""
    where = {
        "run": "List the runs with GET /api/runs and use an id from there.",
        "command": "A command's id is in the answer to the POST that issued it.",
        "bulk": "A bulk id is in the answer to POST /api/interrupt.",
        "block": "List the blocks with GET /api/blocks.",
        "backtest": "List the backtests with GET /api/backtests.",
        "schedule": "List the schedules with GET /api/schedules.",
        "agent": "List the agents with GET /api/agents.",
        "policy": "List the policies with GET /api/policies.",
        "incident": "List the incidents with GET /api/incidents.",
        "route": "List the routes with GET /api/alert-routes.",
        "worker": "List the workers with GET /api/workers.",
        "credential": "List the credentials with GET /api/credentials.",
    }[what]
    return ApiError("not_found", f"There is no {what} {_short(given)}. {where}", status=404, detail={what: given[:200]})


def _short(given: str) -> str:
    return given if len(given) <= 60 else given[:60] + "…"


def as_api_error(error: Exception) -> ApiError | None:
    """What another room refused, in the API's words; None if it is no refusal but a fault."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, StartRefused):
        return ApiError(error.code, error.message, status=error.status, detail=error.detail)
    if isinstance(error, BadSelection):
        return ApiError(error.code, error.message, status=400)
    if isinstance(error, RunFinished):
        return ApiError("run_finished", "This run has ended; it takes no more of these. Start a new run.", status=409)
    if isinstance(error, NotFound):
        return ApiError("not_found", f"{error} List the runs with GET /api/runs and use an id from there.", status=404)
    return None


def error_response(error: ApiError) -> HttpResponse:
    body = {"error": {"code": error.code, "message": error.message, "detail": error.detail}}
    response = HttpResponse(orjson.dumps(body, default=str), content_type="application/json", status=error.status)
    if error.status == 401:
        response["WWW-Authenticate"] = 'Bearer realm="pilothouse"'
    return response


# --- exception handlers of the API --------------------------------------------------------------------------


def on_error(request: HttpRequest, error: Any) -> HttpResponse:
    """Any exception of a view, as an answer. What is no refusal is logged here and told without its insides."""
    known = as_api_error(error) or _as_request_error(error)
    if known is not None:
        return error_response(known)
    log.exception("unexpected error in %s %s", request.method, request.path, exc_info=error)
    if isinstance(error, OperationalError | InterfaceError):
        return error_response(
            ApiError("database_unavailable", "The database does not answer. Try again; see /readyz.", status=503)
        )
    return error_response(_internal())


def _internal() -> ApiError:
    return ApiError("internal", "Something went wrong here; the server's log has the details.", status=500)


def _as_request_error(error: Exception) -> ApiError | None:
    if isinstance(error, ValidationError):
        return _invalid(error)
    if isinstance(error, AuthenticationError):
        return unauthenticated()
    if isinstance(error, RequestDataTooBig):
        return ApiError("body_too_large", "The request body is larger than this server takes.", status=413)
    if isinstance(error, HttpError):
        code = "bad_json" if error.status_code == 400 else _code_of(error.status_code)
        return ApiError(code, str(error), status=422 if code == "bad_json" else error.status_code)
    if isinstance(error, Http404):
        return _no_route()
    return None


def unauthenticated() -> ApiError:
    message = "Sign in, or send Authorization: Bearer <token> (manage.py create_token NAME --role ROLE makes one)."
    return ApiError("unauthenticated", message, status=401)


def _invalid(error: ValidationError) -> ApiError:
    problems = []
    for item in error.errors:
        place = [str(part) for part in item.get("loc", ()) if part not in ("body", "payload", "query", "path")]
        problems.append({"field": ".".join(place) or "body", "problem": str(item.get("msg", ""))})
    shown = "; ".join(f"{p['field']}: {p['problem']}" for p in problems[:3])
    return ApiError(
        "invalid", f"Correct these fields and send it again: {shown}.", status=422, detail={"fields": problems[:20]}
    )


# --- what never reaches the API's views ---------------------------------------------------------------------

_WORDS = {
    400: ("bad_request", "The server could not read this request. Check the Host header and the address."),
    403: ("forbidden", "This request is not allowed."),
    405: ("method_not_allowed", "This address does not take this method; the Allow header lists those it takes."),
    413: ("body_too_large", "The request body is larger than this server takes."),
}


def _code_of(status: int) -> str:
    return _WORDS.get(status, ("error", ""))[0]


def _no_route() -> ApiError:
    return ApiError("not_found", "There is no such address. GET /api/docs lists them all.", status=404)


def _foreign(status: int) -> ApiError:
    if status == 404:
        return _no_route()
    if status >= 500:
        return _internal()
    code, message = _WORDS.get(status, ("error", "The request was refused."))
    return ApiError(code, message, status=status)


class JsonErrors:
    """Outermost middleware: an error under /api/ that Django answers in HTML or plain text becomes the error object."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        if self.is_async:
            return self._later(request)
        return _translated(request, self.get_response(request))

    async def _later(self, request: HttpRequest) -> HttpResponseBase:
        return _translated(request, await self.get_response(request))


def _translated(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if response.status_code < 400 or not request.path_info.startswith("/api/"):
        return response
    if response.get("Content-Type", "").startswith("application/json"):
        return response
    made = error_response(_foreign(response.status_code))
    if response.has_header("Allow"):
        made["Allow"] = response["Allow"]
    return made
