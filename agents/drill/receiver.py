"""A webhook's other end, for the drill: it checks signatures as www.standardwebhooks.com asks and keeps what came.

It shares no code with who signs, so that a letter that it takes would be taken elsewhere too.
"""

import base64
import binascii
import hashlib
import hmac
import time
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from agents.events import stamp

KEPT = 200
PLACES = 100
LEAST_SECRET = 24
# How far the clock of a letter may be from ours, in seconds.
TOLERANCE_S = 300
_PREFIX = "whsec_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """One letter. `why` says what is wrong with it, None for a good one; `times` counts repeats of its id."""

    at: datetime
    place: str
    id: str
    why: str | None
    body: Any
    times: int

    def row(self) -> dict[str, Any]:
        return {
            "at": stamp(self.at),
            "id": self.id,
            "verified": self.why is None,
            "why": self.why,
            "times": self.times,
            "body": self.body,
        }


class Receiver:
    """Places to send to, each with the secret that its letters are signed with, and the latest letters."""

    def __init__(self) -> None:
        self._secrets: OrderedDict[str, bytes] = OrderedDict()
        self._took: deque[Took] = deque(maxlen=KEPT)

    def open(self, secret: str) -> str:
        """A place for letters signed with this `whsec_` secret; its name, the same for the same secret. ValueError for
        one that is none."""
        if not secret.startswith(_PREFIX):
            raise ValueError("A secret is whsec_ and base64.")
        try:
            key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
        except binascii.Error:
            raise ValueError("What follows whsec_ is no base64.") from None
        if len(key) < LEAST_SECRET:
            raise ValueError(f"A secret has at least {LEAST_SECRET} bytes.")
        place = hashlib.sha256(b"place\0" + key).hexdigest()[:24]
        self._secrets[place] = key
        self._secrets.move_to_end(place)
        while len(self._secrets) > PLACES:
            self._secrets.popitem(last=False)
        return place

    def take(self, place: str, headers: Mapping[str, str], body: bytes) -> tuple[int, str]:
        """Keep a letter, good or bad; the status to answer with, and a sentence."""
        key = self._secrets.get(place)
        if key is None:
            return 404, "Nobody has opened this place; the server may have been started anew."
        letter, why = headers.get("webhook-id", "")[:100], _why_bad(key, headers, body, time.time())
        said: Any = None
        try:
            said = orjson.loads(body)
        except orjson.JSONDecodeError:
            why = why or "The body is no JSON."
        times = 1 + sum(one.id == letter and one.why is None for one in self._took)
        self._took.append(Took(at=datetime.now(UTC), place=place, id=letter, why=why, body=said, times=times))
        return (204, "") if why is None else (401, why)

    def close(self, place: str) -> bool:
        """Forget a place and what came to it; False for one that is not open."""
        known = self._secrets.pop(place, None) is not None
        self._took = deque((one for one in self._took if one.place != place), maxlen=KEPT)
        return known

    def rows(self, incident: str | None = None) -> list[dict[str, Any]]:
        """Oldest first; of one incident, those that name it."""
        return [one.row() for one in self._took if incident is None or _incident_of(one.body) == incident]


def _why_bad(key: bytes, headers: Mapping[str, str], body: bytes, now: float) -> str | None:
    letter, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not letter or not at.isascii() or not at.isdigit() or len(at) > 12:
        return "webhook-id or webhook-timestamp is missing."
    if abs(now - int(at)) > TOLERANCE_S:
        return "webhook-timestamp is too far from now."
    made = hmac.new(key, b".".join((letter.encode(), at.encode(), body)), hashlib.sha256).digest()
    wanted = b"v1," + base64.b64encode(made)
    given = headers.get("webhook-signature", "").encode().split()
    return None if any(hmac.compare_digest(wanted, one) for one in given) else "No signature fits."


def _incident_of(body: Any) -> Any:
    found = body.get("object") if isinstance(body, dict) else None
    return found.get("id") if isinstance(found, dict) else None
