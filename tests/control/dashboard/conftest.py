"""A real web process on the test's own database, and people who may or may not act."""

import json
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings
from websockets.sync.client import ClientConnection, connect

from control.accounts.models import Role, Token, User
from control.dashboard import documents, fleet_rows
from control.runs.clock import database_now
from tests.bench.harness import free_port
from tests.control.runs.processes import House, until


@pytest.fixture(autouse=True)
def fresh_documents() -> Iterator[None]:
    """Documents are kept by run id for the whole process, and the fleet's numbers for a moment; each test has a
    database of its own."""
    documents.forget()
    fleet_rows.forget_strip()
    yield
    documents.forget()
    fleet_rows.forget_strip()


@pytest.fixture
def person(db: None) -> Callable[[Role], User]:
    def make(role: Role = Role.OPERATOR, name: str = "") -> User:
        user = User(username=name or role.value, role=role)
        user.set_password("correct horse battery")
        user.save()
        return user

    return make


@pytest.fixture
def operator(client: Client, person: Callable[[Role], User]) -> Client:
    client.force_login(person(Role.OPERATOR))
    return client


@pytest.fixture
def viewer(person: Callable[[Role], User]) -> Client:
    client = Client()
    client.force_login(person(Role.VIEWER))
    return client


class Web:
    """One web process with sockets to it."""

    def __init__(self, house: House, port: int) -> None:
        self.house = house
        self.port = port
        self.base = f"http://127.0.0.1:{port}"

    def token(self, role: Role = Role.VIEWER) -> str:
        return Token.issue(f"t{Token.objects.count()}", role, database_now())[1]

    def open(self, path: str, *, origin: str | None = None, **headers: str) -> ClientConnection:
        url = f"ws://127.0.0.1:{self.port}{path}"
        more: Any = {"origin": origin, "additional_headers": headers}
        return connect(url, max_size=None, open_timeout=20, compression=None, **more)

    @contextmanager
    def follow(self, path: str) -> Iterator["Follower"]:
        """A socket by token, its first frame (hello) taken."""
        with closing(self.open(path, Authorization=f"Bearer {self.token()}")) as socket:
            yield Follower(socket)


class Follower:
    """Reads frames and, unless it is told to be lazy, acknowledges events."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.hello = self.next()
        assert self.hello["type"] == "hello"

    def next(self, within: float = 10) -> dict[str, Any]:
        return json.loads(self.socket.recv(timeout=within))  # type: ignore[no-any-return]

    def next_of(self, *kinds: str, within: float = 10) -> dict[str, Any]:
        while (frame := self.next(within))["type"] not in kinds:
            pass
        return frame

    def ack(self, seq: int) -> None:
        self.socket.send(json.dumps({"type": "ack", "seq": seq}))

    def seqs(self, until: int, *, ack: bool = True) -> list[int]:
        """The numbers of all events up to one, in the order in which they came."""
        seen: list[int] = []
        while not seen or seen[-1] < until:
            frame = self.next_of("events")
            seen += [event["seq"] for event in frame["events"]]
            if ack:
                self.ack(seen[-1])
        return seen


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.fixture
def web(transactional_db: None, tmp_path: Path, settings: Settings, published: list[str]) -> Iterator[Web]:
    """Hints of this process go to the web process's bus, as a worker's would."""
    settings.SECRET_KEY = "test"
    port = free_port()
    house = House(tmp_path, "http://127.0.0.1:9/v1", PORT=str(port), HEARTBEAT_SECONDS="0.5", TRUSTED_ORIGINS="")
    try:
        house.start("web", "--port", str(port), ready="web on ")
        until(lambda: _answers(port), 20, "the web process listens")
        yield Web(house, port)
    finally:
        house.close()
        sys.stdout.write(house.output())


@pytest.fixture
def admin(person: Callable[[Role], User]) -> Client:
    client = Client()
    client.force_login(person(Role.ADMIN))
    return client
