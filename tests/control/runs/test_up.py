"""`manage.py up`: one command brings the house up, keeps it up, and takes everything down with it."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from django.conf import settings

from control.runs import ports
from tests import children
from tests.control.runs.processes import until

pytestmark = [pytest.mark.chaos]
# What decides where a house keeps its things; the tests give their own.
OWN = ("DATABASE_URL", "REDIS_URL", "DATA_DIR", "SECRET_KEY", "DRILL_URL", "PORT", "HOST")


class Up:
    """One `manage.py up` in a directory of its own."""

    def __init__(self, root: Path, *words: str, port: int | None = None) -> None:
        self.root = root
        self.port = port or ports.free(0)
        self.base_url = f"http://127.0.0.1:{self.port}"
        self._log = root / f"up-{time.time_ns()}.log"
        kept = {name: value for name, value in os.environ.items() if name not in OWN}
        with self._log.open("wb") as out:
            self.process = children.start(
                [sys.executable, str(settings.BASE_DIR / "manage.py"), "up", "--port", str(self.port), *words],
                env={**kept, "DATA_DIR": str(root), "LEASE_SECONDS": "1.5"},
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    @property
    def said(self) -> str:
        return self._log.read_text()

    def ready(self) -> "Up":
        def is_up() -> bool:
            assert self.process.poll() is None, self.said
            return "Pilothouse is up" in self.said and self.said.count(" ready on ") >= 2

        until(is_up, 60, "up says that it is up")
        return self

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def child(self, word: str) -> psutil.Process:
        """The child whose command has this word."""
        return self.named(word)[0]

    def named(self, word: str) -> list[psutil.Process]:
        found = []
        for child in self.children():
            with contextlib.suppress(psutil.Error):  # ended meanwhile
                if word in child.cmdline():
                    found.append(child)
        return found


def of_house(root: Path) -> list[str]:
    """Every living process that works in this house's directory, whoever its parent is."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("DATA_DIR") == str(root) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
    return found


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("DATA_DIR") == str(tmp_path):
                process.kill()


def test_up_brings_everything_up_and_ctrl_c_takes_everything_down(root: Path) -> None:
    up = Up(root).ready()
    link = re.search(r"http://127\.0\.0\.1:\d+/sign-in/[\w-]+/", up.said)
    assert link is not None and httpx.get(link[0], follow_redirects=True).status_code == 200
    # `up` says that it is up when the web answers; worker and desk may need a moment more.
    until(
        lambda: not (said := httpx.get(f"{up.base_url}/readyz").json())["reasons"] and said["ready"], 40, "it is ready"
    )
    assert {word for word in ("web", "worker", "desk", "agents.drill") if up.child(word)} == {
        "web",
        "worker",
        "desk",
        "agents.drill",
    }
    everybody = up.children()
    assert len(everybody) >= 5  # these four, and the worker's guardian
    up.process.send_signal(signal.SIGINT)
    assert up.process.wait(10) == 0
    until(lambda: not [child for child in everybody if child.is_running()], 3, "no child is left")
    assert of_house(root) == []


def test_the_second_start_makes_no_admin_and_a_killed_worker_is_started_again(root: Path) -> None:
    first = Up(root, "--no-drill").ready()
    first.process.send_signal(signal.SIGTERM)
    assert first.process.wait(10) == 0
    up = Up(root, "--no-drill").ready()
    assert "/sign-in/" not in up.said
    killed = up.child("worker")
    killed.kill()
    until(lambda: [child for child in up.named("worker") if child != killed], 15, "a new worker")
    assert "worker 1 ended (signal 9)" in up.said
    up.process.send_signal(signal.SIGINT)
    assert up.process.wait(10) == 0
    assert of_house(root) == []


def test_when_up_itself_is_killed_nothing_is_left(root: Path) -> None:
    up = Up(root).ready()
    everybody = up.children()
    up.process.kill()
    up.process.wait(5)
    try:
        until(lambda: of_house(root) == [], 40, "all children have noticed")
    except AssertionError as late:
        raise AssertionError(f"left: {of_house(root)}\n{up.said[-6000:]}") from late
    until(lambda: not [child for child in everybody if child.is_running()], 3, "no child is left")


def test_a_port_in_use_is_told_with_the_way_out(root: Path) -> None:
    import socket

    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        up = Up(root, port=busy.getsockname()[1])
        assert up.process.wait(20) == 1
    assert "Choose another port with --port N" in up.said
    assert "Traceback" not in up.said
