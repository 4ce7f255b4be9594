"""Our loop without a log: the same turns with events kept in memory. BASE_URL TURNS RUNS."""

import asyncio
import itertools
import json
import os
import resource
import sys
import time
from collections.abc import Mapping
from typing import Any

from agents.engine.local import HeldLease, MemoryInbox, NoSpawner, OneModel, SystemClock
from agents.engine.runner import Ports, Running
from agents.events import Draft
from agents.ports import ToolContext, ToolOutput, ToolSpec
from agents.providers import connect
from agents.spec import ConcurrencyClass, ModelSpec
from agents.testing import MemoryLive, MemoryLog, memory_spec
from agents.tools.registry import Registry


class Listing:
    """The same trivial tool as the bare loop's."""

    spec = ToolSpec(
        name="list_files",
        description="",
        parameters={"type": "object", "properties": {}},
        concurrency=ConcurrencyClass.SAFE,
    )

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        return ToolOutput(text="\n".join(os.listdir(".")))


class Bytes(MemoryLog):
    """Keeps drafts only: no decoding, no waiting."""

    def emit(self, *drafts: Draft) -> "asyncio.Future[int]":
        marks.extend(time.process_time() for item in drafts if item.kind == "turn.completed")
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        done.set_result(1)
        return done


marks: list[float] = []


async def one(base: str, turns: int) -> int:
    spec = memory_spec(f"Take {turns} turns.", model=ModelSpec(model="bench", base_url=base), tools=("list_files",))
    spec_log = Bytes(spec.id)
    log = MemoryLog(spec.id)
    log.queue(spec.task)
    ports = Ports(
        sink=spec_log, live=MemoryLive(), inbox=MemoryInbox(), artifacts=log, lease=HeldLease(),
        models=OneModel(connect(spec.model, None), spec.model), tools=Registry([Listing()]), spawner=NoSpawner(),
        clock=SystemClock(), workspace=".", environment={},
    )  # fmt: skip
    from decimal import Decimal

    from agents.spec import Limit, Limits

    object.__setattr__(spec, "limits", Limits(max_turns=Limit(value=Decimal(10_000), source="bench")))
    running = Running(spec, ports, worker="bench", host="bench", epoch=1)
    await running.drive(log.events[:])
    return running.transcript.turn


async def main(base: str, turns: int, runs: int) -> None:
    await one(base, 2)
    marks.clear()
    began, cpu = time.monotonic(), time.process_time()
    taken = sum(await asyncio.gather(*(one(base, turns) for _ in range(runs))))
    wall, used = time.monotonic() - began, time.process_time() - cpu
    per_turn = [1000 * (b - a) for a, b in itertools.pairwise(marks)]
    print(json.dumps({
        "turns": taken, "cpu_ms_per_turn": 1000 * used / taken, "turns_per_s": taken / wall, "per_turn_ms": per_turn,
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }))  # fmt: skip


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
