"""What a run costs a worker that only holds it: memory for each more that waits for a person, or for its model."""

import time
from typing import Any

import psutil

from tests.bench.harness import say
from tests.bench.lane import MODES
from tests.bench.stack import Stack, stack

FIRST = 20
MORE = 100


def waiting() -> None:
    """20 runs, then 100 more: the growth of the worker over 100. Compared with nothing: bytes are bytes."""
    for services, label in MODES:
        for what, model, more in (("an approval", "batch", {"policy": "ask-first"}), ("its model", "slow", {})):
            with stack(services=services) as console:
                _ask_first(console)
                worker = _worker(console)
                idle = _settled_mb(worker)
                held = _hold(console, FIRST, model, more)
                few = _settled_mb(worker)
                held += _hold(console, MORE, model, more)
                many = _settled_mb(worker)
                say(
                    f"{label}: {(many - few) / MORE:.2f} MB for each further run that waits for {what} "
                    f"(worker: idle {idle:.0f} MB, {FIRST} runs {few:.0f}, {FIRST + MORE} runs {many:.0f})"
                )


def _ask_first(console: Stack) -> None:
    console.call("PUT", "/api/policies/ask-first", {"body": {"approvals": [{"tool": "*"}]}})


def _worker(console: Stack) -> psutil.Process:
    return next(one for one in psutil.Process(console.pid).children() if "worker" in one.cmdline())


def _hold(console: Stack, many: int, model: str, more: dict[str, Any]) -> list[str]:
    """Start them and wait until all stand where they wait."""
    wanted = "waiting" if more else "running"
    runs = [console.start(model, f"hold {number} tokens=5000 pace_ms=200", **more) for number in range(many)]
    end = time.monotonic() + 60
    while not all(_stands(console, run, wanted) for run in runs):
        if time.monotonic() > end:
            raise TimeoutError(f"not all of {many} runs are {wanted}")
        time.sleep(0.2)
    return runs


def _stands(console: Stack, run: str, status: str) -> bool:
    row = console.run(run)
    if row["status"] in ("completed", "failed", "tripped", "exhausted"):
        raise RuntimeError(f"{run} is {row['status']}: {row['exit_reason']}")
    return bool(row["status"] == status and row["turns"] >= 1)


def _settled_mb(process: psutil.Process) -> float:
    """Resident memory once it has stood still for a second."""
    last = process.memory_info().rss
    while True:
        time.sleep(1.0)
        now = process.memory_info().rss
        if abs(now - last) < 2**19:
            return float(now) / 2**20
        last = now
