"""What every measurement needs: a model server in a process of its own, subjects in theirs, rounds interleaved."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests import children

PYTHON = sys.executable


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def model_server() -> Iterator[str]:
    """The drill server in its own process; yields its base URL."""
    port = free_port()
    drill = [PYTHON, "-m", "agents.drill", "--port", str(port)]
    process = children.start(drill, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    base = f"http://127.0.0.1:{port}/v1"
    try:
        _until_answers(f"{base}/models")
        yield base
    finally:
        process.terminate()
        process.wait(10)


def _until_answers(url: str, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            urllib.request.urlopen(url, timeout=1).read()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            return


def subject(name: str, *arguments: object, env: dict[str, str] | None = None) -> dict[str, Any]:
    """Run `tests.bench.subjects.<name>` in a process of its own; its last line is a JSON object of figures."""
    with tempfile.TemporaryDirectory(prefix="pilothouse-bench-") as data:
        done = subprocess.run(
            [PYTHON, "-m", f"tests.bench.subjects.{name}", *map(str, arguments)],
            env={**os.environ, "DATA_DIR": data, **(env or {})},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    figures: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


@dataclass(frozen=True, slots=True)
class Spread:
    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} [{self.low:.2f} .. {self.high:.2f}]"


def spread(values: Sequence[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values))


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
