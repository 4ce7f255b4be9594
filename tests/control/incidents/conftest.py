"""The desk without its loop: what a log says is taken in, and what is due is sent, when a test asks for it."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest

from control.incidents import deliveries, intake, sealing
from control.incidents.deliveries import Sender
from control.incidents.models import AlertRoute, Delivery
from control.runs.clock import database_now
from tests.control.incidents.receivers import Receiver, receiver

SECRET = "a-signing-secret-of-some-length"


@pytest.fixture(autouse=True)
def fresh(quiet: None) -> Iterator[None]:
    intake.forget()
    yield
    intake.forget()


@pytest.fixture
def service() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


def mail_options(url: str) -> dict[str, str]:
    """Those of an SMTP server at this address, as far as it has a port."""
    parts = urlsplit(url)
    options = {"to": "ann@x.test", "from": "desk@x.test", "security": "none", "user": ""}
    return {**options, "host": parts.hostname or "127.0.0.1", "port": str(parts.port or 25)}


def route(url: str, transport: str = "webhook", **columns: Any) -> AlertRoute:
    """A route to a receiver, told at once unless said otherwise."""
    now = database_now()
    secrets: dict[str, str] = {
        "webhook": {"url": url, "secret": SECRET},
        "slack": {"url": url},
        "pagerduty": {"routing_key": "R0UT1NGKEYR0UT1NGKEYR0UT1NGKEY12"},
        "alertmanager": {"url": url, "token": "t0ken"},
        "email": {},
    }[transport]
    options = {"pagerduty": {"url": url}, "email": mail_options(url)}.get(transport, {})
    given: dict[str, Any] = {
        "name": f"{transport} {AlertRoute.objects.count()}",
        "transport": transport,
        "options": options,
        "sealed": {name: sealing.seal(value) for name, value in secrets.items()},
        "group_seconds": 0,
        "least": "info",
        "created_at": now,
        "created_by": "ann",
        "changed_at": now,
        "changed_by": "ann",
    }
    return AlertRoute.objects.create(**(given | columns))


class Post:
    """A desk's sender, and a clock that tests push on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sender = Sender()
        self.ahead = timedelta(0)
        monkeypatch.setattr(deliveries, "database_now", self.now)

    def now(self) -> Any:
        return database_now() + self.ahead

    def send(self, ahead_s: float = 0) -> None:
        """All that is due by now, which is `ahead_s` later than it was."""
        self.ahead += timedelta(seconds=ahead_s)
        self.sender._paced.clear()
        while self.sender.turn():
            self.sender.wait(20)
            self.sender._paced.clear()


@pytest.fixture
def post(monkeypatch: pytest.MonkeyPatch) -> Post:
    return Post(monkeypatch)


def states() -> list[tuple[str, str, int | None]]:
    return list(Delivery.objects.order_by("id").values_list("action", "state", "code"))
