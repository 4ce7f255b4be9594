"""The floor: a bare `while True` over httpx that streams, collects tool calls and answers them. BASE_URL TURNS RUNS."""

import asyncio
import itertools
import json
import os
import resource
import sys
import time
from typing import Any

import httpx

TOOL = {"type": "function", "function": {"name": "list_files", "parameters": {"type": "object", "properties": {}}}}


async def one(client: httpx.AsyncClient, base: str, turns: int, marks: list[float]) -> int:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": f"Take {turns} turns."},
    ]
    taken = 0
    while True:
        text, calls = "", {}
        body = {"model": "bench", "messages": messages, "tools": [TOOL], "stream": True,
                "stream_options": {"include_usage": True}}  # fmt: skip
        async with client.stream("POST", f"{base}/chat/completions", json=body) as response:
            async for line in response.aiter_lines():
                if not line.startswith("data: ") or line == "data: [DONE]":
                    continue
                for choice in json.loads(line[6:]).get("choices", ()):
                    delta = choice["delta"]
                    text += delta.get("content") or ""
                    for call in delta.get("tool_calls", ()):
                        slot = calls.setdefault(call["index"], {"id": "", "name": "", "arguments": ""})
                        slot["id"] = call.get("id") or slot["id"]
                        function = call.get("function", {})
                        slot["name"] = function.get("name") or slot["name"]
                        slot["arguments"] += function.get("arguments") or ""
        taken += 1
        marks.append(time.process_time())
        if not calls:
            return taken
        asked = [
            {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}}
            for c in calls.values()
        ]
        messages.append({"role": "assistant", "content": text, "tool_calls": asked})
        for call in calls.values():
            json.loads(call["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": "\n".join(os.listdir("."))})


async def main(base: str, turns: int, runs: int) -> None:
    marks: list[float] = []
    async with httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=runs + 5)) as client:
        await one(client, base, 2, [])
        began, cpu = time.monotonic(), time.process_time()
        taken = sum(await asyncio.gather(*(one(client, base, turns, marks) for _ in range(runs))))
        wall, used = time.monotonic() - began, time.process_time() - cpu
    per_turn = [1000 * (b - a) for a, b in itertools.pairwise(marks)]
    print(json.dumps({
        "turns": taken, "cpu_ms_per_turn": 1000 * used / taken, "turns_per_s": taken / wall, "per_turn_ms": per_turn,
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }))  # fmt: skip


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
