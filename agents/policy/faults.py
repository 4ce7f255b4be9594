"""What went wrong in one attempt at the model, judged from what it left on the wire."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from agents.errors import WireEvidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """`kind` is a reason of the contract; `said` the provider's own sentence, empty when there was none."""

    kind: str
    said: str


# Last in the order of evidence: the status alone.
_BY_STATUS = {
    400: "format_error", 401: "auth", 402: "billing", 403: "permission", 404: "unknown", 405: "format_error",
    408: "timeout", 410: "model_not_found", 413: "payload_too_large", 415: "format_error", 422: "format_error",
    429: "rate_limit", 499: "server_error", 503: "overloaded", 504: "timeout", 524: "timeout", 529: "overloaded",
}  # fmt: skip

# Machine codes that mean one thing at every provider. Order matters: the first that occurs in a code decides.
_BY_CODE = (
    ("insufficient_quota", "billing"),
    ("insufficient_balance", "billing"),
    ("billing", "billing"),
    ("context_length", "context_overflow"),
    ("exceed_context", "context_overflow"),
    ("rate_limit", "rate_limit"),
    ("rate_limited", "rate_limit"),
    ("usage_limit", "rate_limit"),
    ("too_many_requests", "rate_limit"),
    ("overloaded", "overloaded"),
    ("unavailable", "overloaded"),
    ("authentication", "auth"),
    ("invalid_api_key", "auth"),
    ("permission", "permission"),
    ("model_not_found", "model_not_found"),
    ("content_filter", "content_policy"),
    ("content_policy", "content_policy"),
    ("request_too_large", "payload_too_large"),
    ("timeout", "timeout"),
    ("server_error", "server_error"),
    ("api_error", "server_error"),
    ("invalid_request", "format_error"),
)

_SENTENCES = ("message", "msg", "error_msg", "error_message", "errorText", "status_msg", "detail", "title", "reason")
_WRAPPERS = ("error", "errors", "detail", "details", "response", "body", "base_resp", "data")


def classify_attempt(wire: WireEvidence) -> Fault:
    """Our own abort, then machine codes, then the status (one named inside the body before the outer one)."""
    if wire.transport is not None:
        return Fault(kind=_by_transport(wire.transport), said=wire.body)
    found = error_object(wire.body)
    said = sentence(found)
    codes = [str(found[key]) for key in ("code", "type", "status", "error_type", "reason") if found.get(key)]
    for code in codes:
        words = code.lower().replace("-", "_")
        for part, kind in _BY_CODE:
            if part in words:
                return Fault(kind=kind, said=said)
    inner = next((int(code) for code in codes if code.isdecimal() and 400 <= int(code) < 600), None)
    status = inner or wire.status or 0
    if status == 404 and "model" in said.lower():
        return Fault(kind="model_not_found", said=said)
    if status in _BY_STATUS:
        return Fault(kind=_BY_STATUS[status], said=said)
    if 500 <= status < 600 or (found and status < 400):
        return Fault(kind="server_error", said=said)
    if 300 <= status < 400:
        return Fault(kind="model_not_found", said=said)
    return Fault(kind="malformed_response" if status < 300 else "unknown", said=said)


def _by_transport(name: str) -> str:
    if name == "CancelledError":
        return "cancelled"
    return "timeout" if name.endswith(("Timeout", "TimeoutError")) else "connection"


def error_object(body: str) -> dict[str, Any]:
    """The innermost error object of a JSON body or of the first event that holds one; empty when there is none."""
    text = body.strip()
    event = not text.startswith(("{", "[", '"'))
    if event:
        text = next((line[5:].strip() for line in text.splitlines() if line.startswith("data:")), "")
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        # An error event may hold a bare sentence.
        return {"message": text} if event and text else {}
    return _unwrap(value, depth=0)


def _unwrap(value: Any, depth: int) -> dict[str, Any]:
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, str):
        return {"message": value} if value else {}
    if not isinstance(value, dict) or depth > 8:
        return {}
    for key in _WRAPPERS:
        if isinstance(value.get(key), dict | list) and (inner := _unwrap(value[key], depth + 1)):
            return {**value, **inner}
    if isinstance(error := value.get("error"), str) and error:
        return {"message": error, **value}
    return value


def sentence(found: Mapping[str, Any]) -> str:
    """What an error object says in words."""
    return next((text for key in _SENTENCES if isinstance(text := found.get(key), str) and text), "")


def retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Seconds until the provider wants to be asked again; None when it named no time that is still ahead.

    `retry-after-ms`, then `retry-after` as seconds or as an HTTP date (RFC 9110, section 10.2.3). A date counts from
    the answer's own `date` header where there is one, so that a clock that is off does no harm.
    """
    lower = {name.lower(): value.strip() for name, value in headers.items()}
    if (ms := _number(lower.get("retry-after-ms"))) is not None:
        return ms / 1000
    value = lower.get("retry-after")
    if value is None:
        return None
    if (seconds := _number(value)) is not None:
        return seconds
    until = _date(value)
    if until is None:
        return None
    wait = (until - (_date(lower.get("date")) or now)).total_seconds()
    return wait if wait > 0 else None


def _number(text: str | None) -> float | None:
    """A positive, finite number of a plain form; sentinels such as -1 and 0 name no time."""
    try:
        number = float(text) if text else 0.0
    except ValueError:
        return None
    return number if 0 < number < float("inf") else None


def _date(text: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text) if text else None
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    # "-0000" and a missing zone give a naive time, which cannot be compared.
    return moment if moment is not None and moment.tzinfo is not None else None
