"""SIGTERM: each of our processes ends in order and in time, with exit code 0, and is off the roster."""

import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from django.utils import timezone
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from control.accounts.models import Role, Token
from control.runs.models import Worker
from tests.control.runs.processes import House, reach, row, until
from tests.scripted_server import Response, say, stall

MakeHouse = Callable[..., House]


def ended(process: "subprocess.Popen[bytes]", within: float) -> float:
    """Ask it to end; the seconds that took."""
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(within) == 0
    return time.monotonic() - began


def test_a_worker_hands_its_run_over_and_leaves_the_roster(make_house: MakeHouse) -> None:
    asked: list[Any] = []

    def script(request: Any) -> Response:
        asked.append(request)
        return say("half", after=[stall()]) if len(asked) == 1 else say("whole")

    house = make_house(script, LEASE_SECONDS="15", DRAIN_SECONDS="1")
    first = house.worker()
    run = house.begin()
    until(lambda: asked, what="the model is asked")
    mine = row(run).worker
    ended(first, 15)
    assert row(run).status == "queued" and row(run).attempts == 0
    left = Worker.objects.get(pk=mine)
    assert left.gone_at is not None and left.runs == 0
    house.worker()
    house.desk()
    assert reach(run, "completed", "failed", "lost", within=30).final == "whole"


def test_a_desk_ends_at_once_and_another_one_has_its_chores(make_house: MakeHouse) -> None:
    house = make_house(lambda request: say("done"))
    first, second = house.desk(), house.desk()
    assert ended(first, 10) < 6
    until(lambda: Worker.objects.filter(kind="desk", gone_at=None).count() == 1, what="one desk is on the roster")
    house.worker()
    assert second.poll() is None
    run = house.begin()
    reach(run, "completed")


def test_a_web_process_ends_while_pages_are_open(make_house: MakeHouse) -> None:
    house = make_house(lambda request: say("done"))
    base = house.web()
    _, secret = Token.issue("test", Role.VIEWER, timezone.now())
    headers = {"Authorization": f"Bearer {secret}"}
    with connect(f"{base.replace('http', 'ws')}/ws/fleet?format=json", additional_headers=headers) as page:
        assert "hello" in str(page.recv(timeout=10))
        with httpx.Client(base_url=base, headers=headers) as kept:
            assert kept.get("/api/runs").status_code == 200
            assert ended(house._processes[0], 12) < 10
        with pytest.raises(ConnectionClosed):
            while True:
                page.recv(timeout=5)
