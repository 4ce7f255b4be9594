"""No process of a test outlives the tests, even when these are killed and the process itself is frozen."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parent.parent
TESTS = """
import time
from tests import children
for _ in range(2):
    print(children.start(["sleep", "600"]).pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent has died")
@pytest.mark.chaos
def test_children_end_with_tests_that_are_killed_also_frozen_ones() -> None:
    tests = subprocess.Popen([sys.executable, "-c", TESTS], cwd=ROOT, stdout=subprocess.PIPE)
    assert tests.stdout is not None
    started = [psutil.Process(int(tests.stdout.readline())) for _ in range(2)]
    os.kill(started[0].pid, signal.SIGSTOP)
    tests.kill()
    tests.wait()
    give_up_at = time.monotonic() + 5
    while any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in started):
        assert time.monotonic() < give_up_at, "a child is left"
        time.sleep(0.01)
