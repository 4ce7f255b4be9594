"""What browsers report of our policy goes into the log, cut and fit to be read; nothing else comes of it."""

import logging
from typing import Any

import orjson
import pytest
from django.test import Client

from control.dashboard.views import reports

pytestmark = [pytest.mark.django_db]
PATH, KIND = "/csp-report", "application/csp-report"


@pytest.fixture(autouse=True)
def fresh() -> None:
    reports._minute[:] = [0, 0]


def send(body: Any) -> int:
    client = Client(enforce_csrf_checks=True)
    return client.post(PATH, body if isinstance(body, bytes) else orjson.dumps(body), content_type=KIND).status_code


def report(**fields: Any) -> dict[str, Any]:
    return {"csp-report": {"effective-directive": "img-src", "document-uri": "http://desk/runs/1/", **fields}}


@pytest.mark.case("A6-04")
def test_a_report_is_one_line_without_what_was_to_be_carried_away(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING, reports.logger.name):
        assert send(report(**{"blocked-uri": "https://evil.example/p.png?d=SECRET\n\u202efake line"})) == 204
    (line,) = caplog.messages
    assert "img-src" in line and "https://evil.example/p.png?…" in line and "http://desk/runs/1/" in line
    assert "SECRET" not in line and "\n" not in line and "\u202e" not in line


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"csp-report":7}', b'{"other":{}}', b"\xff"])
def test_what_is_no_report_is_refused(body: bytes, caplog: pytest.LogCaptureFixture):
    assert send(body) == 400
    assert caplog.messages == [] or all("wanted more" not in line for line in caplog.messages)


def test_long_and_many_reports_do_not_fill_the_log(caplog: pytest.LogCaptureFixture):
    assert send(b" " * (reports.LONGEST + 1)) == 413
    with caplog.at_level(logging.WARNING, reports.logger.name):
        for _ in range(reports.MOST_A_MINUTE + 20):
            assert send(report(**{"blocked-uri": "https://evil.example/" + "a" * 5_000})) == 204
    told = [line for line in caplog.messages if "wanted more" in line]
    assert len(told) == reports.MOST_A_MINUTE and max(map(len, told)) < 500
