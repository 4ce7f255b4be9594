"""PagerDuty, Events API v2 (developer.pagerduty.com/docs/events-api-v2-overview): one event for each incident.

202: accepted. 400: the event is wrong and stays so. 429 and 5xx: to be tried again, later and later.
"""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from agents.events import stamp
from control.incidents.transports import wire
from control.incidents.transports.ports import BadOption, Letter, Message, Notice, Option, Outcome, Result, Transport
from control.incidents.transports.texts import cut, cut_bytes

MOST_BYTES = 512_000
MOST_SUMMARY = 1_024
MOST_KEY = 255
_KEY = re.compile(r"[A-Za-z0-9]{32}")
_ENQUEUE = "https://events.pagerduty.com/v2/enqueue"


class PagerDuty(Transport):
    name = "pagerduty"
    word = "PagerDuty"
    takes = frozenset({"trigger", "acknowledge", "resolve", "test"})
    groups = False
    pace_s = 0.0
    options = (
        Option(
            name="routing_key",
            label="Integration key",
            secret=True,
            help="Of an “Events API v2” integration: 32 letters and digits.",
        ),
        Option(
            name="url",
            label="Address of the API",
            default=_ENQUEUE,
            needed=False,
            help="For an account in Europe: https://events.eu.pagerduty.com/v2/enqueue.",
        ),
    )

    def check(self, options: Mapping[str, str], secrets: Mapping[str, str]) -> None:
        wire.check_url("url", options["url"])
        if not _KEY.fullmatch(secrets["routing_key"]):
            raise BadOption("routing_key", "An integration key has 32 letters and digits. Copy it from the service.")

    def letter(self, message: Message, options: Mapping[str, str], secrets: Mapping[str, str]) -> Letter:
        event = _event(message, message.notices[0], secrets["routing_key"])
        return Letter(to=options["url"], headers={"content-type": "application/json"}, body=_fitting(event))

    def send(self, message: Message, options: Mapping[str, str], secrets: Mapping[str, str]) -> Outcome:
        return wire.post(self.letter(message, options, secrets), _judge)


def _event(message: Message, notice: Notice, routing_key: str) -> dict[str, Any]:
    action = "trigger" if message.action == "test" else message.action
    event: dict[str, Any] = {
        "routing_key": routing_key,
        "event_action": action,
        "dedup_key": cut_bytes(notice.key, MOST_KEY),
    }
    if action != "trigger":
        return event
    links = [{"href": notice.runbook_url, "text": "Runbook"}]
    if notice.run_url:
        links.insert(0, {"href": notice.run_url, "text": "The run"})
    if notice.stop_url:
        links.insert(0, {"href": notice.stop_url, "text": "Stop the run"})
    payload = {
        "summary": cut(notice.title, MOST_SUMMARY),
        "source": cut(f"run {notice.run}" if notice.run else notice.key, 255),
        # The gravest word that PagerDuty has for a test is none that wakes people.
        "severity": "info" if message.action == "test" else notice.severity,
        "timestamp": stamp(notice.happened_at),
        "component": notice.agent or "fleet",
        "group": notice.project or "default",
        "class": notice.rule,
        "custom_details": {
            "summary": notice.summary,
            "next_step": notice.next_step,
            "times": notice.times,
            **dict(notice.facts),
        },
    }
    return event | {"payload": payload, "links": links, "client": "Pilothouse", "client_url": notice.url}


def _fitting(event: dict[str, Any]) -> bytes:
    """At most 512,000 bytes: the details go first."""
    body = orjson.dumps(event)
    if len(body) > MOST_BYTES:
        event["payload"].pop("custom_details", None)
        body = orjson.dumps(event)
    return body


def _judge(answer: wire.Answer) -> Outcome:
    if answer.code == 202:
        return Outcome(result=Result.DELIVERED, code=202)
    if 200 <= answer.code < 300:
        why = "PagerDuty answers 202 to what it takes; this is another service."
        return Outcome(result=Result.FINAL, code=answer.code, why=why)
    return wire.judge_plainly(answer)
