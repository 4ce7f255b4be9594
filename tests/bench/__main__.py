"""`make bench [ONLY=name]`: every measurement, or one; each prints a ratio, its spread and what it compared with."""

import sys
import time
from collections.abc import Callable

from tests.bench import append, backtest, engine, feed, fleet, judging, killing, lane, page, waiting
from tests.bench.harness import say

# All of them together: when this is over, none is begun any more.
LONGEST_S = 15 * 60

MEASUREMENTS: dict[str, Callable[[], None]] = {
    "overhead": engine.overhead,
    "growth": engine.growth,
    "many": engine.many,
    "waiting": waiting.waiting,
    "append": append.append,
    "start": lane.start,
    "interrupt": lane.interrupt,
    "kill": killing.kill,
    "live": feed.live,
    "page": page.page,
    "fleet": fleet.fleet,
    "judge": judging.judge,
    "import": engine.importing,
    "backtest": backtest.backtest,
}


def main(only: str | None) -> int:
    """1 if a measurement failed or there was no time left for it; what could be measured is told all the same."""
    if only is not None and only not in MEASUREMENTS:
        say(f"No measurement is called {only!r}. There are: {', '.join(MEASUREMENTS)}.")
        return 2
    began, failed = time.monotonic(), []
    for name, measure in MEASUREMENTS.items():
        if only not in (None, name):
            continue
        at = time.monotonic()
        if only is None and at - began > LONGEST_S:
            failed.append(name)
            continue
        say(f"\n== {name}")
        try:
            measure()
        except (Exception, SystemExit) as error:
            failed.append(name)
            say(f"{name} failed: {error!r}")
        say(f"({time.monotonic() - at:.0f} s)")
    if failed:
        say(f"\nNot measured: {', '.join(failed)}.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else None))
