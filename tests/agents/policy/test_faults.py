"""What a failed attempt left on the wire, judged."""

from datetime import UTC, datetime

import pytest

from agents.errors import WireEvidence
from agents.policy.faults import Fault, classify_attempt, retry_after

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"Retry-After": " 1.5 "}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Sat, 31 Jan 2026 12:01:30 GMT"}, 90),
        ({"retry-after": "Sat, 31 Jan 2026 12:01:30 GMT", "date": "Sat, 31 Jan 2026 12:01:00 GMT"}, 30),
        ({"retry-after": "Sat, 31 Jan 2026 11:00:00 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Sat, 31 Jan 2026 12:01:30"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_a_provider_names_is_read_if_it_is_one(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=NOW) == seconds


@pytest.mark.parametrize(
    ("status", "body", "kind", "said"),
    [
        (429, "", "rate_limit", ""),
        (401, '{"error": {"message": "no key"}}', "auth", "no key"),
        (429, '{"error": {"code": "insufficient_quota", "message": "pay"}}', "billing", "pay"),
        (400, '{"error": {"code": "context_length_exceeded", "message": "too long"}}', "context_overflow", "too long"),
        (404, '{"error": "model qwen not found"}', "model_not_found", "model qwen not found"),
        (404, "", "unknown", ""),
        (200, '{"error": {"code": 502, "message": "busy"}}', "server_error", "busy"),
        (200, 'data: {"error": {"code": 429, "message": "slow down"}}\n\n', "rate_limit", "slow down"),
        (200, "event: error\ndata: overheated\n\n", "server_error", "overheated"),
        (200, "<html>", "malformed_response", ""),
        (500, '[{"error": {"status": "UNAVAILABLE", "message": "later"}}]', "overloaded", "later"),
        (599, "", "server_error", ""),
        (400, '{"error":' * 3000, "format_error", ""),
        (418, "{}", "unknown", ""),
    ],
)
def test_codes_come_before_the_status(status: int, body: str, kind: str, said: str) -> None:
    assert classify_attempt(WireEvidence(status=status, body=body)) == Fault(kind=kind, said=said)


@pytest.mark.parametrize(
    ("transport", "kind"),
    [
        ("ConnectError", "connection"),
        ("RemoteProtocolError", "connection"),
        ("ReadTimeout", "timeout"),
        ("ConnectTimeout", "timeout"),
        ("CancelledError", "cancelled"),
    ],
)
def test_a_transport_exception_decides_by_its_class(transport: str, kind: str) -> None:
    assert classify_attempt(WireEvidence(status=200, transport=transport, body="")).kind == kind
