"""One worker's writer: events of many runs, queued on the loop and committed in groups. ROUNDS.

Also what making safe and encoding costs before that, over `json.dumps` of the same text.
"""

import asyncio
import json
import os
import sys
import time
from datetime import UTC, datetime
from typing import Any

import django
from django.core.management import call_command


async def persisted(tales: list[Any], rounds: int, each: int) -> list[float]:
    """Events per second from the first `emit` to the last commit, the hints of all of them sent."""
    from django.conf import settings

    from control.runs import collector
    from control.runs.bus import bus
    from control.runs.bus_unix import UnixBusServer
    from control.runs.writer import Pen, Writer

    server = None
    if not settings.REDIS_URL:
        server = UnixBusServer(settings.BUS_SOCKET)
        await server.start()
    writer = Writer(bus(), asyncio.get_running_loop(), lambda run, epoch: sys.exit(f"run {run} was fenced at {epoch}"))
    writer.start()
    pens = [Pen(run=t.run.pk, root=t.run.root, epoch=t.run.epoch, last_seq=1) for t in tales]
    collector.leave_out_what_is_loaded()
    rates = []
    for _ in range(rounds + 1):
        batches = [[tuple(tale.batch(6).drafts) for tale in tales] for _ in range(each // (6 * len(tales)))]
        began = time.perf_counter()
        tickets = []
        for group in batches:
            tickets = [writer.write(pen, drafts) for pen, drafts in zip(pens, group, strict=True)]
            await asyncio.sleep(0)
        await asyncio.gather(*(_wait(ticket) for ticket in tickets))
        rates.append(len(batches) * len(tales) * 6 / (time.perf_counter() - began))
    writer.close(5)
    return rates[1:]


async def _wait(ticket: Any) -> int:
    return int(await ticket)


def encoding(rounds: int) -> dict[str, list[float]]:
    """Microseconds per KiB of a tool's result: made safe and drafted; and the floor."""
    from agents.events import draft
    from agents.kinds import CallCompleted
    from agents.policy.redaction import make_safe

    line = "billing/money.py:41: return quantize(total, places=2)  # rounds half even; see invoice 1042\n"
    text = (line * 200)[: 8 * 1024]
    now = datetime.now(UTC)
    found: dict[str, list[float]] = {"ours": [], "dumps": []}
    for _ in range(rounds):
        began = time.process_time()
        for _ in range(100):
            safe = make_safe(text)
            body = CallCompleted(operation="execute_tool", name="read_file", status="ok", result=safe.text)
            draft(body, at=now, turn=1, call="c")
        found["ours"].append((time.process_time() - began) / 800 * 1e6)
        began = time.process_time()
        for _ in range(100):
            json.dumps(text)
        found["dumps"].append((time.process_time() - began) / 800 * 1e6)
    return found


def main(rounds: int) -> None:
    call_command("migrate", verbosity=0)
    from tests.bench.subjects.append import TEXT, Tale

    tales = [Tale(TEXT) for _ in range(100)]
    rates = asyncio.run(persisted(tales, rounds, 12_000))
    sys.stdout.write(json.dumps({"events_per_s": rates, "us_per_kib": encoding(rounds)}) + "\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "control.settings")
    django.setup()
    main(int(sys.argv[1]))
