"""What each transport sends, judged by the service's published rules at a real server, and how answers are read."""

import base64
import email
import hashlib
import hmac
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.header import decode_header, make_header
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from control.incidents import telling
from control.incidents.transports import TRANSPORTS, wire
from control.incidents.transports.ports import BadOption, Message, Notice, Outcome, Result
from tests.control.incidents.receivers import Answer, Receiver, post_office, receiver

NOW = datetime(2026, 3, 1, 1, 14, 7, 250_000, tzinfo=UTC)
KEY = "R0UT1NGKEYR0UT1NGKEYR0UT1NGKEY12"
SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()


@pytest.fixture
def service() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


def notice(**more: Any) -> Notice:
    made = telling.example("run:01890000-0000-7000-8000-000000000001:tripped", NOW)
    return replace(made, stop_url="https://c.test/runs/1/#interrupt-dialog", **more)


def message(*notices: Notice, action: str = "trigger") -> Message:
    return Message(
        id="01890000-0000-7000-8000-00000000000a",
        created=NOW,
        action=action,
        route="on call",
        console_url="https://c.test",
        notices=notices or (notice(),),
    )


def settings_of(name: str, url: str) -> tuple[dict[str, str], dict[str, str]]:
    return {
        "pagerduty": ({"url": url}, {"routing_key": KEY}),
        "slack": ({}, {"url": url}),
        "webhook": ({}, {"url": url, "secret": SECRET}),
        "alertmanager": ({}, {"url": url, "token": "t0ken"}),
    }[name]


def send(name: str, url: str, what: Message) -> Outcome:
    options, secrets = settings_of(name, url)
    TRANSPORTS[name].check(options, secrets)
    return TRANSPORTS[name].send(what, options, secrets)


# --- PagerDuty ------------------------------------------------------------------------------------------------


def check_pagerduty(event: dict[str, Any], size: int) -> None:
    """developer.pagerduty.com/docs/send-alert-event: fields, their limits, and the size of an event."""
    assert size <= 512_000
    assert re.fullmatch(r"[A-Za-z0-9]{32}", event["routing_key"])
    assert event["event_action"] in ("trigger", "acknowledge", "resolve")
    assert 0 < len(event["dedup_key"]) <= 255
    allowed = {"routing_key", "event_action", "dedup_key", "payload", "links", "images", "client", "client_url"}
    assert set(event) <= allowed
    if event["event_action"] != "trigger":
        assert set(event) == {"routing_key", "event_action", "dedup_key"}
        return
    payload = event["payload"]
    assert 0 < len(payload["summary"]) <= 1_024 and payload["source"]
    assert payload["severity"] in ("critical", "error", "warning", "info")
    assert datetime.fromisoformat(payload["timestamp"])
    named = {"summary", "source", "severity", "timestamp", "component", "group", "class", "custom_details"}
    assert set(payload) <= named
    assert all(link["href"].startswith("http") for link in event["links"])


def test_pagerduty_gets_events_of_its_form(service: Receiver) -> None:
    service.answers = [Answer(status=202)]
    assert send("pagerduty", service.url, message()).result is Result.DELIVERED
    assert send("pagerduty", service.url, message(action="resolve")).result is Result.DELIVERED
    huge = notice(title="é" * 5_000, facts=(("call", "x" * 600_000),), key="run:" + "ü" * 300)
    assert send("pagerduty", service.url, message(huge)).result is Result.DELIVERED
    for got in service.got:
        check_pagerduty(got.json, len(got.body))
    first, resolve, big = (got.json for got in service.got)
    assert first["links"][0] == {"href": "https://c.test/runs/1/#interrupt-dialog", "text": "Stop the run"}
    assert resolve["dedup_key"] == first["dedup_key"] == "run:01890000-0000-7000-8000-000000000001:tripped"
    # What is too big loses its details first, and nothing else.
    assert "custom_details" not in big["payload"] and "custom_details" in first["payload"]
    assert big["links"] and big["client_url"]


def test_pagerduty_takes_only_202_for_taken(service: Receiver) -> None:
    service.answers = [Answer(status=200)]
    outcome = send("pagerduty", service.url, message())
    assert (outcome.result, outcome.code) == (Result.FINAL, 200)


# --- Slack ----------------------------------------------------------------------------------------------------


def check_slack(body: dict[str, Any]) -> None:
    """docs.slack.dev/reference/block-kit/blocks: what blocks may hold."""
    assert 0 < len(body["text"]) <= 40_000 and len(body["blocks"]) <= 50
    for block in body["blocks"]:
        match block["type"]:
            case "header":
                assert block["text"]["type"] == "plain_text" and 0 < len(block["text"]["text"]) <= 150
            case "section" if "fields" in block:
                assert 1 <= len(block["fields"]) <= 10
                assert all(0 < len(field["text"]) <= 2_000 for field in block["fields"])
            case "section":
                assert 0 < len(block["text"]["text"]) <= 3_000
            case "actions":
                assert 1 <= len(block["elements"]) <= 25
                for button in block["elements"]:
                    assert len(button["text"]["text"]) <= 75 and len(button["url"]) <= 3_000
                    assert button.get("style", "primary") in ("primary", "danger")
            case "context":
                assert 1 <= len(block["elements"]) <= 10
            case other:
                raise AssertionError(other)


def test_slack_gets_text_and_blocks_within_its_limits(service: Receiver) -> None:
    wild = notice(
        title="<!channel> " + "<&>" * 2_000, summary="&" * 9_000, facts=tuple((f"n{i}", "<" * 9_000) for i in range(14))
    )
    assert send("slack", service.url, message()).result is Result.DELIVERED
    assert send("slack", service.url, message(*[wild] * 30)).result is Result.DELIVERED
    assert send("slack", service.url, message(action="resolve")).result is Result.DELIVERED
    for got in service.got:
        check_slack(got.json)
    # Nobody is mentioned by what an agent wrote; a header is plain text to Slack.
    marked = [
        block["text"]["text"]
        for block in service.got[1].json["blocks"]
        if block["type"] == "section" and "text" in block
    ]
    assert marked and not any("<" in text for text in [service.got[1].json["text"], *marked])
    assert "30 incidents" in service.got[1].json["text"]
    buttons = [element for block in service.got[0].json["blocks"] for element in block.get("elements", [])]
    assert buttons[0]["url"].endswith("#interrupt-dialog") and buttons[0]["style"] == "danger"
    assert service.got[2].json["text"].startswith("Resolved: ")


# --- a signed webhook -----------------------------------------------------------------------------------------


def test_a_webhook_is_signed_over_id_time_and_body(service: Receiver) -> None:
    for _ in range(2):
        assert send("webhook", service.url + "/hook?a=1", message()).result is Result.DELIVERED
    first, again = service.got
    assert first.path == "/hook?a=1"
    # A repeat is known by its id.
    assert first.headers["webhook-id"] == again.headers["webhook-id"] == first.json["id"]
    signed = f"{first.headers['webhook-id']}.{first.headers['webhook-timestamp']}.".encode() + first.body
    expected = base64.b64encode(hmac.new(b"k" * 32, signed, hashlib.sha256).digest()).decode()
    assert first.headers["webhook-signature"] == f"v1,{expected}"
    assert abs(datetime.now(UTC).timestamp() - int(first.headers["webhook-timestamp"])) < 60
    body = first.json
    assert set(body) == {"id", "created", "type", "version", "object"}
    assert (body["type"], body["version"], body["object"]["object"]) == ("incident.opened", 1, "incident")
    assert body["object"]["links"]["stop"] and body["object"]["links"]["runbook"]


# --- Alertmanager ---------------------------------------------------------------------------------------------


def test_a_receiver_of_alertmanager_gets_version_4(service: Receiver) -> None:
    labels = {"team/area": "billing", "agent": "not ours"}
    over = notice(labels=labels, resolved_at=NOW + timedelta(minutes=5))
    assert send("alertmanager", service.url, message(notice(labels=labels), notice(rule="lost"))).code == 200
    assert send("alertmanager", service.url, message(over, action="resolve")).code == 200
    needed = {
        *("version", "groupKey", "truncatedAlerts", "status", "receiver", "groupLabels"),
        *("commonLabels", "commonAnnotations", "externalURL", "alerts"),
    }
    for got in service.got:
        body = got.json
        assert set(body) == needed and body["version"] == "4" and got.headers["authorization"] == "Bearer t0ken"
        for alert in body["alerts"]:
            parts = ("status", "labels", "annotations", "startsAt", "endsAt", "generatorURL", "fingerprint")
            assert set(alert) == set(parts)
            assert all(re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name) for name in alert["labels"])
            assert all(isinstance(value, str) for value in alert["labels"].values())
            assert body["commonLabels"].items() <= alert["labels"].items()
            assert body["groupLabels"].items() <= alert["labels"].items()
    firing, resolved = (got.json for got in service.got)
    assert firing["status"] == "firing" and firing["alerts"][0]["endsAt"] == "0001-01-01T00:00:00Z"
    assert firing["alerts"][0]["labels"]["agent"] == "importer"
    assert firing["alerts"][0]["labels"]["label_team_area"] == "billing"
    assert resolved["status"] == "resolved" and resolved["alerts"][0]["endsAt"].startswith("2026-03-01T01:19:07")
    assert firing["alerts"][0]["fingerprint"] == resolved["alerts"][0]["fingerprint"]


# --- e-mail ---------------------------------------------------------------------------------------------------

MAIL = {"to": "Ann <ann@x.test>, bo@x.test", "from": "desk@x.test", "host": "127.0.0.1", "security": "none", "user": ""}


def test_a_mail_is_one_in_a_thread_and_its_subject_one_line() -> None:
    with post_office() as office:
        options = {**MAIL, "port": str(office.port)}
        TRANSPORTS["email"].check(options, {})
        sent = TRANSPORTS["email"].send(message(notice(title="Böse\r\nBcc: eve@x.test")), options, {})
    assert sent.result is Result.DELIVERED and sent.code == 250
    _, to, text = office.mails[0]
    assert len(to) == 2
    mail = email.message_from_string(text)
    assert mail["Bcc"] is None and "Böse" in str(make_header(decode_header(mail["Subject"])))
    assert mail["Message-ID"] == "<01890000-0000-7000-8000-00000000000a@x.test>"
    assert mail["References"].startswith("<incident.") and mail["Auto-Submitted"] == "auto-generated"
    body = mail.get_payload(decode=True)
    assert isinstance(body, bytes) and b"Stop the run: https://c.test/runs/1/#interrupt-dialog" in body


@pytest.mark.parametrize(
    ("reply", "result", "code"), [("451 later", Result.RETRY, 451), ("554 never", Result.FINAL, 554)]
)
def test_smtp_replies_tell_whether_to_try_again(reply: str, result: Result, code: int) -> None:
    with post_office() as office:
        options = {**MAIL, "port": str(office.port)}
        office.reply = reply
        first = TRANSPORTS["email"].send(message(), options, {})
        office.reply, office.to_recipient = "250 ok", reply
        second = TRANSPORTS["email"].send(message(), options, {})
    assert (first.result, first.code) == (second.result, second.code) == (result, code)
    assert not office.mails
    closed = TRANSPORTS["email"].send(message(), options, {})
    assert (closed.result, closed.code) == (Result.RETRY, None)


# --- what answers and networks do -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pagerduty", "slack", "webhook", "alertmanager"])
def test_refusals_are_final_and_pressure_is_waited_for(service: Receiver, name: str) -> None:
    service.answers = [
        Answer(status=400, body=b"invalid\n payload"),
        Answer(status=404),
        Answer(status=429, headers={"Retry-After": "17"}),
        Answer(status=500),
        Answer(status=503, headers={"Retry-After": "Sun, 01 Jan 2023 00:00:00 GMT"}),
        Answer(status=302, headers={"Location": service.url + "/elsewhere"}),
    ]
    found = [send(name, service.url, message()) for _ in range(6)]
    assert [(one.result.value, one.code) for one in found] == [
        *(("final", 400), ("final", 404), ("retry", 429), ("retry", 500), ("retry", 503), ("final", 302))
    ]
    assert found[0].why == "invalid  payload"
    assert (found[2].after_s, found[2].rests) == (17.0, True)
    # A redirect is not followed.
    assert all(got.path == "/" for got in service.got)


def test_a_network_that_fails_is_named_and_tried_again(service: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "ANSWER_S", 0.2)
    held = threading.Event()
    service.answers = [Answer(held=held)]
    silent = send("slack", service.url, message())
    held.set()
    nowhere = send("slack", "http://nowhere.invalid/x", message())
    with receiver() as gone:
        pass
    refused = send("slack", gone.url, message())
    assert [one.result for one in (silent, nowhere, refused)] == [Result.RETRY] * 3
    assert "No answer" in silent.why and "DNS" in nowhere.why and "connection" in refused.why


@pytest.mark.parametrize(
    "url",
    [
        *("http://169.254.169.254/latest/meta-data", "http://[fe80::1]/", "http://0.0.0.0/", "file:///etc/passwd"),
        *("http://[::ffff:169.254.169.254]/", "https://me:pw@host/", "http://ho st/", "ftp://host/"),
    ],
)
def test_no_alert_goes_where_none_belongs(url: str) -> None:
    with pytest.raises(BadOption):
        TRANSPORTS["slack"].check({}, {"url": url})


def test_a_name_that_leads_to_the_metadata_of_a_cloud_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    there = [(2, 1, 6, "", ("169.254.169.254", 80))]
    monkeypatch.setattr(wire.socket, "getaddrinfo", lambda *_, **__: there)
    outcome = send("slack", "http://metadata.test/x", message())
    assert outcome.result is Result.FINAL and outcome.code is None


def test_links_lead_to_the_console_and_runbooks_where_they_are(settings: Settings) -> None:
    settings.CONSOLE_URL, settings.RUNBOOK_URL = "https://desk.test", "https://wiki.test/runbooks/"
    made = telling.example("k", NOW)
    assert made.url == "https://desk.test/incidents/" and made.runbook_url == "https://wiki.test/runbooks/tripped"
