"""Processes are found by their mark, and no other is ended; the guardian does so when its worker is gone."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agents.ids import new_id
from agents.tools.guardian import start_guardian
from agents.tools.processes import WORKER_MARK, clean_environment, end_marked
from tests.agents.tools.conftest import carriers

ROOT = str(Path(__file__).resolve().parents[3])


def until(condition: Callable[[], object], within_s: float = 6.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "the state did not come"
        time.sleep(0.02)


def sleeper(mark: str, command: str = "exec sleep 600", **extra: str) -> "subprocess.Popen[bytes]":
    environment = {**clean_environment({}), WORKER_MARK: mark, **extra}
    return subprocess.Popen(["/bin/sh", "-c", command], env=environment, start_new_session=True)


def test_exactly_the_marked_ones_end(mark: str) -> None:
    near = [
        sleeper(mark + "0"),
        sleeper("x" + mark),
        sleeper(mark.upper() + "-"),
        sleeper("other", NOTE=f"{WORKER_MARK}={mark}"),
    ]
    mine = [sleeper(mark), sleeper(mark, "trap '' TERM; while :; do sleep 0.1; done")]
    try:
        until(lambda: len(carriers(mark)) >= 3)
        report = end_marked(WORKER_MARK, mark, 0.3)
        assert report.left == 0
        assert report.processes >= 3
        assert carriers(mark) == []
        assert [process.poll() for process in near] == [None] * 4
        assert all(process.wait(5) in (-signal.SIGTERM, -signal.SIGKILL) for process in mine)
    finally:
        for process in near:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_a_marked_caller_ends_neither_itself_nor_its_ancestors(mark: str) -> None:
    code = f"from agents.tools.processes import end_marked; print(end_marked('{WORKER_MARK}', '{mark}', 0.1).processes)"
    environment = {**os.environ, WORKER_MARK: mark, "CODE": code}
    inner = f'sleep 600 & "{sys.executable}" -c "$CODE"; echo survived'
    done = subprocess.run(
        ["/bin/sh", "-c", inner], env=environment, cwd=ROOT, capture_output=True, timeout=20, check=False
    )
    assert done.stdout.split() == [b"1", b"survived"]


def test_nothing_to_end_is_told_at_once() -> None:
    began = time.monotonic()
    report = end_marked(WORKER_MARK, new_id(), 5.0)
    assert (report.processes, report.left) == (0, 0)
    assert time.monotonic() - began < 1.0


WORKER = """
import subprocess, sys, time
from agents.tools.guardian import start_guardian
from agents.tools.processes import clean_environment
guardian = start_guardian({mark!r})
tool = "(setsid sh -c 'sleep 600 & trap \\"\\" TERM; sleep 600' &) ; trap '' TERM; sleep 600"
environment = clean_environment({{"PILOTHOUSE_WORKER": {mark!r}}})
subprocess.Popen(["/bin/sh", "-c", tool], env=environment, start_new_session=True)
print(guardian.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.chaos
@pytest.mark.case("A2-03")
def test_the_tools_of_a_killed_worker_do_not_outlive_it(mark: str) -> None:
    worker = subprocess.Popen([sys.executable, "-c", WORKER.format(mark=mark)], cwd=ROOT, stdout=subprocess.PIPE)
    assert worker.stdout is not None
    guardian = int(worker.stdout.readline())
    until(lambda: len(carriers(mark)) >= 4)
    worker.kill()
    worker.wait()
    until(lambda: not carriers(mark))
    until(lambda: not _runs(guardian))


def test_the_guardian_outlives_signals_and_ends_when_let_go(mark: str) -> None:
    guardian = start_guardian(mark)
    tool = sleeper(mark)
    until(lambda: _ignores(guardian.pid, signal.SIGTERM))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        guardian.send_signal(number)
    assert os.getsid(guardian.pid) == guardian.pid
    assert guardian.poll() is None
    assert tool.poll() is None
    assert guardian.stdin is not None
    guardian.stdin.close()
    assert guardian.wait(10) == 0
    assert tool.wait(5) == -signal.SIGTERM


def test_the_environment_of_tools_holds_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "OPENAI_API_KEY",
        "SECRET_KEY",
        "DATABASE_URL",
        "REDIS_URL",
        "AWS_SESSION_TOKEN",
        "DJANGO_SETTINGS_MODULE",
    ):
        monkeypatch.setenv(name, "never")
    environment = clean_environment({"PILOTHOUSE_RUN": "r"})
    assert "never" not in environment.values()
    assert environment["PILOTHOUSE_RUN"] == "r"
    assert environment["PATH"] == os.environ["PATH"]


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _ignores(pid: int, number: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    ignored = next(line for line in status.splitlines() if line.startswith("SigIgn:"))
    return bool(int(ignored.split()[1], 16) >> (number - 1) & 1)
