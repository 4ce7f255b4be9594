"""HTTP over ASGI with one hop: whole requests, whole answers, and connections that are kept."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import path

from control.threaded import LARGEST_BODY, ThreadedHandler

seen: list[tuple[str, int]] = []


def echo(request: HttpRequest) -> HttpResponse:
    return HttpResponse(request.body, headers={"X-Length": str(len(request.body))})


def where(request: HttpRequest) -> HttpResponse:
    connection.ensure_connection()
    seen.append((threading.current_thread().name, id(connection.connection)))
    return HttpResponse("ok")


def pieces(request: HttpRequest) -> StreamingHttpResponse:
    def source() -> Iterator[bytes]:
        for number in range(5):
            seen.append((threading.current_thread().name, number))
            yield b"x" * number

    return StreamingHttpResponse(source())


def broken(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("insides")


urlpatterns = [path("echo", echo), path("where", where), path("pieces", pieces), path("api/broken", broken)]


async def ask(app: Any, method: str, target: str, *chunks: bytes) -> tuple[int, dict[str, str], bytes]:
    scope = {
        "type": "http",
        "method": method,
        "path": target,
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1"), (b"content-length", str(sum(map(len, chunks))).encode())],
    }
    waiting = [{"type": "http.request", "body": c, "more_body": True} for c in chunks] + [{"type": "http.request"}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return waiting.pop(0) if waiting else await asyncio.Future()

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    head = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    assert not sent[-1].get("more_body")
    return sent[0]["status"], head, b"".join(message.get("body", b"") for message in sent[1:])


@pytest.fixture
def app(settings: Any) -> Iterator[Callable[..., Any]]:
    settings.ROOT_URLCONF = __name__
    settings.MIDDLEWARE = ["control.api.errors.JsonErrors"]
    seen.clear()
    handler = ThreadedHandler(threads=1)
    yield handler
    handler._pool.submit(lambda: connection.close()).result()
    handler._pool.shutdown()


async def test_a_body_in_pieces_arrives_whole(app: Any):
    status, head, body = await ask(app, "PUT", "/echo", b"ab", b"cd", b"e" * 70_000)
    assert (status, head["X-Length"], body) == (200, "70004", b"abcd" + b"e" * 70_000)


async def test_a_streamed_answer_is_read_in_the_pool_and_not_on_the_loop(app: Any):
    status, _, body = await ask(app, "GET", "/pieces")
    assert (status, body) == (200, b"x" * 10)
    assert all(name.startswith("http") for name, _ in seen)


@pytest.mark.django_db(transaction=True)
async def test_connections_are_kept_from_request_to_request(app: Any):
    for _ in range(6):
        assert (await ask(app, "GET", "/where"))[0] == 200
    assert len(seen) == 6 and len(set(seen)) == 1


async def test_a_fault_is_an_answer(app: Any):
    status, head, body = await ask(app, "GET", "/api/broken")
    assert (status, head["Content-Type"]) == (500, "application/json")
    assert b"insides" not in body


async def test_a_body_without_end_is_refused_before_it_fills_the_disk(app: Any):
    chunk = b"x" * 1_000_000
    status, _, body = await ask(app, "PUT", "/echo", *[chunk] * (LARGEST_BODY // len(chunk) + 2))
    assert status == 413 and b"body_too_large" in body
