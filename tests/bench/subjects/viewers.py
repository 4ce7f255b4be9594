"""Many viewers of one run in one process, each a bare websocket. One JSON object of options on the input.

Options: host, port, token, run, format, viewers, checkers (these read every event; the others only each `seq`),
reconnects (forced, spread over the time), mute (viewers that never read). Prints "ready", and figures once a line with
the last `seq` has come in and every viewer is there, or 15 s later.
"""

import asyncio
import json
import os
import random
import re
import sys
import time
from datetime import datetime
from typing import Any

import orjson

from tests.bench.subjects.wire import Connection

SEQ = re.compile(rb'"root":"[0-9a-f-]{36}","seq":(\d+),')
PATIENCE_S = 15.0


class Viewer:
    """Follows the run from its cursor, over any number of connections."""

    def __init__(self, crowd: "Crowd", checks: bool) -> None:
        self.crowd = crowd
        self.checks = checks
        self.cursor = 0
        self.connection: Connection | None = None
        self.seen: list[int] = []

    async def open(self) -> None:
        o = self.crowd.options
        path = f"/ws/runs/{o['run']}?after={self.cursor}&format={o['format'] if not self.checks else 'json'}"
        loop = asyncio.get_running_loop()
        made = lambda: Connection(o["host"], o["port"], path, o["token"], self.frame)  # noqa: E731
        _, self.connection = await loop.create_connection(made, o["host"], o["port"])
        await self.connection.opened

    async def reopen(self) -> None:
        assert self.connection is not None
        self.connection.cut()
        await self.open()

    def frame(self, data: bytes) -> None:
        now = time.time()
        if data.startswith(b'{"type":"events"'):
            self._events(data, now)
        elif data.startswith(b'{"type":"patches","seq":'):
            last = int(data[24 : data.index(b",", 24)])
            if last <= self.cursor:
                self.crowd.doubled += 1
            self.crowd.frames.append((now, self.cursor + 1, last))
            self.cursor = last
        elif data.startswith(b'{"type":"resync"'):
            self.crowd.resyncs += 1
        else:
            return
        assert self.connection is not None
        self.connection.send(b'{"type":"ack","seq":%d}' % self.cursor)

    def _events(self, data: bytes, now: float) -> None:
        crowd = self.crowd
        if self.checks:
            events = orjson.loads(data)["events"]
            seqs = [event["seq"] for event in events]
            for event in events:
                crowd.note(event, now)
        else:
            seqs = [int(found) for found in SEQ.findall(data)]
            crowd.frames.append((now, seqs[0], seqs[-1]))
        crowd.received += len(seqs)
        if seqs != list(range(self.cursor + 1, self.cursor + 1 + len(seqs))):
            crowd.doubled += sum(seq <= self.cursor for seq in seqs)
            crowd.lost += max(0, seqs[-1] - self.cursor - len(seqs))
        self.cursor = seqs[-1]


class Crowd:
    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.at: dict[int, float] = {}
        self.kinds: dict[int, str] = {}
        self.delays: list[float] = []
        # When a frame came, and the first and last `seq` it led to.
        self.frames: list[tuple[float, int, int]] = []
        self.lost = self.doubled = self.resyncs = self.received = self.wrong = self.cuts = 0
        self.viewers = [Viewer(self, n < options["checkers"]) for n in range(options["viewers"])]

    def note(self, event: dict[str, Any], now: float) -> None:
        """A checker's look at one event: all checkers must have seen the same."""
        seq = event["seq"]
        known = self.kinds.setdefault(seq, event["kind"])
        if known != event["kind"] or event["run"] != self.options["run"] or not isinstance(event["data"], dict):
            self.wrong += 1
        at = self.at.get(seq)
        if at is None:
            at = self.at[seq] = datetime.fromisoformat(event["at"]).timestamp()
        self.delays.append(now - at)

    def figures(self, last: int) -> dict[str, Any]:
        """`lost`: gaps, and what was still missing at the end. Delays in seconds; the first event is the start's."""
        self.lost += sum(last - viewer.cursor for viewer in self.viewers)
        delays = self.delays
        for now, first, final in self.frames:
            delays += [now - self.at[seq] for seq in (first, final) if seq > 1 and seq in self.at]
        delays.sort()
        return {
            "lost": self.lost, "doubled": self.doubled, "wrong": self.wrong, "resyncs": self.resyncs, "cuts": self.cuts,
            "received": self.received, "frames": len(self.frames), "n": len(delays),
            "p50": delays[len(delays) // 2], "p99": delays[len(delays) * 99 // 100], "max": delays[-1],
        }  # fmt: skip


async def main(options: dict[str, Any]) -> None:
    crowd = Crowd(options)
    for start in range(0, len(crowd.viewers), 10):
        await asyncio.gather(*(viewer.open() for viewer in crowd.viewers[start : start + 10]))
    mute = [Viewer(crowd, False) for _ in range(options["mute"])]
    for viewer in mute:
        await viewer.open()
        assert viewer.connection is not None
        viewer.connection.mute()
    print("ready", flush=True)
    loop = asyncio.get_running_loop()
    told = loop.run_in_executor(None, sys.stdin.readline)
    cutting = asyncio.create_task(cut(crowd, options["reconnects"], options["seconds"]))
    last = int(await told)
    await cutting
    deadline = loop.time() + PATIENCE_S
    while any(viewer.cursor < last for viewer in crowd.viewers) and loop.time() < deadline:
        await asyncio.sleep(0.02)
    used = time.process_time()
    print(json.dumps(crowd.figures(last) | {"cpu_s": used}), flush=True)
    os._exit(0)


async def cut(crowd: Crowd, times: int, seconds: float) -> None:
    """Cut viewers off at random, evenly over the time; each comes back with its cursor."""
    rng = random.Random(7)
    while times and not crowd.at:
        await asyncio.sleep(0.01)
    for _ in range(times):
        await asyncio.sleep(seconds * 0.9 / times)
        await rng.choice(crowd.viewers).reopen()
        crowd.cuts += 1


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.stdin.readline())))
