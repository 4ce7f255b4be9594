"""How long a provider asks us to wait, in every form in which providers say it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from agents.policy.fault_body import read
from agents.policy.fault_waits import duration, retry_after

NOW = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
DATE = "Sat, 31 Jan 2026 12:00:00 GMT"


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
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}, 360),
        ({"x-ratelimit-remaining-tokens": "12", "x-ratelimit-reset-tokens": "6m0s"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1769860860000", "date": DATE}, 60),
        ({"x-remaining": "0", "x-reset": "2026-01-31T12:00:05Z", "date": DATE}, 5),
    ],
)
def test_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=NOW) == seconds


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ('{"error": {"details": [{"@type": "RetryInfo", "retryDelay": "31.5s"}]}}', 31.5),
        ('{"error": {"resets_in_seconds": 7}}', 7),
        ('{"error": "loading", "estimated_time": 20.0}', 20),
        ('{"error": {"metadata": {"headers": {"Retry-After": "4"}}}}', 4),
        ("Please try again in 6m0s.", 360),
        ("Please try again in 7m12.5s.", 432.5),
        ("Try again in 644ms", 0.644),
        ("Please retry after 2 hours", 7200),
        ("Please wait 90 seconds before retrying", 90),
        ("Your limit resets in 1 hour and 30 minutes", 5400),
        ("retry-after: 12", 12),
        ("请在 30 秒后重试", 30),
        ("请等待约3分钟", 180),
        ("30秒後に再試行してください", 30),
        ("Versuchen Sie es in 45 Sekunden erneut", 45),
        ("Bitte warten: erneut versuchen in 45 Sekunden", 45),
        ("Повторите попытку через 20 секунд", 20),
        ("limit of 100 requests in 60 seconds", None),
        ("Your 5-hour limit was reached", None),
        ("Try again at 3 pm", None),
    ],
)
def test_fields_and_sentences(body: str, seconds: float | None) -> None:
    wait = retry_after({}, read(body), now=None)
    assert wait == (pytest.approx(seconds) if seconds is not None else None)


def test_a_header_is_believed_before_a_sentence_and_a_field_before_a_sentence() -> None:
    said = read('{"error": {"message": "try again in 9s", "retryDelay": "3s"}}')
    assert retry_after({}, said, now=None) == 3
    assert retry_after({"retry-after": "1"}, said, now=None) == 1


@pytest.mark.parametrize(
    ("text", "seconds"), [("1h2m3s", 3723), ("350ms", 0.35), ("00:01:30", 90), ("2 minutes", 120), ("never", None)]
)
def test_durations(text: str, seconds: Any) -> None:
    assert duration(text) == (pytest.approx(seconds) if seconds is not None else None)
