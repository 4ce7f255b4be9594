"""The live feed: from an event's happening in the worker to the frame in a viewer's hands."""

import asyncio
import json
import time

import websockets

from tests.bench.harness import percentile, say
from tests.bench.lane import MODES
from tests.bench.stack import Stack, moment, stack

NOTES = 60


def live() -> None:
    """Notes to a streaming run, each an event, seen by 1, 10 and 100 viewers; delay is receipt minus `at`."""
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
    run = await asyncio.to_thread(console.start, "slow", "Tell a long story.")
    await asyncio.to_thread(console.until, run, "running")
    delays: list[float] = []
    watching = [asyncio.create_task(_viewer(console, run, delays)) for _ in range(viewers)]
    await asyncio.sleep(1 + viewers / 50)
    for number in range(NOTES):
        await asyncio.to_thread(console.call, "POST", f"/api/runs/{run}/steer", {"note": f"note {number}"})
        await asyncio.sleep(0.02)
    await asyncio.to_thread(console.call, "POST", f"/api/runs/{run}/interrupt", {"reason": "bench"})
    await asyncio.gather(*watching)
    return delays


async def _viewer(console: Stack, run: str, delays: list[float]) -> None:
    address = console.base.replace("http", "ws") + f"/ws/runs/{run}?after=0&format=json"
    head = {"Authorization": f"Bearer {console.token}"}
    async with websockets.connect(address, additional_headers=head, max_size=None) as socket:
        async for text in socket:
            now = time.time()
            frame = json.loads(text)
            if frame["type"] != "events":
                continue
            delays.extend(now - moment(e["at"]) for e in frame["events"] if e["kind"] == "command.received")
            last = frame["events"][-1]
            await socket.send(json.dumps({"type": "ack", "seq": last["seq"]}))
            if last["kind"] == "run.interrupted":
                return
