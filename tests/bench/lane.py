"""The control lane from outside: a start to its first model call, an interrupt to the last thing gone."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.bench.harness import percentile, say
from tests.bench.stack import Stack, marked, moment, stack
from tests.bench.trees import interrupt_trees

MODES = ((False, "embedded"), (True, "PostgreSQL and Redis"))


def _ms(values: Sequence[float]) -> str:
    ordered = [1000 * value for value in values]
    return f"p50 {percentile(ordered, 0.5):.1f} ms, p99 {percentile(ordered, 0.99):.1f} ms, n={len(ordered)}"


def start() -> None:
    """From POST /api/runs sent to the model server's first request."""
    for services, label in MODES:
        with stack(services=services) as console:
            taken = []
            for n in range(20):
                asked = time.time()
                run = console.start("chat", f"Say hello. marker=s{n}")
                console.until(run, "completed")
                taken.append(moment(console.requests(f"s{n}")[0]["started"]) - asked)
            say(f"{label}: start request to first model request {_ms(taken[1:])}")


def interrupt() -> None:
    """From the interrupt's HTTP request sent to the provider's socket closed; and to the last tool process gone."""
    for services, label in MODES:
        with stack(services=services) as console:
            closed, stopping = zip(*(_socket(console, n) for n in range(40)), strict=True)
            say(f"{label}: interrupt to socket closed {_ms(closed)}")
            say(f"{label}: interrupt to run.stopping recorded {_ms(stopping)}")
            gone = max(_processes(console))
            say(f"{label}: interrupt of 8 busy shells to the last process gone {gone:.3f} s (slowest)")
    interrupt_trees()


def _socket(console: Stack, n: int) -> tuple[float, float]:
    marker = f"i{n}"
    run = console.start("slow", f"Tell a long story. marker={marker}")
    while not (seen := console.requests(marker)) or seen[0]["first_byte"] is None:
        time.sleep(0.01)
    time.sleep(0.05)
    pressed = time.time()
    console.call("POST", f"/api/runs/{run}/interrupt", {"reason": "bench"})
    console.until(run, "interrupted")
    events = console.call("GET", f"/api/runs/{run}/events?after=0&limit=1000")["events"]
    stopping = next(event for event in events if event["kind"] == "run.stopping")
    return moment(console.requests(marker)[0]["closed_at"]) - pressed, moment(stopping["ts"]) - pressed


def _processes(console: Stack) -> list[float]:
    runs = [console.start("family-child", "Sub-task A: keep two loops of naps going. seconds=120") for _ in range(8)]
    while not all(len(marked(run)) >= 3 for run in runs):
        time.sleep(0.1)
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda run: _one_shell(console, run), runs))


def _one_shell(console: Stack, run: str) -> float:
    pressed = time.time()
    console.call("POST", f"/api/runs/{run}/interrupt", {"reason": "bench"})
    row = console.until(run, "interrupted")
    gone = time.time() - pressed
    while marked(run):
        time.sleep(0.01)
        gone = time.time() - pressed
    if not row["stopped"]["verified"]:
        raise SystemExit(f"run {run} was not verified: {row['stopped']}")
    return gone
