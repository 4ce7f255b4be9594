"""The kill switch under load: hundreds of streaming runs, one request, until the log says of each that it stopped."""

import http.cookiejar
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tests.bench.harness import PYTHON, percentile, say
from tests.bench.stack import Stack, moment, stack

RUNS, WORKERS, TRIALS = 500, 4, 2
LOOK_S = 0.5
# How often somebody who waits reloads the page.
RELOAD_S = 0.4
STREAM = "Tell a long story. tokens=900 pace_ms=1000 marker={marker}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """Seconds since the request was sent: its answer, the last final event, the last socket, the last seen by asking.
    `pages` are those that the fleet page took meanwhile."""

    answered: float
    stopped: float
    sockets: float
    seen: float
    first_stop: float
    verified: int
    pages: list[float] = field(default_factory=list)


def kill() -> None:
    """500 runs that stream a chunk a second, over 4 workers on PostgreSQL and Redis, killed by one request."""
    with stack(services=True, workers=WORKERS) as console:
        for number in range(TRIALS):
            steady, killed = trial(console, RUNS, f"k{number}")
            say(
                f"{RUNS} runs over {WORKERS} workers: answered {killed.answered:.2f} s, first stopped "
                f"{killed.first_stop:.2f} s, sockets closed {killed.sockets:.2f} s, all stopped {killed.stopped:.2f} s "
                f"(seen by asking {killed.seen:.2f} s), {killed.verified} verified"
            )
            say(f"  fleet page meanwhile {_pages(killed.pages)}; before {_pages(steady)}")


def _pages(taken: list[float]) -> str:
    return f"p95 {percentile(taken, 0.95):.2f} s, slowest {max(taken):.2f} s, n={len(taken)}"


def trial(console: Stack, runs: int, marker: str, *, steady_s: float = 5.0) -> tuple[list[float], Killed]:
    """Start so many, let them stream, kill them. The fleet page's seconds before, and what the kill came to."""
    begin(console, runs, marker)
    with watching(console) as steady:
        time.sleep(steady_s)
    with watching(console) as pages:
        killed = pull(console, runs, marker)
    return list(steady), replace(killed, pages=list(pages))


def begin(console: Stack, runs: int, marker: str) -> None:
    """Start them and wait until each one has its model's first words."""
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: console.start("slow", STREAM.format(marker=marker)), range(runs)))
    end = time.monotonic() + 240
    while sum(1 for one in console.requests(marker) if one["first_byte"]) < runs:
        if time.monotonic() > end:
            raise TimeoutError(f"not all of {runs} runs began to stream")
        time.sleep(0.3)


def pull(console: Stack, runs: int, marker: str) -> Killed:
    """The kill itself, timed from before its request."""
    pulled = time.time()
    started = console.call("POST", "/api/interrupt", {"filter": {"status": "running"}, "reason": "bench"})
    answered = time.time() - pulled
    if started["eligible"] != runs:
        raise SystemExit(f"{started['eligible']} of {runs} runs were there to stop")
    bulk = started["bulk"]
    while (told := console.call("GET", f"/api/bulk/{bulk}"))["counts"]["stopped"] < runs:
        if time.time() - pulled > 60:
            raise SystemExit(f"not stopped after a minute: {told['counts']}")
        time.sleep(LOOK_S)
    seen = time.time() - pulled
    ends = sorted(moment(line["ended_at"]) for line in _lines(console, bulk))
    return Killed(
        answered=answered,
        stopped=ends[-1] - pulled,
        first_stop=ends[0] - pulled,
        sockets=max(moment(one["closed_at"]) for one in console.requests(marker)) - pulled,
        seen=seen,
        verified=told["counts"]["verified"],
    )


def _lines(console: Stack, bulk: str) -> Iterator[dict[str, str]]:
    after = ""
    while after is not None:
        page = console.call("GET", f"/api/bulk/{bulk}/runs?after={after}")
        yield from page["runs"]
        after = page["next"]


@contextmanager
def watching(console: Stack) -> Iterator[list[float]]:
    """Somebody who reloads the fleet page again and again; the seconds that each one took."""
    browser = _signed_in(console)
    taken: list[float] = []
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            began = time.monotonic()
            with browser.open(console.base + "/", timeout=60) as page:
                page.read()
            taken.append(time.monotonic() - began)
            over.wait(RELOAD_S)

    looker = threading.Thread(target=look, daemon=True)
    looker.start()
    try:
        yield taken
    finally:
        over.set()
        looker.join(60)


def _signed_in(console: Stack) -> urllib.request.OpenerDirector:
    jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    browser = urllib.request.build_opener(jar)
    made = [PYTHON, "manage.py", "login_link"]
    link = subprocess.run(made, env=dict(console.env), capture_output=True, text=True, check=True).stdout.strip()
    browser.open(link, timeout=30).read()
    return browser
