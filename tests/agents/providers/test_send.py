"""Which way a request takes: straight to our transport, or through httpx where something is in between."""

import asyncio
import base64
import gc
import weakref

import httpx
import pytest

from agents.providers import http
from agents.providers.transport import StreamTransport
from tests.agents.providers.peers import always, served, sized


async def test_requests_go_straight_to_our_transport() -> None:
    async with served(always(sized(b"hi"))) as server:
        for _ in range(3):
            response = await http.send(httpx.Request("POST", server.url, content=b"{}"))
            assert await response.aread() == b"hi"
            assert response.request.url == server.url
        transport = http.shared_client()._transport
        assert isinstance(transport, StreamTransport)
        assert transport.idle == 1
    assert len(server.peers) == 1


async def test_credentials_in_the_address_are_sent() -> None:
    async with served(always(sized(b"hi"))) as server:
        url = server.url.replace("http://", "http://me:word@")
        await (await http.send(httpx.Request("POST", url, content=b"{}"))).aread()
    head, _ = server.peers[0].requests[0]
    assert b"Authorization: Basic " + base64.b64encode(b"me:word") in head


async def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    async with served(always(sized(b"by proxy"))) as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        response = await http.send(httpx.Request("POST", "http://models.invalid/v1", content=b"{}"))
        assert await response.aread() == b"by proxy"
    assert proxy.peers[0].requests[0][0].startswith(b"POST http://models.invalid/v1 HTTP/1.1\r\n")


def test_the_client_of_an_ended_loop_is_forgotten_with_it() -> None:
    loops: list[weakref.ref[asyncio.AbstractEventLoop]] = []

    async def main() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        async with served(always(sized(b"hi"))) as server:
            await (await http.send(httpx.Request("POST", server.url, content=b"{}"))).aread()

    asyncio.run(main())
    gc.collect()
    assert loops[0]() is None
