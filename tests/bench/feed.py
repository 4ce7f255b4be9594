"""The live feed: from an event's happening in the worker to the frame in a viewer's hands."""

import asyncio
import json
import time

import websockets

from tests.bench.harness import percentile, say
from tests.bench.lane import MODES
from tests.bench.stack import Stack, moment, stack


def live() -> None:
    """One run of paced turns, watched by 1, 10 and 100 viewers; delay = receipt minus the event's `at`."""
    for services, label in MODES:
        with stack(services=services) as console:
            for viewers in (1, 10, 100):
                delays = asyncio.run(_watch(console, viewers))
                ordered = [1000 * delay for delay in delays]
                say(
                    f"{label}, {viewers} viewers: event to frame p50 {percentile(ordered, 0.5):.1f} ms, "
                    f"p99 {percentile(ordered, 0.99):.1f} ms, n={len(ordered)}"
                )


async def _watch(console: Stack, viewers: int) -> list[float]:
    run = await asyncio.to_thread(console.start, "bench", "Take 60 turns.")
    delays: list[float] = []
    await asyncio.gather(*(_viewer(console, run, delays) for _ in range(viewers)))
    return delays


async def _viewer(console: Stack, run: str, delays: list[float]) -> None:
    address = console.base.replace("http", "ws") + f"/ws/runs/{run}?after=0&format=json"
    opened = time.time()
    async with websockets.connect(
        address, additional_headers={"Authorization": f"Bearer {console.token}"}, max_size=None
    ) as socket:
        async for text in socket:
            frame = json.loads(text)
            if frame["type"] != "events":
                continue
            now = time.time()
            for event in frame["events"]:
                if moment(event["at"]) > opened + 0.5:
                    delays.append(now - moment(event["at"]))
            last = frame["events"][-1]
            await socket.send(json.dumps({"type": "ack", "seq": last["seq"]}))
            if last["kind"] in ("run.completed", "run.exhausted", "run.failed"):
                return
