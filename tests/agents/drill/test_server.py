"""The drill server over real sockets: the wire, the prices, and what the request log says of each socket."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from agents.drill import wire
from agents.drill.server import DrillServer


@pytest.fixture
def server() -> Iterator[DrillServer]:
    with DrillServer() as running:
        yield running


def request(model: str, task: str = "go", **more: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": task}], **more}


def requests_of(server: DrillServer, **query: str) -> dict[str, Any]:
    return httpx.get(server.base_url.removesuffix("/v1") + "/drill/requests", params=query).json()


def chunks(body: str) -> list[Any]:
    return [json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: ") and line[6:] != "[DONE]"]


def test_streamed_and_whole_answers_say_the_same(server: DrillServer) -> None:
    url = server.base_url + "/chat/completions"
    whole = httpx.post(url, json=request("chat", "good  morning")).json()
    streamed = httpx.post(url, json=request("chat", "good  morning", stream=True)).text
    assert streamed.endswith("data: [DONE]\n\n")
    text = "".join(c["choices"][0]["delta"].get("content", "") for c in chunks(streamed) if c["choices"])
    assert text == whole["choices"][0]["message"]["content"] == "You said: good  morning"


def test_usage_comes_in_the_last_chunk_with_its_cost(server: DrillServer) -> None:
    body = httpx.post(server.base_url + "/chat/completions", json=request("chat", stream=True)).text
    last = chunks(body)[-1]
    assert last["choices"] == []
    used = last["usage"]
    expected = used["prompt_tokens"] * wire.INPUT_PRICE + used["completion_tokens"] * wire.OUTPUT_PRICE
    assert used["cost"] == pytest.approx(float(expected))


def test_tool_calls_arrive_in_pieces_that_join(server: DrillServer) -> None:
    tools = [{"type": "function", "function": {"name": "read_file"}}]
    body = httpx.post(server.base_url + "/chat/completions", json=request("runaway", stream=True, tools=tools)).text
    deltas = [d for c in chunks(body) if c["choices"] for d in c["choices"][0]["delta"].get("tool_calls", ())]
    assert json.loads("".join(d["function"]["arguments"] for d in deltas)) == {"path": "config/missing.yaml"}
    assert deltas[0]["id"] and deltas[0]["function"]["name"] == "read_file"


def test_models_are_listed_with_prices_and_unknown_ones_refused(server: DrillServer) -> None:
    listed = {row["id"]: row["pricing"] for row in httpx.get(server.base_url + "/models").json()["data"]}
    assert listed["tour"] == {"prompt": "0.0000005", "completion": "0.0000015"}
    refused = httpx.post(server.base_url + "/chat/completions", json=request("nobody"))
    assert refused.status_code == 404 and refused.json()["error"]["code"] == "model_not_found"
    assert httpx.post(server.base_url + "/chat/completions", content=b"[1").status_code == 400


async def test_log_tells_a_client_that_left_from_one_that_heard_the_end(server: DrillServer) -> None:
    async with httpx.AsyncClient() as client:
        url = server.base_url + "/chat/completions"
        await client.post(url, json=request("slow", "tokens=3 pace_ms=1 marker=heard", stream=True))
        async with client.stream("POST", url, json=request("slow", "marker=left", stream=True)) as response:
            await anext(response.aiter_bytes())
            assert requests_of(server, marker="left")["open"] == 1
    async with asyncio.timeout(5):
        while requests_of(server)["open"]:
            await asyncio.sleep(0.01)
    how = {row["marker"]: row["how"] for row in requests_of(server)["requests"]}
    assert how == {"heard": "completed", "left": "client_gone"}
    left = requests_of(server, marker="left")["requests"][0]
    assert left["started"] <= left["first_byte"] < left["closed_at"]


async def test_three_hundred_streams_at_once_all_come_to_their_end(server: DrillServer) -> None:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=60) as client:
        body = request("slow", "tokens=10 pace_ms=20", stream=True)
        posts = (client.post(server.base_url + "/chat/completions", json=body) for _ in range(300))
        answers = await asyncio.gather(*posts)
    assert all(answer.text.endswith("data: [DONE]\n\n") for answer in answers)
    assert requests_of(server, open="1") == {"requests": [], "open": 0, "dropped": 0}


def test_reset_forgets_the_log(server: DrillServer) -> None:
    httpx.post(server.base_url + "/chat/completions", json=request("chat"))
    assert len(requests_of(server)["requests"]) == 1
    httpx.post(server.base_url.removesuffix("/v1") + "/drill/requests/reset")
    assert requests_of(server)["requests"] == []
