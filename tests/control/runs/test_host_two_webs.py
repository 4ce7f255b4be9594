"""Several webs and workers: what one web is asked reaches the run in whichever worker, with or without the bus."""

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.utils import timezone

from control.accounts.models import Role, Token
from tests import children
from tests.control.runs.processes import House, kinds, reach, row, until
from tests.scripted_server import Response, say, stall

MakeHouse = Callable[..., House]
TIMES = 20


def _client(base_url: str) -> httpx.Client:
    _, secret = Token.issue(f"test {time.time_ns()}", Role.OPERATOR, timezone.now())
    return httpx.Client(base_url=base_url, headers={"Authorization": f"Bearer {secret}"}, timeout=10)


def _begin(client: httpx.Client, house: House) -> str:
    asked = {"agent": "default", "task": "go on", "model": "m", "base_url": house.model_url}
    answer = client.post("/api/runs", json=asked)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def _stop(client: httpx.Client, run: str) -> float:
    """Interrupt, and the seconds until the run says that it has stopped. The answer itself never claims that."""
    began = time.monotonic()
    answer = client.post(f"/api/runs/{run}/interrupt", json={"reason": "enough"})
    assert answer.status_code == 202, answer.text
    command = answer.json()["command"]
    assert command["state"] in ("requested", "delivered", "stopping", "done") if isinstance(command, dict) else command
    reach(run, "interrupted", within=10)
    return time.monotonic() - began


def _stalling(asked: list[str]) -> Callable[[Any], Response]:
    def script(request: Any) -> Response:
        asked.append("asked")
        return say("half an answer", after=[stall()])

    return script


@pytest.mark.case("A4-07")
def test_a_run_started_at_one_web_is_stopped_through_the_other_every_time(make_house: MakeHouse) -> None:
    asked: list[str] = []
    house = make_house(_stalling(asked))
    one, other = _client(house.web()), _client(house.web())
    house.worker()
    house.worker()
    took = []
    for number in range(TIMES):
        run = _begin(one, house)
        until(lambda n=number: len(asked) == n + 1, what="the model is asked")
        took.append(_stop(other, run))
        assert kinds(run)[-1] == "run.interrupted"
    # The poll alone would take a quarter of a second on average: most of these went by the hint.
    assert sorted(took)[TIMES // 2] < 0.25, took


@contextlib.contextmanager
def _redis(port: int, directory: Path) -> Iterator[None]:
    command = ["redis-server", "--port", str(port), "--save", "", "--dir", str(directory)]
    server = children.start(command, stdout=subprocess.DEVNULL)
    try:
        until(lambda: _listens(port), 10, "Redis listens")
        yield
    finally:
        server.kill()
        server.wait()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@pytest.mark.redis
@pytest.mark.case("A4-07")
def test_runs_start_and_stop_while_redis_is_down_and_after_it_is_back(make_house: MakeHouse, tmp_path: Path) -> None:
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is missing; to get it: apt-get install redis-server")
    asked: list[str] = []
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        port = trial.getsockname()[1]
    with _redis(port, tmp_path):
        house = make_house(_stalling(asked), REDIS_URL=f"redis://127.0.0.1:{port}/0")
        one, other = _client(house.web()), _client(house.web())
        house.worker()
        house.desk()
        first = _begin(one, house)
        until(lambda: len(asked) == 1, what="the model is asked")
    began = time.monotonic()
    late = _begin(one, house)
    assert time.monotonic() - began < 1.0
    assert _stop(other, first) < 3.0
    # Who looks by itself may have found it already; nobody was told.
    assert row(late).status in ("queued", "running")
    with _redis(port, tmp_path):
        until(lambda: len(asked) == 2, 40, "the run that nobody was told of is published again")
        assert _stop(other, late) < 3.0
