"""JSON out and JSON in: how the API writes an answer and reads a body."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NoReturn

import orjson
from django.http import HttpRequest, HttpResponse
from ninja.parser import Parser

from agents.events import stamp
from control.api.errors import ApiError

TOML = "application/toml"


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return format(value, "f")
    raise TypeError(f"{type(value).__name__} has no JSON form")


def dumps(body: Any) -> bytes:
    """JSON bytes. Times become RFC 3339 with microseconds and Z, money a decimal string."""
    return orjson.dumps(_stamped(body), default=_plain)


def _stamped(value: Any) -> Any:
    # orjson writes times itself, but drops the microseconds when they are 0.
    if isinstance(value, datetime):
        return stamp(value if value.tzinfo else value.replace(tzinfo=UTC))
    if isinstance(value, Mapping):
        return {key: _stamped(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_stamped(item) for item in value]
    return value


def plain(body: Any) -> Any:
    """The body as JSON will hold it, for storing."""
    return orjson.loads(dumps(body))


def answer(body: Any, status: int = 200) -> HttpResponse:
    return raw(dumps(body), status)


def raw(body: bytes, status: int = 200, content_type: str = "application/json") -> HttpResponse:
    response = HttpResponse(body, status=status, content_type=content_type)
    response["Cache-Control"] = "no-store"
    return response


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


class StrictParser(Parser):
    """Bodies must be JSON objects. NaN and Infinity are refused; a lone surrogate passes, for the run to mark it.

    TOML is read as `{"toml": text}`, with the `version` of the query; what takes no `toml` refuses it as unknown.
    """

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        text = request.body
        if request.content_type == TOML:
            return _toml(request, text)
        try:
            body = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            body = _second_reading(text, error)
        if not isinstance(body, dict):
            raise ApiError("bad_json", "The body must be a JSON object.", status=422)
        return body


def _toml(request: HttpRequest, text: bytes) -> dict[str, Any]:
    try:
        body: dict[str, Any] = {"toml": text.decode("utf-8")}
    except UnicodeDecodeError as error:
        raise ApiError("bad_toml", f"The body is no UTF-8: {error}.", status=422) from error
    version = request.GET.get("version", "")
    if version:
        # As a number where it is one: the schema says what is wrong with the rest.
        body["version"] = int(version) if version.isascii() and version.isdigit() and len(version) < 10 else version
    return body


def _second_reading(text: bytes, error: orjson.JSONDecodeError) -> Any:
    """orjson refuses escaped lone surrogates, which real agents send; the standard parser keeps them."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as final:
        detail = {"line": error.lineno, "column": error.colno, "problem": error.msg}
        raise ApiError("bad_json", f"The body is no JSON: {error.msg}.", status=422, detail=detail) from final
