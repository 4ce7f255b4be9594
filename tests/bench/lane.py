"""The control lane from outside: a start to its first model call, an interrupt to the last thing gone."""

import time
from concurrent.futures import ThreadPoolExecutor

from tests.bench.harness import percentile, say
from tests.bench.stack import Stack, marked, moment, stack

MODES = ((False, "embedded"), (True, "PostgreSQL and Redis"))


def _ms(values: list[float]) -> str:
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
            say(f"{label}: interrupt to socket closed {_ms([_socket(console, n) for n in range(40)])}")
            gone, stopping = _processes(console)
            say(f"{label}: interrupt of 8 busy shells to the last process gone {max(gone):.3f} s (slowest of 8)")
            say(f"{label}: interrupt to run.stopping recorded {_ms(stopping)}")


def _socket(console: Stack, n: int) -> float:
    marker = f"i{n}"
    run = console.start("slow", f"Tell a long story. marker={marker}")
    while not (seen := console.requests(marker)) or seen[0]["first_byte"] is None:
        time.sleep(0.01)
    time.sleep(0.05)
    pressed = time.time()
    console.call("POST", f"/api/runs/{run}/interrupt", {"reason": "bench"})
    console.until(run, "interrupted")
    return moment(console.requests(marker)[0]["closed_at"]) - pressed


def _processes(console: Stack) -> tuple[list[float], list[float]]:
    runs = [console.start("family-child", "Sub-task A: keep two loops of naps going. seconds=120") for _ in range(8)]
    while not all(len(marked(run)) >= 3 for run in runs):
        time.sleep(0.1)
    with ThreadPoolExecutor(8) as pool:
        return tuple(map(list, zip(*pool.map(lambda run: _one_shell(console, run), runs), strict=True)))  # type: ignore[return-value]


def _one_shell(console: Stack, run: str) -> tuple[float, float]:
    pressed = time.time()
    console.call("POST", f"/api/runs/{run}/interrupt", {"reason": "bench"})
    row = console.until(run, "interrupted")
    gone = time.time() - pressed
    left = marked(run)
    while left:
        time.sleep(0.01)
        left = marked(run)
        gone = time.time() - pressed
    if not row["stopped"]["verified"]:
        raise SystemExit(f"run {run} was not verified: {row['stopped']}")
    events = console.call("GET", f"/api/runs/{run}/events?after=0&limit=1000")["events"]
    stopping = next(event for event in events if event["kind"] == "run.stopping")
    return gone, moment(stopping["ts"]) - pressed
