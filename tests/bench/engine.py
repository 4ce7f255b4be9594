"""The loop against a bare httpx loop that makes the same calls: CPU per turn, its growth, many runs at once."""

import statistics
import subprocess
import time
from typing import Any

from tests.bench.harness import PYTHON, Spread, model_server, say, spread, subject

ROUNDS = 5


def _rounds(turns: int, runs: int, rounds: int) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {"bare": [], "loop": [], "hosted": []}
    with model_server() as base:
        for _ in range(rounds):
            for name, figures in found.items():
                figures.append(subject(name, base, turns, runs))
    return found


def _ratio(ours: list[dict[str, Any]], floor: list[dict[str, Any]], figure: str) -> Spread:
    return spread([one[figure] / bare[figure] for one, bare in zip(ours, floor, strict=True)])


def overhead() -> None:
    """Worker CPU per turn, 50 turns of one run, over the bare loop in the same round."""
    found = _rounds(50, 1, ROUNDS)
    bare = spread([one["cpu_ms_per_turn"] for one in found["bare"]])
    say(f"bare httpx loop: {bare} ms of CPU per turn (1x)")
    say(f"our loop, no log: {_ratio(found['loop'], found['bare'], 'cpu_ms_per_turn')} x")
    say(f"our worker, events persisted and published: {_ratio(found['hosted'], found['bare'], 'cpu_ms_per_turn')} x")


def growth() -> None:
    """CPU of the turns around 195 over those around 10, one run of 200 turns."""
    with model_server() as base:
        for name, label in (("bare", "bare httpx loop"), ("loop", "our loop, no log"), ("hosted", "our worker")):
            ratios = []
            for _ in range(3):
                marks = subject(name, base, 205, 1)["per_turn_ms"]
                ratios.append(statistics.median(marks[185:203]) / statistics.median(marks[5:20]))
            say(f"{label}: turn 195 over turn 10 {spread(ratios)} x")


def many() -> None:
    """50 runs of 50 turns at once in one process: turns per second over the bare loop's, and memory."""
    found = _rounds(50, 50, 3)
    bare = spread([one["turns_per_s"] for one in found["bare"]])
    say(f"bare httpx loop: {bare} turns/s (1x)")
    say(f"our loop, no log: {_ratio(found['loop'], found['bare'], 'turns_per_s')} x")
    say(f"our worker: {_ratio(found['hosted'], found['bare'], 'turns_per_s')} x")
    above = spread([one["peak_mb"] - one["idle_mb"] for one in found["hosted"]])
    say(f"our worker: {above} MB above the idle worker, {above.median / 50:.2f} MB per run")


def importing() -> None:
    """Wall time of `import agents` and of the command line's module in a fresh interpreter, over an empty one."""
    for module in ("agents", "agents.__main__"):
        taken = []
        for _ in range(7):
            began = time.monotonic()
            subprocess.run([PYTHON, "-c", "pass"], check=True)
            empty = time.monotonic() - began
            began = time.monotonic()
            subprocess.run([PYTHON, "-c", f"import {module}"], check=True)
            taken.append(time.monotonic() - began - empty)
        say(f"import {module}: {spread(taken)} s")
