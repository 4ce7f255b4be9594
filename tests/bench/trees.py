"""A tree of runs over several workers, stopped by one request: to the last socket closed, to the last process gone."""

import os
import select
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psutil

from tests import children, pieces
from tests.bench.harness import free_port, percentile, say
from tests.bench.stack import Stack, moment, stack

TRIALS, WORKERS, PARTS = 30, 3, 8
# Of `tree`'s eight parts: processes with the mark at the least, once they are up.
_LEAST = {"shell": 4, "python": 1, "speech": 0}
_SPEAKERS = 1 + 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """Seconds since just before the request: the answer to it, the last socket closed, the last process gone, and the
    last run's final event. `workers` held the tree."""

    answered: float
    sockets: float
    processes: float
    ended: float
    workers: int
    verified: int


def interrupt_trees() -> None:
    """1 + 8 runs over 3 workers: shells with grandchildren, blocking Python, streams; with the bus and without it."""
    with own_redis() as bus, stack(services=True, workers=WORKERS, redis=bus.url) as console:
        _tell("Redis", [trial(console, f"t{n}") for n in range(TRIALS)])
        _tell("Redis, shells trap TERM", [trial(console, f"d{n}", trap=True) for n in range(5)])
        _tell("bus down", [trial(console, f"b{n}", before=bus.stop, after=bus.start) for n in range(TRIALS)])


def _tell(label: str, taken: Sequence[Stopped]) -> None:
    def worst(values: Sequence[float]) -> str:
        return f"max {1000 * max(values):.0f} ms (p50 {1000 * percentile(list(values), 0.5):.0f})"

    say(
        f"{label}, {len(taken)} trees of {1 + PARTS} over {min(one.workers for one in taken)} to "
        f"{max(one.workers for one in taken)} workers: answered {worst([one.answered for one in taken])}, "
        f"last socket closed {worst([one.sockets for one in taken])}, "
        f"last process gone {worst([one.processes for one in taken])}, "
        f"last end recorded {worst([one.ended for one in taken])}; "
        f"verified {sum(one.verified for one in taken)} of {len(taken) * (1 + PARTS)}"
    )


def trial(
    console: Stack, marker: str, *, trap: bool = False, before: Any = lambda: None, after: Any = lambda: None
) -> Stopped:
    """One tree from its start to its end."""
    root = console.start("tree", f"Let them work. trap={int(trap)} marker={marker}", policy="off")
    runs = _grown(console, root, marker)
    before()
    time.sleep(0.1)
    with watching(runs) as gone:
        pressed = time.time()
        console.call("POST", f"/api/runs/{root}/interrupt", {"reason": "bench"})
        answered = time.time() - pressed
        rows = [console.until(run, "interrupted") for run in runs]
    requests = console.requests(marker)
    after()
    return Stopped(
        answered=answered,
        sockets=max(moment(one["closed_at"]) for one in requests) - pressed,
        processes=max(gone) - pressed,
        ended=max(moment(row["finished_at"]) for row in rows) - pressed,
        workers=len({row["worker"] for row in rows}),
        verified=sum(bool(row["stopped"]["verified"]) for row in rows),
    )


def _grown(console: Stack, root: str, marker: str, within_s: float = 60.0) -> list[str]:
    """Wait until everybody of the tree is at its work; the ids."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        tree = console.run(root)["tree"]
        speaking = [one for one in console.requests(marker) if one["first_byte"] and not one["closed_at"]]
        runs = [row["id"] for row in tree]
        held = _marked(set(runs)).values()
        if len(runs) == 1 + PARTS and len(speaking) == _SPEAKERS and sum(map(len, held)) >= 3 * 4 + 2:
            return runs
        time.sleep(0.2)
    raise TimeoutError(f"the tree of {root} did not grow: {tree}")


def _marked(runs: set[str]) -> dict[str, list[int]]:
    """Living processes by the run whose mark they carry."""
    found: dict[str, list[int]] = {}
    for process in psutil.process_iter():
        try:
            run = process.environ().get("PILOTHOUSE_RUN", "")
            if run in runs and process.status() != psutil.STATUS_ZOMBIE:
                found.setdefault(run, []).append(process.pid)
        except psutil.Error:
            continue
    return found


@contextmanager
def watching(runs: Sequence[str]) -> Iterator[list[float]]:
    """The times at which these runs' processes went, told by the kernel; what is born meanwhile is looked for after."""
    gone: list[float] = []
    watched = select.poll()
    handles = set()
    for pid in [pid for pids in _marked(set(runs)).values() for pid in pids]:
        with suppress(ProcessLookupError):  # a nap that is over
            handles.add(os.pidfd_open(pid))
    for handle in handles:
        watched.register(handle, select.POLLIN)

    def wait() -> None:
        left = set(handles)
        while left:
            for handle, _ in watched.poll(10_000) or [(0, 0)]:
                if handle == 0:
                    return
                gone.append(time.time())
                watched.unregister(handle)
                left.discard(handle)

    waiter = threading.Thread(target=wait)
    waiter.start()
    try:
        yield gone
    finally:
        waiter.join()
        while _marked(set(runs)):
            gone.append(time.time())
        for handle in handles:
            os.close(handle)


class OwnRedis:
    """A Redis of this measurement alone, which it may stop."""

    def __init__(self, root: str) -> None:
        self._port = free_port()
        self._root = root
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"redis://127.0.0.1:{self._port}/0"
        self.start()

    def start(self) -> None:
        program = pieces.program("redis-server")
        if program is None:
            raise SystemExit("This needs redis-server: install the package of that name.")
        command = [program, "--port", str(self._port), "--bind", "127.0.0.1", "--save", "", "--dir", self._root]
        self._process = children.start(command, stdout=subprocess.DEVNULL)
        end = time.monotonic() + 10
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", self._port), 1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise SystemExit("Redis did not start")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(5)


@contextmanager
def own_redis() -> Iterator[OwnRedis]:
    with tempfile.TemporaryDirectory(prefix="pilothouse-bus-") as root:
        bus = OwnRedis(root)
        try:
            yield bus
        finally:
            bus.stop()
