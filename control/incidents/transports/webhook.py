"""A webhook for anybody, signed as www.standardwebhooks.com asks: HMAC-SHA256 over id, timestamp and body.

At least once: a receiver knows a repeat by `webhook-id`, which all tries of one message share.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from agents.events import stamp
from control.incidents.transports import wire
from control.incidents.transports.ports import BadOption, Letter, Message, Notice, Option, Outcome, Transport

VERSION = 1
LEAST_SECRET = 24
_TYPES = {"trigger": "opened", "acknowledge": "acknowledged", "resolve": "resolved", "test": "test"}


class Webhook(Transport):
    name = "webhook"
    word = "Webhook, signed"
    takes = frozenset({"trigger", "acknowledge", "resolve", "test"})
    groups = False
    pace_s = 0.0
    options = (
        Option(name="url", label="Address", secret=True, help="It takes a POST of JSON and answers 2xx."),
        Option(
            name="secret",
            label="Signing secret",
            secret=True,
            help="At least 24 characters, or whsec_ and base64. The receiver checks webhook-signature with it.",
        ),
    )

    def check(self, options: Mapping[str, str], secrets: Mapping[str, str]) -> None:
        wire.check_url("url", secrets["url"])
        if len(key_of(secrets["secret"])) < LEAST_SECRET:
            raise BadOption("secret", f"Give at least {LEAST_SECRET} characters, better ones that nobody can guess.")

    def letter(self, message: Message, options: Mapping[str, str], secrets: Mapping[str, str]) -> Letter:
        body = orjson.dumps(
            {
                "id": message.id,
                "created": stamp(message.created),
                "type": f"incident.{'reminded' if message.reminder else _TYPES[message.action]}",
                "version": VERSION,
                "object": _incident(message.notices[0]),
            }
        )
        now = int(datetime.now(UTC).timestamp())
        headers = {
            "content-type": "application/json",
            "webhook-id": message.id,
            "webhook-timestamp": str(now),
            "webhook-signature": signature(secrets["secret"], message.id, now, body),
        }
        return Letter(to=secrets["url"], headers=headers, body=body)

    def send(self, message: Message, options: Mapping[str, str], secrets: Mapping[str, str]) -> Outcome:
        return wire.post(self.letter(message, options, secrets), wire.judge_plainly)


def key_of(secret: str) -> bytes:
    """The bytes to sign with. Raises BadOption for a broken whsec_ one."""
    if not secret.startswith("whsec_"):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        raise BadOption("secret", "What follows whsec_ is no base64. Copy the secret again.") from None


def signature(secret: str, message: str, timestamp: int, body: bytes) -> str:
    signed = b"%b.%d.%b" % (message.encode(), timestamp, body)
    return "v1," + base64.b64encode(hmac.new(key_of(secret), signed, hashlib.sha256).digest()).decode()


def _incident(notice: Notice) -> dict[str, Any]:
    return {
        "object": "incident",
        "id": notice.id,
        "key": notice.key,
        "rule": notice.rule,
        "severity": notice.severity,
        "state": notice.state,
        "title": notice.title,
        "summary": notice.summary,
        "next_step": notice.next_step,
        "facts": [{"name": name, "value": value} for name, value in notice.facts],
        "run": notice.run,
        "agent": notice.agent or None,
        "project": notice.project or None,
        "labels": dict(notice.labels),
        "happened_at": stamp(notice.happened_at),
        "opened_at": stamp(notice.opened_at),
        "resolved_at": stamp(notice.resolved_at) if notice.resolved_at else None,
        "times": notice.times,
        "by": notice.by or None,
        "links": {
            "incident": notice.url,
            "run": notice.run_url,
            "stop": notice.stop_url,
            "runbook": notice.runbook_url,
        },
    }
