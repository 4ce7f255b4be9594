"""The shape in which Alertmanager tells its receivers: webhook, version 4
(prometheus.io/docs/alerting/latest/configuration/#webhook_config).

Many receivers speak it. As Alertmanager does, 5xx and 429 are tried again and other refusals are not.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import orjson

from agents.events import stamp
from control.incidents.transports import wire
from control.incidents.transports.ports import BadOption, Letter, Message, Notice, Option, Outcome, Transport

MOST_ALERTS = 100
# The zero of Go's time: what has not ended.
_NEVER = "0001-01-01T00:00:00Z"
_NOT_A_NAME = re.compile(r"[^a-zA-Z0-9_]")


class Alertmanager(Transport):
    name = "alertmanager"
    word = "Alertmanager webhook v4"
    takes = frozenset({"trigger", "resolve", "test"})
    groups = True
    pace_s = 0.0
    options = (
        Option(name="url", label="Address", secret=True, help="A receiver of Alertmanager's webhook, version 4."),
        Option(name="token", label="Bearer token", secret=True, needed=False, help="Sent as Authorization, if given."),
    )

    def check(self, options: Mapping[str, str], secrets: Mapping[str, str]) -> None:
        wire.check_url("url", secrets["url"])
        token = secrets.get("token", "")
        if not token.isascii() or any(char.isspace() or not char.isprintable() for char in token):
            raise BadOption("token", "A bearer token is one word of plain letters, digits and signs.")

    def letter(self, message: Message, options: Mapping[str, str], secrets: Mapping[str, str]) -> Letter:
        headers = {"content-type": "application/json"}
        if secrets.get("token"):
            headers["authorization"] = f"Bearer {secrets['token']}"
        return Letter(to=secrets["url"], headers=headers, body=orjson.dumps(_body(message)))

    def send(self, message: Message, options: Mapping[str, str], secrets: Mapping[str, str]) -> Outcome:
        return wire.post(self.letter(message, options, secrets), wire.judge_plainly)


def _body(message: Message) -> dict[str, Any]:
    over = message.action == "resolve"
    alerts = [_alert(notice, over=over) for notice in message.notices[:MOST_ALERTS]]
    group = {"alertname": alerts[0]["labels"]["alertname"]} if _alike(alerts) else {}
    labels = ",".join(f'{name}="{value}"' for name, value in group.items())
    return {
        "version": "4",
        "groupKey": f"{{}}:{{{labels}}}",
        "truncatedAlerts": max(0, len(message.notices) - MOST_ALERTS),
        "status": "resolved" if over else "firing",
        "receiver": message.route,
        "groupLabels": group,
        "commonLabels": _common([alert["labels"] for alert in alerts]),
        "commonAnnotations": _common([alert["annotations"] for alert in alerts]),
        "externalURL": message.console_url,
        "alerts": alerts,
    }


def _alike(alerts: list[dict[str, Any]]) -> bool:
    return len({alert["labels"]["alertname"] for alert in alerts}) == 1


def _common(parts: list[dict[str, str]]) -> dict[str, str]:
    return {name: value for name, value in parts[0].items() if all(part.get(name) == value for part in parts)}


def _alert(notice: Notice, *, over: bool) -> dict[str, Any]:
    own = {
        "alertname": "Pilothouse" + notice.rule.capitalize(),
        "severity": notice.severity,
        "rule": notice.rule,
        "key": notice.key,
        "agent": notice.agent,
        "project": notice.project,
        "run": notice.run or "",
    }
    # Labels of the run keep clear of ours; an empty label is the same as none.
    more = {f"label_{_NOT_A_NAME.sub('_', name)}": value for name, value in notice.labels.items()}
    labels = {name: value for name, value in {**more, **own}.items() if value}
    annotations = {
        "summary": notice.title,
        "description": notice.summary,
        "next_step": notice.next_step,
        "runbook_url": notice.runbook_url,
        "dashboard_url": notice.url,
        **({"stop_url": notice.stop_url} if notice.stop_url else {}),
    }
    ended = notice.resolved_at if over else None
    return {
        "status": "resolved" if over else "firing",
        "labels": labels,
        "annotations": {name: value for name, value in annotations.items() if value},
        "startsAt": stamp(notice.happened_at),
        "endsAt": stamp(ended) if ended else _NEVER,
        "generatorURL": notice.run_url or notice.url,
        # An alert is known by the key alone, whatever its other labels.
        "fingerprint": hashlib.sha256(notice.key.encode()).hexdigest()[:16],
    }
