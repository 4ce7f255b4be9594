"""`make bench [ONLY=name]`: every measurement, or one; each prints a ratio, its spread and what it compared with."""

import sys
from collections.abc import Callable

from tests.bench import engine, feed, lane
from tests.bench.harness import say

MEASUREMENTS: dict[str, Callable[[], None]] = {
    "overhead": engine.overhead,
    "growth": engine.growth,
    "many": engine.many,
    "start": lane.start,
    "interrupt": lane.interrupt,
    "live": feed.live,
    "import": engine.importing,
}


def main(only: str | None) -> int:
    if only is not None and only not in MEASUREMENTS:
        say(f"No measurement is called {only!r}. There are: {', '.join(MEASUREMENTS)}.")
        return 2
    for name, measure in MEASUREMENTS.items():
        if only in (None, name):
            say(f"\n== {name}")
            measure()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else None))
