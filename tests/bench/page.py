"""The page of a long run in a real browser: when something shows, when it can be used, and how it bears being live."""

import json
import os
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.bench.feed import line_of, start_subject, tell
from tests.bench.harness import PYTHON, Spread, say, spread
from tests.bench.stack import Stack, stack
from tests.pieces import chromium, missing

ROUNDS = 3
LONG, SHORT = 10_000, 20
RATE, SECONDS = 50, 8.0
# One more visit looks at the heap for longer: BENCH_PAGE_SECONDS=600 for the time that the limit is meant for.
STRETCH_S = float(os.environ.get("BENCH_PAGE_SECONDS", "60"))
LIMITS = {"first content": 1000.0, "interactive": 1500.0, "longest task": 100.0}
HEAP_LIMIT = 20.0
# A page begins with thirty turns and keeps up to ninety, and its code is compiled as it is used. What it takes is read
# once that is over: after a fifth of the long visit, a minute at most. Turns come one by one and go thirty at a time,
# so each figure is the median of some looks.
SETTLED, SETTLED_S = 0.2, 60.0
LOOKS, LOOK_S = 7, 1.5

# Noted from the first moment on: each task that was longer than those before it, and when the socket was up and the
# verbs could be pressed.
WATCH = """
window.seen = {tasks: [], live: null};
new PerformanceObserver((list) => {
  const tasks = window.seen.tasks;
  for (const {duration} of list.getEntries()) if (duration > (tasks.at(-1) || 0)) tasks.push(duration);
}).observe({type: "longtask", buffered: true});
const ready = setInterval(() => {
  if (!document.querySelector('[data-badge][data-state="live"]')) return;
  window.seen.live = performance.now();
  clearInterval(ready);
}, 5);
"""
CURSOR = "Number(new URL(document.getElementById('run').pilothouse.live.address(), location).searchParams.get('after'))"
SERVER = "(([n]) => n.responseStart - n.requestStart)(performance.getEntriesByType('navigation'))"
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def page() -> None:
    """A run of 10,000 events over one of 20, in turn, in the same browser; each then gets 50 events a second."""
    if (lack := missing("browser")) is not None:
        say(str(lack))
        return
    found: dict[int, list[dict[str, float]]] = {LONG: [], SHORT: []}
    with stack() as console, browser() as shared:
        for _ in range(ROUNDS):
            for events, figures in found.items():
                figures.append(_visit(console, shared, events, SECONDS))
        stretch = _visit(console, shared, LONG, STRETCH_S)
    long, short = found[LONG], found[SHORT]
    say(f"compared with: the page of a run of {SHORT} events (1x), the same browser, in turn")
    for name, limit in LIMITS.items():
        ours, floor = _of(long, name), _of(short, name)
        ratio = spread([a[name] / b[name] for a, b in zip(long, short, strict=True) if b[name] > 0] or [0.0])
        over = f"{ratio} x" if floor.median > 0 else "no ratio"
        say(f"{LONG:,} events, {name}: {ours} ms over {floor} ms, {over}; {within(ours.high, limit, 'ms')}")
    say(f"of the first content the server took {_of(long, 'server')} ms over {_of(short, 'server')} ms")
    say(f"tasks while live at {RATE} events/s for {SECONDS:.0f} s, all shown; 0 ms: no task of 50 ms or more")
    grown = 100 * stretch["heap growth"] / stretch["heap"]
    say(
        f"{LONG:,} events, {STRETCH_S:.0f} s at {RATE} events/s: heap of {stretch['heap']:.2f} MB with a full page "
        f"({stretch['heap at first']:.2f} MB when it opened) grown by {grown:.1f} % until the end; "
        f"{within(grown, HEAP_LIMIT, '%')} in 600 s; longest task {stretch['longest task']:.0f} ms; "
        f"load {os.getloadavg()[0]:.1f}"
    )


def within(worst: float, limit: float, unit: str) -> str:
    """The limit, and whether the worst of the figures keeps it."""
    return f"limit {limit:.0f} {unit}: {'kept' if worst <= limit else 'BROKEN'}"


def _of(figures: list[dict[str, float]], name: str) -> Spread:
    return spread([one[name] for one in figures])


@contextmanager
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--enable-precise-memory-info"])
        yield made
        made.close()


def signed_in(console: Stack, browser: Browser) -> BrowserContext:
    """A window with an empty cache, signed in by a one-time link."""
    command = [PYTHON, "manage.py", "login_link"]
    done = subprocess.run(command, env=dict(console.env), capture_output=True, text=True, check=True)
    link = next(word for word in done.stdout.split() if word.startswith("http"))
    context = browser.new_context(viewport={"width": 1440, "height": 900}, base_url=console.base)
    tab = context.new_page()
    tab.goto(link)
    if tab.locator("form button[type=submit]").count() and "sign" in tab.url:
        tab.locator("form button[type=submit]").first.click()
        tab.wait_for_url(lambda url: "sign" not in url)
    tab.close()
    return context


def _visit(console: Stack, browser: Browser, events: int, seconds: float) -> dict[str, float]:
    """One visit. Times in ms from the request on, tasks and heap (MB) from the visit's live part."""
    source = start_subject("source", console.env, RATE, seconds, events)
    context = signed_in(console, browser)
    try:
        run = line_of(source)
        tab = context.new_page()
        tab.add_init_script(WATCH)
        tab.goto(f"/runs/{run}/")
        until(tab, "window.seen.live", 60)
        first, live, server = tab.evaluate(f"[{PAINT}, window.seen.live, {SERVER}]")
        cdp = context.new_cdp_session(tab)
        opened, heaps = _heap(cdp), [0.0, 0.0]
        tab.evaluate("window.seen.tasks.length = 0")
        tell(source, "go")
        if seconds > SECONDS:
            heaps = _heaps(cdp, tab, seconds)
        last = json.loads(line_of(source))["last_seq"]
        until(tab, f"{CURSOR} >= {last}", 60)
        tasks = tab.evaluate("window.seen.tasks")
        return {
            "first content": first, "interactive": live, "server": server, "longest task": max(tasks, default=0.0),
            "heap": heaps[0], "heap growth": heaps[1] - heaps[0], "heap at first": opened,
        }  # fmt: skip
    finally:
        context.close()
        source.kill()
        source.wait(10)


def until(tab: Page, state: str, seconds: float) -> None:
    """Asked from here: the page's policy lets no string be run inside it."""
    end = time.monotonic() + seconds
    while not tab.evaluate(state):
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds} s: {state}")
        time.sleep(0.05)


def _heaps(cdp: Any, tab: Page, seconds: float) -> list[float]:
    """What the page takes once it has settled, and what at the end of its visit."""
    settled = min(SETTLED * seconds, SETTLED_S)
    found = []
    for wait in (settled, seconds - settled - 2 * LOOKS * LOOK_S):
        tab.wait_for_timeout(1000 * max(0.0, wait))
        looks = []
        for _ in range(LOOKS):
            looks.append(_heap(cdp))
            tab.wait_for_timeout(1000 * LOOK_S)
        found.append(statistics.median(looks))
    return found


def _heap(cdp: Any) -> float:
    """In MB, of what is in use."""
    cdp.send("HeapProfiler.collectGarbage")
    return float(cdp.send("Runtime.getHeapUsage")["usedSize"]) / 2**20
