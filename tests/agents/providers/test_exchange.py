"""What can happen between the request and the answer: cancel, stalls, odd HTTP, addresses that lead nowhere."""

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
import pytest

from agents.errors import ConfigError, ModelError
from agents.ports import ChatModel
from agents.providers import Stalls, connect, http
from agents.spec import ModelSpec
from tests.agents.providers.scripted import (
    DONE,
    STREAM_HEAD,
    Play,
    Provider,
    answer_to,
    ask,
    chunk,
    event,
    model_at,
    provider,
)

HELLO = chunk({"content": "hello"}) + chunk({}, "stop") + DONE
JSON_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
WHOLE = {
    "id": "c1",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 1},
}


async def failure(model: ChatModel) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await asyncio.wait_for(ask(model), 20)
    return caught.value


async def failure_of(play: Play, *, stalls: Stalls | None = None, key: str | None = None) -> ModelError:
    async with provider(play) as served:
        return await failure(model_at(served.base_url, key=key, stalls=stalls or Stalls()))


def status(line: str, *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {line}", *headers, ""]).encode()


# --- cancel ---


@asynccontextmanager
async def cancelled_while(served: Provider, model: ChatModel) -> AsyncIterator[asyncio.Task[object]]:
    task: asyncio.Task[object] = asyncio.ensure_future(ask(model))
    await asyncio.wait_for(served.sent.wait(), 10)
    yield task
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_cancel_closes_the_socket_of_a_stream_within_two_milliseconds() -> None:
    took = []
    loop = asyncio.get_running_loop()
    for _ in range(5):
        first_text = asyncio.Event()
        async with provider(Play([chunk({"content": "a"})], chunked=True, hold=True)) as served:
            task = asyncio.ensure_future(ask(model_at(served.base_url), lambda text, seen=first_text: seen.set()))
            await asyncio.wait_for(first_text.wait(), 10)
            began = loop.time()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(served.hung_up.wait(), 10)
            took.append(served.hung_up_at - began)
    assert min(took) < 0.002


async def test_cancel_closes_the_socket_before_any_answer_came() -> None:
    async with provider(Play([], head=b"HTTP/1.1 200 OK\r\nx: y", hold=True)) as served:
        async with cancelled_while(served, model_at(served.base_url)):
            pass
        await asyncio.wait_for(served.hung_up.wait(), 10)


async def test_cancel_ends_an_attempt_that_is_still_connecting() -> None:
    # A listener that accepts nothing: once its backlog is full, further connections stay half open.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        others = [socket.socket() for _ in range(8)]
        for other in others:
            other.setblocking(False)
            other.connect_ex(full.getsockname())
        task = asyncio.ensure_future(ask(model_at(f"http://127.0.0.1:{full.getsockname()[1]}/v1")))
        for _ in range(50):
            await asyncio.sleep(0)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for other in others:
            other.close()


async def test_a_cancel_that_meets_an_error_leaves_no_socket_open() -> None:
    # The server's rubbish and the cancellation arrive in the same turn of the event loop.
    for _ in range(20):
        async with provider(Play([], head=b"", hold=True)) as served:
            task = asyncio.ensure_future(ask(model_at(served.base_url)))
            await asyncio.wait_for(served.sent.wait(), 10)
            task.cancel()
            with pytest.raises((asyncio.CancelledError, ModelError)):
                await task
            await asyncio.wait_for(served.hung_up.wait(), 10)


async def test_the_client_is_good_for_the_next_question_after_a_cancel() -> None:
    async with provider(Play([], hold=True), Play([HELLO])) as served:
        model = model_at(served.base_url)
        async with cancelled_while(served, model):
            pass
        assert (await ask(model)).message.text == "hello"


# --- stalls ---


async def test_silence_ends_the_attempt_as_a_timeout() -> None:
    stalls = Stalls(byte_silence_s=0.05)
    for pieces in ([], [chunk({"content": "a"})]):
        async with provider(Play(pieces, hold=True)) as served:
            error = await failure(model_at(served.base_url, stalls=stalls))
            await asyncio.wait_for(served.hung_up.wait(), 10)
        assert error.kind == "timeout"
        assert "sent nothing for 0.05 s" in error.message


@pytest.mark.parametrize(
    "ping", [b": ping\n\n", b"event: ping\ndata: {}\n\n", chunk({}), chunk({"content": ""}), event({"choices": []})]
)
async def test_pings_keep_no_attempt_alive_that_makes_no_progress(ping: bytes) -> None:
    async def soon() -> None:
        await asyncio.sleep(0.005)

    stalls = Stalls(byte_silence_s=10, no_progress_s=0.1)
    play = Play([chunk({"content": "a"}), *[ping] * 100_000], gate=soon)  # type: ignore[arg-type]
    error = await failure_of(play, stalls=stalls)
    assert error.kind == "timeout"
    assert "only signs of life" in error.message


async def test_an_attempt_that_makes_progress_is_not_ended() -> None:
    async def soon() -> None:
        await asyncio.sleep(0.005)

    stalls = Stalls(byte_silence_s=0.5, no_progress_s=0.5)
    pieces = [chunk({"content": "a"})] * 200 + [chunk({}, "stop") + DONE]
    async with provider(Play(pieces, gate=soon)) as served:  # type: ignore[arg-type]
        assert (await ask(model_at(served.base_url, stalls=stalls))).message.text == "a" * 200


# --- the connection ---


async def test_a_connection_serves_one_question_after_the_other() -> None:
    async with provider(Play([HELLO], chunked=True)) as served:
        model = model_at(served.base_url)
        for _ in range(5):
            await ask(model)
        assert served.connections == 1


async def test_three_hundred_streams_at_once() -> None:
    go = asyncio.Event()
    async with provider(Play([chunk({"content": "hel"}), HELLO[: len(HELLO)]], gate=go.wait)) as served:  # type: ignore[arg-type]
        model = model_at(served.base_url)
        asking = [asyncio.ensure_future(ask(model)) for _ in range(300)]
        while served.connections < 300:
            await asyncio.sleep(0.005)
        go.set()
        assert {(await one).message.text for one in asking} == {"helhello"}


async def test_an_unreachable_host_is_a_connection_error_with_a_next_step() -> None:
    server = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    error = await failure(model_at(f"http://127.0.0.1:{port}/v1"))
    assert (error.kind, error.wire.transport, error.wire.status) == ("connection", "ConnectError", None)
    assert "check that the base URL is right" in error.message


@pytest.mark.parametrize("host", ["nowhere.invalid", "a..b", "a" * 80 + ".invalid"])
async def test_a_name_that_does_not_resolve_is_a_connection_error(host: str) -> None:
    assert (await failure(model_at(f"http://{host}/v1"))).kind == "connection"


async def test_a_server_that_hangs_up_without_a_word_is_a_connection_error() -> None:
    error = await failure_of(Play([], head=b"", drop=True))
    assert (error.kind, error.wire.status) == ("connection", None)


async def test_a_server_that_speaks_no_http_is_a_connection_error() -> None:
    assert (await failure_of(Play([b"220 mail ready\r\n\r\n"], head=b""))).kind == "connection"


# --- the form of the answer ---


async def test_a_whole_json_answer_to_a_streaming_request_is_an_answer() -> None:
    body = orjson.dumps(WHOLE, option=orjson.OPT_INDENT_2)
    for head in (JSON_HEAD, STREAM_HEAD, b"HTTP/1.1 200 OK\r\n"):
        heard: list[str] = []
        async with provider(Play([b"\n\n", body[:40], body[40:]], head=head)) as served:
            answer = await ask(model_at(served.base_url), heard.append)
        assert (answer.message.text, answer.finish_reason, heard) == ("hello", "stop", ["hello"])
        assert answer.usage is not None
        assert answer.usage.input == 5


async def test_lines_of_json_are_a_stream() -> None:
    lines = [chunk({"content": "hel"}), chunk({"content": "lo"}), chunk({}, "stop")]
    body = b"".join(line.removeprefix(b"data: ").replace(b"\n\n", b"\n") for line in lines)
    assert (await answer_to(body)).message.text == "hello"


async def test_a_compressed_stream_is_read() -> None:
    head = STREAM_HEAD + b"content-encoding: gzip\r\n"
    assert (await answer_to(gzip.compress(HELLO), head=head)).message.text == "hello"
    half = gzip.compress(HELLO)[:-30]
    assert (await failure_of(Play([half], head=head))).kind in ("malformed_response", "connection")
    assert (await failure_of(Play([b"no gzip at all"], head=head))).kind == "connection"


@pytest.mark.parametrize("head", [b"HTTP/1.1 204 No Content\r\n", JSON_HEAD, STREAM_HEAD])
@pytest.mark.parametrize("body", [b"", b"\n\n \n"])
async def test_an_empty_answer_is_malformed(head: bytes, body: bytes) -> None:
    body = b"" if b"204" in head else body
    error = await failure_of(Play([body], head=head))
    assert error.kind == "malformed_response"
    assert "empty answer" in error.message


@pytest.mark.parametrize(
    "body",
    [b"<!doctype html><title>Welcome</title>", b"\xef\xbb\xbf\n<html></html>", b"it works!", b"{}", b"[]", b"null",
     b'{"choices": []}', b'{"choices": null}', b'{"choices": [null]}', b'{"choices": [{"message": null}]}',
     b'{"choices": [{"index": 0', b"{" * 5000, b'data: {"choices": [{"del\n\n', b"data: 7\n\n",
     b'data: {"choices": [{"index": 0, "delta": {"tool_calls": "x"}}]}\n\n'],
)  # fmt: skip
async def test_what_is_no_answer_is_malformed_whatever_it_is(body: bytes) -> None:
    assert (await failure_of(Play([body]))).kind == "malformed_response"


@pytest.mark.parametrize(
    "body",
    [{"error": {"message": "no luck"}}, {"error": "no luck"}, {"detail": "no luck"}, {"message": "no luck", "code": 5},
     [{"error": {"message": "no luck"}}], "no luck", {"errors": [{"message": "no luck"}]},
     {"choices": [], "error": {"message": "no luck"}}, {"object": "error", "message": "no luck"},
     {"choices": None, "base_resp": {"status_code": 1000, "status_msg": "no luck"}},
     {"success": False, "message": "no luck"}, {"type": "error", "error": {"type": "x", "message": "no luck"}}],
)  # fmt: skip
async def test_an_error_in_a_json_body_with_status_200_is_an_error(body: object) -> None:
    error = await failure_of(Play([orjson.dumps(body)], head=JSON_HEAD))
    assert error.kind == "server_error"
    assert "no luck" in error.message


async def test_empty_error_fields_beside_an_answer_are_no_error() -> None:
    for nothing in (None, "", {}, {"code": 0, "message": ""}, False, []):
        stream = chunk({"content": "ok"}, error=nothing) + chunk({}, "stop", error=nothing) + DONE
        assert (await answer_to(stream)).message.text == "ok"


# --- refusals ---


async def test_a_wrong_key_is_an_auth_error_and_the_key_is_shown_nowhere() -> None:
    key = "sk-wrong-4242424242"
    body = orjson.dumps({"error": {"message": f"Incorrect API key provided: {key}", "code": "invalid_api_key"}})
    head = status("401 Unauthorized", "content-type: application/json", f"x-echo: {key}", "set-cookie: a=b")
    async with provider(Play([body], head=head)) as served:
        error = await failure(model_at(served.base_url, key=f" {key}\n"))
        assert f"authorization: bearer {key}".encode() in served.heard[0].head.lower()
    assert (error.kind, error.wire.status) == ("auth", 401)
    assert "Incorrect API key provided" in error.message
    assert key not in f"{error} {error.wire}"
    assert "set-cookie" not in error.wire.headers


@pytest.mark.parametrize(
    ("line", "kind"),
    [("400 Bad Request", "format_error"), ("402 Payment Required", "billing"), ("403 Forbidden", "permission"),
     ("404 Not Found", "unknown"), ("413 Too Large", "payload_too_large"), ("429 Too Many Requests", "rate_limit"),
     ("500 Oops", "server_error"), ("502 Bad Gateway", "server_error"), ("503 Unavailable", "overloaded"),
     ("504 Gateway Timeout", "timeout"), ("529 Overloaded", "overloaded")],
)  # fmt: skip
async def test_a_status_alone_has_a_kind(line: str, kind: str) -> None:
    error = await failure_of(Play([b"<html>edge</html>"], head=status(line, "retry-after: 7")))
    assert (error.kind, error.wire.headers["retry-after"], error.wire.body) == (kind, "7", "<html>edge</html>")
    assert "an HTML page" in error.message


async def test_an_error_answer_that_breaks_off_is_still_that_error() -> None:
    play = Play([b'{"error": {"mess'], head=status("429 Too Many Requests"), chunked=True, drop=True)
    assert (await failure_of(play)).kind == "rate_limit"


async def test_a_redirect_on_the_same_host_is_followed_and_any_other_is_told() -> None:
    moved = status("307 Temporary Redirect", "location: /v2/chat/completions", "content-length: 0")
    async with provider(Play([], head=moved), Play([HELLO])) as served:
        assert (await ask(model_at(served.base_url, key="k"))).message.text == "hello"
        assert served.heard[1].head.startswith(b"POST /v2/chat/completions ")
        assert served.heard[1].body == served.heard[0].body
    away = status("302 Found", "location: https://elsewhere.invalid/login", "content-length: 0")
    error = await failure_of(Play([], head=away))
    assert (error.kind, error.wire.status) == ("model_not_found", 302)
    assert "https://elsewhere.invalid/login" in error.message


async def test_redirects_in_a_circle_end() -> None:
    round_ = status("308 Permanent Redirect", "location: /v1/chat/completions", "content-length: 0")
    assert (await failure_of(Play([], head=round_, chunked=False))).wire.status == 308


async def test_a_parameter_that_a_server_does_not_know_is_left_out_for_good() -> None:
    complaint = orjson.dumps({"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"]}]})
    refused = Play([complaint], head=status("422 Unprocessable Entity"))
    async with provider(refused, Play([HELLO])) as served:
        model = model_at(served.base_url)
        await ask(model)
        await ask(model)
        assert [("stream_options" in heard.json) for heard in served.heard] == [True, False, False]


# --- addresses ---


@pytest.mark.parametrize(
    ("base_url", "hint"),
    [("localhost:8000/v1", "http://localhost:8000/v1"), ("", "empty"), ("ftp://host/v1", "only http and https"),
     ("http://", "names no host"), ("http:///v1", "names no host"), ("https://h:99999/v1", "port"),
     ("http://[::1", "no URL"), ("my model", "no HTTP address"), ("http://two words/v1", "names no host")],
)  # fmt: skip
def test_a_base_url_that_is_none_is_refused_with_what_to_write(base_url: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        connect(ModelSpec(model="m", base_url=base_url), None)
    assert caught.value.kind == "bad_base_url"
    assert hint in caught.value.message


@pytest.mark.parametrize(
    ("base_url", "target"),
    [("http://h/v1", "http://h/v1/chat/completions"), ("http://h/v1/", "http://h/v1/chat/completions"),
     ("http://h", "http://h/chat/completions"), (" https://h/a/b/ ", "https://h/a/b/chat/completions"),
     ("http://h/v1/chat/completions", "http://h/v1/chat/completions"),
     ("http://h/x?api-version=3", "http://h/x/chat/completions?api-version=3")],
)  # fmt: skip
def test_the_path_is_put_below_the_base_url(base_url: str, target: str) -> None:
    assert str(http.endpoint(http.base_address(base_url), "/chat/completions")) == target


def test_an_unknown_provider_and_a_key_that_is_none_are_refused() -> None:
    with pytest.raises(ConfigError, match="use one of anthropic, azure"):
        connect(ModelSpec(model="m", base_url="http://h/v1", provider="acme"), None)
    with pytest.raises(ConfigError, match="copy it again"):
        connect(ModelSpec(model="m", base_url="http://h/v1"), "sk-\u201cquoted\u201d")
