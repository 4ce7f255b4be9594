"""How long work takes on a quiet machine of the size that the product is measured on: its own time, against a piece of
plain work that is done beside it. Neighbours on the same cores slow down both alike."""

import gc
import json
import time
from collections.abc import Callable

# What the plain work takes on two quiet cores.
UNIT_S = 0.13
ROUNDS = 3


def best_of(work: Callable[[], object], *, below: float) -> tuple[float, float]:
    """(seconds on a quiet machine, seconds by the clock) of the best round; no more rounds than are needed."""
    best = (float("inf"), float("inf"))
    for _ in range(ROUNDS):
        before = _unit()
        began, at = time.process_time(), time.perf_counter()
        work()
        took, clock = time.process_time() - began, time.perf_counter() - at
        slower = max(1.0, min(before, _unit()) / UNIT_S)
        best = min(best, (took / slower, clock))
        if best[0] < below:
            break
    return best


def _unit() -> float:
    """Without the collector of garbage, which would walk through whatever else the process holds."""
    gc.disable()
    try:
        began = time.process_time()
        for _ in range(3):
            rows = [{"n": at, "text": f"line {at} of a log", "tags": ["a", "b", str(at % 7)]} for at in range(12_000)]
            assert sum(len(row["text"].upper().split()) for row in json.loads(json.dumps(rows))) == 60_000
        return time.process_time() - began
    finally:
        gc.enable()
