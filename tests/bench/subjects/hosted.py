"""Our worker as it runs: leases, log in the database, hints on the bus. BASE_URL TURNS RUNS; CPU is this process's."""

import asyncio
import itertools
import json
import os
import resource
import sys
import time
from collections.abc import Awaitable
from pathlib import Path

import django
from django.conf import settings
from django.core.management import call_command


def start(base: str, turns: int) -> str:
    from control.runs.starts import StartRequest
    from control.runs.starts import start as start_run

    request = StartRequest(
        agent="bench",
        task=f"Take {turns} turns.",
        model="bench",
        base_url=base,
        limits={"max_turns": 10_000},
    )
    return start_run(request, by="bench").pk


def prepare() -> None:
    """A fresh database with an agent that has the one tool the bare loop has."""
    from django.utils import timezone

    from control.fleet.models import Agent

    call_command("migrate", verbosity=0)
    Agent.objects.filter(name="bench").delete()
    Agent.objects.create(
        name="bench",
        prompt="You are an agent.",
        tools=["read_file", "write_file"],
        created_at=timezone.now(),
        created_by="bench",
    )


def memory_mb() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def main(base: str, turns: int, runs: int) -> None:
    from agents.events import Draft
    from agents.ids import new_id
    from control.runs import collector, roster
    from control.runs.bus import bus
    from control.runs.bus_unix import UnixBusServer
    from control.runs.held import Sink
    from control.runs.host import Host
    from control.runs.models import Event

    worker = new_id()
    await asyncio.to_thread(roster.join, "worker", worker=worker, capacity=500)
    server = None
    if not settings.REDIS_URL:
        server = UnixBusServer(settings.BUS_SOCKET)
        await server.start()
    host = Host(worker, bus(), 500)
    ready = asyncio.Event()
    serving = asyncio.create_task(host.serve(ready))
    await ready.wait()

    async def one(run: str) -> None:
        held = await host.take(run)
        assert held is not None
        ended = await host.drive(held)
        assert ended.status == "completed", ended

    await one(await asyncio.to_thread(start, base, 2))
    collector.leave_out_what_is_loaded()
    ids = [await asyncio.to_thread(start, base, turns) for _ in range(runs)]
    idle = memory_mb()
    peak = idle

    async def watch() -> None:
        nonlocal peak
        while True:
            peak = max(peak, memory_mb())
            await asyncio.sleep(0.2)

    watching = asyncio.create_task(watch())
    marks = [time.process_time()]
    if runs == 1:
        held = await host.take(ids[0])
        assert held is not None
        emit = Sink.emit

        def emit_and_mark(self: Sink, *drafts: Draft) -> Awaitable[int]:
            if any(item.kind == "turn.completed" for item in drafts):
                marks.append(time.process_time())
            return emit(self, *drafts)

        Sink.emit = emit_and_mark  # type: ignore[method-assign]
        began, cpu = time.monotonic(), time.process_time()
        await host.drive(held)
    else:
        began, cpu = time.monotonic(), time.process_time()
        await asyncio.gather(*(one(run) for run in ids))
    wall, used = time.monotonic() - began, time.process_time() - cpu
    watching.cancel()
    taken = await asyncio.to_thread(lambda: Event.objects.filter(run_id__in=ids, kind="turn.completed").count())
    await host.drain()
    await serving
    per_turn = [1000 * (b - a) for a, b in itertools.pairwise(marks)]
    print(json.dumps({
        "turns": taken, "cpu_ms_per_turn": 1000 * used / taken, "turns_per_s": taken / wall, "per_turn_ms": per_turn,
        "idle_mb": idle, "peak_mb": peak,
    }))  # fmt: skip
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "control.settings")
    django.setup()
    prepare()
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
