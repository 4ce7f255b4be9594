"""The list of many runs in a real browser: how long its page takes the server, and how it bears being live."""

import json
import os
import time
from collections.abc import Callable
from typing import Any

import httpx
from playwright.sync_api import Browser, BrowserContext, Page

from tests.bench.feed import line_of, start_subject, tell
from tests.bench.harness import percentile, say, spread
from tests.bench.page import SERVER, browser, signed_in, until, within
from tests.bench.stack import Stack, stack
from tests.pieces import missing

MANY, FEW = 3_000, 60
ROUNDS = 3
LOADS = 9
# One event in five is of a run that the page does not show, so that those of the page get RATE.
RATE, SHOWN, SECONDS = 200, 60, 6.0
LIMITS = {"server time": 300.0, "server time while live": 300.0, "longest frame": 50.0}
# The same page opened in a new tab of the browser, which draws it and all its other tabs on the server's own cores.
TABS = ("first byte in a new tab", "first byte in a new tab while live")
PARTS = ("TaskDuration", "ScriptDuration", "LayoutDuration", "RecalcStyleDuration")

# How long each frame took since the one before, long tasks, and each patched row with how old its event was by then:
# its idle column names the event's moment, and the clock is the same.
WATCH = """
window.seen = {frames: [], tasks: [], ages: []};
let before = null;
const frame = (now) => {
  if (before !== null) window.seen.frames.push(now - before);
  before = now;
  requestAnimationFrame(frame);
};
requestAnimationFrame(frame);
new PerformanceObserver((list) => {
  for (const task of list.getEntries()) window.seen.tasks.push(task.duration);
}).observe({type: "longtask"});
const moved = new MutationObserver((changes) => {
  const now = Date.now();
  for (const {target} of changes)
    if (target.closest(".c-idle")) window.seen.ages.push(now - Date.parse(target.dateTime));
});
addEventListener("DOMContentLoaded", () =>
  moved.observe(document.getElementById("rows"), {subtree: true, attributeFilter: ["datetime"]}));
"""


def fleet() -> None:
    """3,000 runs over 60, on one console each, in the same browser; the newest 60 get 200 events a second."""
    if (lack := missing("browser")) is not None:
        say(str(lack))
        return
    with browser() as shared:
        few, many = [_trial(shared, runs) for runs in (FEW, MANY)]
    say(f"compared with: the list of {FEW} runs (1x), the same browser; load {os.getloadavg()[0]:.1f}")
    for name in (*LIMITS, *TABS):
        ours, floor = spread(many[name]), spread(few[name])
        kept = f"; {within(ours.high, LIMITS[name], 'ms')}" if name in LIMITS else ""
        say(f"{MANY:,} runs, {name}: {ours} ms over {floor} ms, {ours.median / floor.median:.2f} x{kept}")
    for runs, found in ((MANY, many), (FEW, few)):
        _say_live(f"{runs:,} runs", found)
    say(f"server time: request to first byte, {LOADS} loads each; live: with {RATE} events/s, while one tab shows them")
    say("a row counts as patched when its idle column tells of a newer event; all rows of the page count, seen or not")


def _say_live(label: str, found: dict[str, list[float]]) -> None:
    ages = found["ages"]
    say(
        f"{label}: {spread(found['rows'])} rows patched a second; a row tells of an event after "
        f"{percentile(ages, 0.5):.0f} ms, p99 {percentile(ages, 0.99):.0f} ms"
    )
    for name in ("live", "quiet"):
        frames, tasks = found[f"{name} frames"], found[f"{name} tasks"]
        slow = sum(took > LIMITS["longest frame"] for took in frames)
        longest = max(tasks, default=0.0)
        say(
            f"{label}, {name}: {slow} of {len(frames)} frames over {LIMITS['longest frame']:.0f} ms, longest "
            f"{max(frames):.0f} ms; {len(tasks)} tasks of 50 ms or more, longest {longest:.0f} ms"
        )
    shares = ", ".join(f"{part.removesuffix('Duration')} {spread(found[part]).median:.2f}" for part in PARTS)
    say(f"{label}: of the browser's main thread, in processor time per patched row, ms: {shares}")


def _trial(shared: Browser, runs: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in (*LIMITS, *TABS, *PARTS, "rows", "ages")}
    found |= {f"{when} {what}": [] for when in ("live", "quiet") for what in ("frames", "tasks")}
    with stack() as console:
        source = start_subject("fleet", console.env, runs, RATE * 5 // 4, SECONDS, SHOWN)
        assert line_of(source) == "ready"
        context = signed_in(console, shared)
        try:
            asked = _client(console, context)
            found["server time"] += _loads(asked)
            found[TABS[0]] += _loads(lambda: _tab(context))
            for _ in range(ROUNDS):
                _watch(context, source, found)
            _open(context)
            for name, load in (("server time while live", asked), (TABS[1], lambda: _tab(context))):
                tell(source, "go")
                found[name] += _loads(load)
                line_of(source)
        finally:
            context.close()
            source.kill()
            source.wait(10)
    return found


def _loads(load: Callable[[], float]) -> list[float]:
    """Spread over the seconds for which the source is told to go on."""
    found = []
    for _ in range(LOADS):
        found.append(load())
        time.sleep(SECONDS / LOADS / 2)
    return found


def _client(console: Stack, context: BrowserContext) -> Callable[[], float]:
    """A load of the page as the signed-in person, without a browser: ms to the first byte, the connection kept."""
    cookies = {one["name"]: one["value"] for one in context.cookies()}
    client = httpx.Client(base_url=console.base, cookies=cookies, timeout=30)

    def load() -> float:
        began = time.perf_counter()
        with client.stream("GET", "/") as answer:
            took = 1000 * (time.perf_counter() - began)
            assert answer.status_code == 200, answer.status_code
            answer.read()
        return took

    return load


def _tab(context: BrowserContext) -> float:
    tab = context.new_page()
    tab.goto("/")
    took = float(tab.evaluate(SERVER))
    tab.close()
    return took


def _open(context: BrowserContext) -> Page:
    """A tab that follows the fleet live."""
    tab = context.new_page()
    tab.add_init_script(WATCH)
    tab.goto("/")
    until(tab, """!!document.querySelector('[data-badge][data-state="live"]')""", 20)
    return tab


def _watch(context: BrowserContext, source: Any, found: dict[str, list[float]]) -> None:
    tab = _open(context)
    tab.wait_for_timeout(1000)
    _take(tab)
    tab.wait_for_timeout(SECONDS * 1000)
    quiet = _take(tab)
    cdp = context.new_cdp_session(tab)
    cdp.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = _metrics(cdp)
    tell(source, "go")
    json.loads(line_of(source))
    live, after = _take(tab), _metrics(cdp)
    for name, seen in (("quiet", quiet), ("live", live)):
        found[f"{name} frames"] += seen["frames"]
        found[f"{name} tasks"] += seen["tasks"]
    found["longest frame"].append(max(live["frames"]))
    found["ages"] += live["ages"]
    found["rows"].append(len(live["ages"]) / SECONDS)
    for part in PARTS:
        found[part].append(1000 * (after[part] - before[part]) / max(1, len(live["ages"])))
    tab.close()


def _take(tab: Page) -> dict[str, list[float]]:
    """What was seen since the last look."""
    script = "(() => { const seen = window.seen; window.seen = {frames: [], tasks: [], ages: []}; return seen; })()"
    taken: dict[str, list[float]] = tab.evaluate(script)
    return taken


def _metrics(cdp: Any) -> dict[str, float]:
    return {one["name"]: one["value"] for one in cdp.send("Performance.getMetrics")["metrics"]}
