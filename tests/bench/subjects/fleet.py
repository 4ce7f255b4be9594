"""A fleet at work: one event after the other, each of another run. RUNS RATE SECONDS SHOWN.

Makes RUNS runs and prints `ready`; for each line on its input it emits RATE events a second for SECONDS, in turn over
the newest SHOWN runs and one in five over all others, and prints how many a second it kept up.
"""

import asyncio
import itertools
import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import django

TICK_S = 0.01


# As long as what a run of a real agent holds: the rows of a list must not pay for it.
SPEC = {
    "limits": {
        "max_turns": {"value": "9000", "source": "agent"},
        "max_tokens": {"value": "2000000", "source": "default"},
        "max_cost": {"value": "5", "source": "policy"},
    },
    "prompt": "Change only what was asked for, and run the tests before you say that it works. " * 40,
    "tools": [{"name": f"tool_{number}", "schema": {"type": "object", "text": "x" * 200}} for number in range(12)],
}
ENDS = ("completed", "completed", "completed", "failed", "interrupted", "tripped")


def make(runs: int) -> list[Any]:
    """Running runs that nobody else holds, the newest first; in front of them half as many that are over."""
    from django.db import transaction

    from control.runs.models import Run
    from tests.control.records import make_run

    made = []
    for start in range(0, runs, 250):
        with transaction.atomic():
            several = range(start, min(runs, start + 250))
            made += [make_run(agent="bench", spec=SPEC, labels={"team": "billing"}) for _ in several]
    now = datetime.now(UTC)
    over = runs // 3 if runs > 100 else 0
    for number, end in enumerate(ENDS):
        ended = [run.pk for run in made[number : over : len(ENDS)]]
        for start in range(0, len(ended), 500):
            some = Run.objects.filter(pk__in=ended[start : start + 500])
            some.update(status=end, exit_reason=end, finished_at=now, lease_until=None, cost_usd="0.25")
    Run.objects.filter(agent="bench", finished_at=None).update(lease_until=now + timedelta(hours=1), started_at=now)
    return made[over:][::-1]


def turns(shown: list[Any], others: list[Any]) -> Iterator[Any]:
    """Whose event comes next."""
    near, far = itertools.cycle(shown), itertools.cycle(others or shown)
    for number in itertools.count(1):
        yield next(far if number % 5 == 0 else near)


async def emit(runs: list[Any], heads: dict[str, int], rate: int, seconds: float, shown: int) -> float:
    """`heads` tells where each log stands."""
    from agents.events import draft
    from agents.kinds import TurnStarted
    from control.runs.bus import bus
    from control.runs.held import Sink
    from control.runs.livetext import LiveTexts
    from control.runs.writer import Pen, Writer

    loop = asyncio.get_running_loop()
    writer = Writer(bus(), loop, lambda run, epoch: sys.exit(f"run {run} was fenced at {epoch}"))
    writer.start()
    texts, last = LiveTexts(bus()), None
    sinks: dict[str, Sink] = {}
    order = turns(runs[:shown], runs[shown:])
    began, done = loop.time(), 0
    while (passed := loop.time() - began) < seconds:
        for _ in range(int(rate * passed) - done):
            run = next(order)
            sink = sinks.get(run.pk)
            if sink is None:
                pen = Pen(run=run.pk, root=run.root, epoch=run.epoch, last_seq=heads[run.pk])
                sink = sinks[run.pk] = Sink(writer, pen, texts)
            run.turns += 1
            last = sink.emit(draft(TurnStarted(), at=datetime.now(UTC), turn=run.turns))
            done += 1
        await asyncio.sleep(TICK_S)
    assert last is not None
    await last
    took = loop.time() - began
    await asyncio.to_thread(writer.close, 5)
    return done / took


def main(count: int, rate: int, seconds: float, shown: int) -> None:
    from control.runs.models import Run

    runs = make(count)
    print("ready", flush=True)
    for _ in sys.stdin:
        heads = dict(Run.objects.filter(agent="bench").values_list("id", "last_seq"))
        kept = asyncio.run(emit(runs, heads, rate, seconds, shown))
        print(json.dumps({"events_per_s": kept}), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "control.settings")
    django.setup()
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
