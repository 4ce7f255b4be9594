"""Slack, incoming webhooks (docs.slack.dev/messaging/sending-messages-using-incoming-webhooks): `text` always, and
`blocks` beside it.

About one message a second; 429 names the patience it wants in Retry-After. A message cannot be changed later, so that
an incident is over comes as a message of its own.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from control.incidents.transports import wire
from control.incidents.transports.ports import BadOption, Letter, Message, Notice, Option, Outcome, Transport
from control.incidents.transports.texts import cut, headline

MOST_TEXT = 4_000
MOST_HEADER = 150
MOST_SECTION = 3_000
MOST_FIELD = 2_000
MOST_FIELDS = 10
MOST_BLOCKS = 50
MOST_URL = 3_000
# Each incident takes up to four blocks, and the head and a line about the rest one each.
MOST_SHOWN = 10
_MARKS = {
    "critical": ":rotating_light:",
    "error": ":red_circle:",
    "warning": ":large_yellow_circle:",
    "info": ":information_source:",
}


class Slack(Transport):
    name = "slack"
    word = "Slack"
    takes = frozenset({"trigger", "resolve", "test"})
    groups = True
    pace_s = 1.0
    options = (
        Option(
            name="url",
            label="Webhook address",
            secret=True,
            help="Of an incoming webhook: https://hooks.slack.com/services/… Whoever knows it can write there.",
        ),
    )

    def check(self, options: Mapping[str, str], secrets: Mapping[str, str]) -> None:
        wire.check_url("url", secrets["url"])
        if len(secrets["url"]) > 2_000:
            raise BadOption("url", "This is longer than any webhook address.")

    def letter(self, message: Message, options: Mapping[str, str], secrets: Mapping[str, str]) -> Letter:
        body = {"text": cut(_safe(headline(message)), MOST_TEXT), "blocks": _blocks(message)}
        return Letter(to=secrets["url"], headers={"content-type": "application/json"}, body=orjson.dumps(body))

    def send(self, message: Message, options: Mapping[str, str], secrets: Mapping[str, str]) -> Outcome:
        return wire.post(self.letter(message, options, secrets), wire.judge_plainly)


def _safe(text: str) -> str:
    """The three characters that Slack's markup wants escaped; nobody is mentioned by what an agent wrote."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _cut_safe(text: str, most: int) -> str:
    """Escaped and at most `most` characters, cut before escaping, so that no entity is broken."""
    keep = most
    while len(made := _safe(cut(text, keep))) > most:
        keep -= max(1, (len(made) - most + 4) // 5)
    return made


def _blocks(message: Message) -> list[dict[str, Any]]:
    head = {"type": "header", "text": {"type": "plain_text", "text": cut(headline(message), MOST_HEADER)}}
    blocks: list[dict[str, Any]] = [head]
    for notice in message.notices[:MOST_SHOWN]:
        blocks += _notice_blocks(notice, over=message.action == "resolve")
    left = len(message.notices) - MOST_SHOWN
    if left > 0:
        words = f"and {left} more: <{message.console_url}/incidents/|all incidents>"
        blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": words}]})
    return blocks[:MOST_BLOCKS]


def _notice_blocks(notice: Notice, *, over: bool) -> list[dict[str, Any]]:
    mark = ":white_check_mark:" if over else _MARKS[notice.severity]
    text = f"{mark} *{_cut_safe(notice.title, 600)}*"
    if notice.summary:
        text += f"\n{_cut_safe(notice.summary, 1_200)}"
    if notice.next_step and not over:
        text += f"\n*Next:* {_cut_safe(notice.next_step, 600)}"
    blocks: list[dict[str, Any]] = [{"type": "section", "text": {"type": "mrkdwn", "text": text[:MOST_SECTION]}}]
    fields = [
        {"type": "mrkdwn", "text": f"*{_cut_safe(name, 100)}*\n{_cut_safe(value, MOST_FIELD - 600)}"}
        for name, value in notice.facts[:MOST_FIELDS]
        if value
    ]
    if fields and not over:
        blocks.append({"type": "section", "fields": fields})
    buttons = [_button("Incident", notice.url)]
    if notice.stop_url and not over:
        buttons.insert(0, {**_button("Stop the run…", notice.stop_url), "style": "danger"})
    elif notice.run_url:
        buttons.append(_button("Run", notice.run_url))
    buttons.append(_button("Runbook", notice.runbook_url))
    blocks.append({"type": "actions", "elements": [button for button in buttons if len(button["url"]) <= MOST_URL]})
    return blocks


def _button(word: str, url: str) -> dict[str, Any]:
    return {"type": "button", "text": {"type": "plain_text", "text": word}, "url": url}
