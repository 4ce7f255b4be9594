"""A worker's end of the feed: one run's events through the writer at a steady rate. RATE SECONDS [BEFORE].

Writes BEFORE events, prints the run's id, waits for a line on its input, then emits; prints the last `seq` and how many
a second it kept up.
"""

import asyncio
import itertools
import json
import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import django

TICK_S = 0.01


def story() -> Iterator[Any]:
    """The drafts of one run's turns, without end, each made when it is taken."""
    from tests.bench.subjects.append import TEXT, turn_of

    return itertools.chain.from_iterable(turn_of(n, TEXT[:160]) for n in itertools.count(1))


async def emit(run: Any, rate: int, seconds: float, bodies: Iterator[Any] | None = None) -> tuple[int, float]:
    """Each tick's events are drafted when they are due; `at` is the moment of the call."""
    from control.runs.bus import bus
    from control.runs.held import Sink
    from control.runs.livetext import LiveTexts
    from control.runs.writer import Pen, Writer

    bodies = bodies or story()
    loop = asyncio.get_running_loop()
    writer = Writer(bus(), loop, lambda run, epoch: sys.exit(f"run {run} was fenced at {epoch}"))
    writer.start()
    sink = Sink(writer, Pen(run=run.pk, root=run.root, epoch=run.epoch, last_seq=run.last_seq), LiveTexts(bus()))
    began, done, last = loop.time(), 0, None
    while (passed := loop.time() - began) < seconds:
        due = int(rate * passed) - done
        if due > 0:
            last = sink.emit(*itertools.islice(bodies, due))
            done += due
        await asyncio.sleep(TICK_S)
    assert last is not None
    seq = await last
    took = loop.time() - began
    await asyncio.to_thread(writer.close, 5)
    return seq, done / took


def write_before(run: Any, events: int, bodies: Iterator[Any]) -> None:
    from control.runs import log

    for start in range(0, events, 500):
        drafts = list(itertools.islice(bodies, min(500, events - start)))
        log.append([log.Batch(run=run.pk, root=run.root, epoch=run.epoch, drafts=drafts)])
    run.refresh_from_db()


def main(rate: int, seconds: float, before: int) -> None:
    from control.runs.bus import bus
    from control.runs.models import Run
    from tests.control.records import make_run

    run = make_run(agent="bench")
    Run.objects.filter(pk=run.pk).update(lease_until=datetime.now(UTC) + timedelta(hours=1))
    bodies = story()
    write_before(run, before, bodies)
    print(run.pk, flush=True)
    sys.stdin.readline()
    began = time.process_time()
    seq, kept = asyncio.run(emit(run, rate, seconds, bodies))
    bus().close(2)
    print(json.dumps({"last_seq": seq, "events_per_s": kept, "cpu_s": time.process_time() - began}), flush=True)
    # The log is left as it is; the run is no longer held, so that nothing waits for it.
    Run.objects.filter(pk=run.pk).update(status="completed", lease_until=None, finished_at=datetime.now(UTC))
    os._exit(0)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "control.settings")
    django.setup()
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
