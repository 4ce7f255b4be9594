"""The drill's receiver of alerts: it takes what is signed with its secret, and nothing else."""

import base64
import hashlib
import hmac
import time

import httpx
import pytest

from agents.drill.receiver import Receiver
from agents.drill.server import DrillServer

KEY = bytes(range(32))
SECRET = "whsec_" + base64.b64encode(KEY).decode()
BODY = b'{"object":{"id":"inc-1"}}'


def signed(body: bytes = BODY, *, key: bytes = KEY, at: float | None = None, letter: str = "m1") -> dict[str, str]:
    moment = str(int(time.time() if at is None else at))
    made = hmac.new(key, f"{letter}.{moment}.".encode() + body, hashlib.sha256).digest()
    signature = "v1,bm9wZQ== v1," + base64.b64encode(made).decode()
    return {"webhook-id": letter, "webhook-timestamp": moment, "webhook-signature": signature}


def test_a_signed_letter_is_taken_and_shown_by_its_incident() -> None:
    with DrillServer() as server:
        opened = httpx.post(f"{server.base_url}/drill/alerts", json={"secret": SECRET})
        place = server.base_url + opened.json()["path"]
        assert opened.status_code == 201 and SECRET[6:] not in place
        assert httpx.post(place, content=BODY, headers=signed()).status_code == 204
        assert httpx.post(place, content=BODY + b" ", headers=signed()).status_code == 401
        assert httpx.post(f"{server.base_url}/drill/alerts/nowhere", content=BODY, headers=signed()).status_code == 404
        letters = httpx.get(f"{server.base_url}/drill/alerts", params={"incident": "inc-1"}).json()["letters"]
        assert [one["verified"] for one in letters] == [True, False]
        assert httpx.get(f"{server.base_url}/drill/alerts", params={"incident": "inc-2"}).json() == {"letters": []}
        assert httpx.post(f"{server.base_url}/drill/alerts", json={"secret": "whsec_x"}).status_code == 400
        # Closed, a place is as if it had never been.
        assert httpx.delete(place).status_code == 204 and httpx.delete(place).status_code == 404
        assert httpx.post(place, content=BODY, headers=signed()).status_code == 404
        assert httpx.get(f"{server.base_url}/drill/alerts").json() == {"letters": []}


def test_wrong_keys_old_letters_and_repeats_are_known() -> None:
    receiver = Receiver()
    place = receiver.open(SECRET)
    assert receiver.open(SECRET) == place
    assert receiver.take(place, signed(), BODY)[0] == receiver.take(place, signed(), BODY)[0] == 204
    assert receiver.take(place, signed(key=b"x" * 32), BODY) == (401, "No signature fits.")
    assert receiver.take(place, signed(at=time.time() - 400), BODY)[1] == "webhook-timestamp is too far from now."
    assert receiver.take(place, {}, BODY)[0] == 401
    assert [row["times"] for row in receiver.rows("inc-1")][:2] == [1, 2]
    with pytest.raises(ValueError):
        receiver.open("whsec_" + base64.b64encode(b"short").decode())
