"""The scripted server keeps its promises: odd bytes, every way to fail, and a log of what became of each socket."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from tests.scripted_server import (
    Dialect,
    Response,
    ScriptedServer,
    ThreadedServer,
    ask_tools,
    cut,
    gate,
    html,
    raw,
    reset,
    say,
    stall,
    status,
    wait,
    whole,
)

ASK = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}


async def post(server: ScriptedServer, body: Any = ASK) -> httpx.Response:
    async with httpx.AsyncClient(timeout=5) as client:
        return await client.post(server.base_url + "/chat/completions", json=body)


def events(text: str, eol: str = "\r\n") -> list[Any]:
    found = [block.removeprefix("data: ") for block in text.split(eol * 2) if block.startswith("data: ")]
    assert found[-1] == "[DONE]"
    return [json.loads(event) for event in found[:-1]]


async def test_text_goes_out_with_crlf_comments_and_split_characters() -> None:
    async with ScriptedServer([say("grüße 🌊 an alle")]) as server:
        text = (await post(server)).text
    assert "\r\n: keep-alive" in text
    said = [event["choices"][0]["delta"].get("content", "") for event in events(text) if event["choices"]]
    assert "".join(said) == "grüße 🌊 an alle"


async def test_every_event_is_split_inside_its_first_wide_character() -> None:
    pieces: list[bytes] = []
    async with ScriptedServer([say("ü" * 50)]) as server, httpx.AsyncClient() as client:
        request = client.build_request("POST", server.base_url + "/chat/completions", json=ASK)
        response = await client.send(request, stream=True)
        pieces = [piece async for piece in response.aiter_raw()]
    assert sum(piece.endswith(b"\xc3") for piece in pieces) >= 10


async def test_usage_comes_last_with_empty_choices() -> None:
    async with ScriptedServer([say("x", used={"prompt_tokens": 3})]) as server:
        last = events((await post(server)).text)[-1]
    assert (last["choices"], last["usage"]) == ([], {"prompt_tokens": 3})


async def test_tool_call_deltas_have_no_index_unless_asked_for() -> None:
    script = [ask_tools(("read_file", {"path": "a"})), ask_tools(("read_file", "{"), index=True, ids=["z"])]
    async with ScriptedServer(script) as server:
        bare, indexed = [(await post(server)).text for _ in script]
    assert '"index": 0, "id"' not in bare and '"id": "call-0"' in bare
    assert '"index": 0, "id": "z"' in indexed


async def test_function_scripts_see_the_request() -> None:
    async def script(request: Any) -> Response:
        return whole(request["messages"][-1]["content"].upper())

    async with ScriptedServer(script) as server:
        answer = (await post(server)).json()
    assert answer["choices"][0]["message"]["content"] == "HI"


async def test_errors_have_status_headers_and_body() -> None:
    async with ScriptedServer([status(429, retry_after=2), status(401), status(500), html(502)]) as server:
        answers = [await post(server) for _ in range(4)]
        over = await post(server)
    assert [answer.status_code for answer in answers] == [429, 401, 500, 502]
    assert answers[0].headers["retry-after"] == "2"
    assert answers[3].headers["content-type"] == "text/html" and "<h1>" in answers[3].text
    assert over.status_code == 500 and "request 5" in over.json()["error"]["message"]


async def test_raw_bytes_are_sent_as_they_are() -> None:
    async with ScriptedServer([raw(b"data: \xff\xfe\n\n", flush=(1,))]) as server:
        assert (await post(server)).content == b"data: \xff\xfe\n\n"


@pytest.mark.parametrize(("end", "how"), [(cut(), "cut"), (reset(), "reset")])
async def test_broken_streams_fail_at_the_client(end: Any, how: str) -> None:
    async with ScriptedServer([say("half", after=[end])]) as server:
        with pytest.raises(httpx.TransportError):
            await post(server)
        seen = await server.request(0)
        await asyncio.wait_for(seen.closed.wait(), 5)
    assert seen.how == how


async def test_log_says_when_a_client_left_a_stalled_stream() -> None:
    async with ScriptedServer([say("wait for it", after=[stall()])]) as server:
        asking = asyncio.ensure_future(post(server))
        seen = await server.request(0)
        asking.cancel()
        await asyncio.wait_for(seen.closed.wait(), 5)
        assert server.open_sockets == 0
    assert seen.how == "client_gone"
    assert seen.ended_at is not None and seen.closed_at is not None and seen.ended_at >= seen.started


async def test_one_connection_serves_many_requests() -> None:
    async with ScriptedServer(lambda request: say("again")) as server, httpx.AsyncClient() as client:
        for _ in range(3):
            await client.post(server.base_url + "/chat/completions", json=ASK)
        assert server.open_sockets == 1
        assert [seen.how for seen in server.requests] == ["completed"] * 3


async def test_gate_holds_the_answer_until_the_test_opens_it() -> None:
    event = asyncio.Event()
    async with ScriptedServer([say("now", before=[gate(event), wait(0.001)])]) as server:
        asking = asyncio.ensure_future(post(server))
        await server.request(0)
        assert not asking.done()
        event.set()
        assert "now" in (await asking).text


def test_threaded_server_serves_tests_without_a_loop() -> None:
    plain = Dialect(eol="\n", comments=False, flush=None)
    with ThreadedServer([say("hello", dialect=plain)]) as server:
        text = httpx.post(server.base_url + "/chat/completions", json=ASK).text
    assert events(text, "\n")[1]["choices"][0]["delta"]["content"] == "hello"
