"""What a notice on a route would look like, with stand-ins for its secrets."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from control.incidents import telling
from control.incidents.models import AlertRoute
from control.incidents.sealing import HIDDEN
from control.incidents.transports import TRANSPORTS

# They look like what a transport wants, and are none.
_STANDINS = {"url": "https://hidden.invalid/", "secret": "x" * 32}
_HIDDEN_HEADERS = frozenset({"authorization", "webhook-signature"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """`body`: laid out, if it is JSON."""

    to: str
    headers: Mapping[str, str]
    body: str


def of(route: AlertRoute, now: datetime) -> Preview:
    """A first notice about a run that tripped."""
    secrets = {name: _STANDINS.get(name, HIDDEN) for name in route.sealed}
    letter = TRANSPORTS[route.transport].letter(telling.preview_of(route, now), route.options, secrets)
    text = letter.body.decode()
    try:
        text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        pass
    return Preview(
        to=HIDDEN if letter.to == _STANDINS["url"] else letter.to,
        headers={name: HIDDEN if name in _HIDDEN_HEADERS else value for name, value in letter.headers.items()},
        body=text,
    )
