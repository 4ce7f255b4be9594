"""Web pages: public ones only, whatever the address looks like and wherever it leads."""

import gzip
import socket
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from agents.errors import ToolError
from agents.tools import web
from agents.tools.web import WebFetch, is_public
from tests.agents.tools.conftest import Bench

Answer = Callable[[httpx.Request], httpx.Response]


class Wire(httpx.AsyncByteStream):
    """Bytes as the network gives them, which a client must unpack by itself."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    async def __aiter__(self) -> Any:
        yield self.body


@pytest.fixture
def internet(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str], Answer], list[httpx.Request]]:
    """Names resolve as given; the wire is a function."""

    def setup(names: dict[str, str], answer: Answer) -> list[httpx.Request]:
        seen: list[httpx.Request] = []

        async def resolve(_: Any, host: str, port: int, **__: Any) -> list[Any]:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (names.get(host, host), port))]

        def wire(request: httpx.Request) -> httpx.Response:
            seen.append(request)
            made = answer(request)
            if isinstance(made.stream, Wire):
                return made
            return httpx.Response(made.status_code, headers=made.headers, stream=Wire(made.content))

        real = httpx.AsyncClient

        def client(**options: Any) -> httpx.AsyncClient:
            return real(transport=httpx.MockTransport(wire), **options)

        monkeypatch.setattr("asyncio.base_events.BaseEventLoop.getaddrinfo", resolve)
        monkeypatch.setattr(web.httpx, "AsyncClient", client)
        return seen

    return setup


async def fetch(bench: Bench, url: str) -> Any:
    return await WebFetch().run({"url": url}, bench.context())


async def test_a_page_is_read_as_text_from_the_checked_address(bench: Bench, internet: Any) -> None:
    page = "<html><style>x{}</style><h1>Title</h1><p>One <b>two</b></p><script>no()</script></html>"
    seen = internet({"example.com": "93.184.216.34"}, lambda _: httpx.Response(200, html=page))
    output = await fetch(bench, "https://example.com/a?b=1")
    assert output.text == "Title\n\nOne two"
    assert str(seen[0].url) == "https://93.184.216.34/a?b=1"
    assert seen[0].headers["host"] == "example.com"
    assert seen[0].extensions["sni_hostname"] == "example.com"


async def test_a_redirect_to_an_internal_address_is_refused(bench: Bench, internet: Any) -> None:
    seen = internet(
        {"example.com": "93.184.216.34", "inner.example.com": "10.0.0.5"},
        lambda _: httpx.Response(302, headers={"location": "http://inner.example.com/secrets"}),
    )
    with pytest.raises(ToolError, match="internal address"):
        await fetch(bench, "http://example.com/")
    assert len(seen) == 1


async def test_redirects_without_end_are_ended(bench: Bench, internet: Any) -> None:
    internet({"example.com": "93.184.216.34"}, lambda _: httpx.Response(302, headers={"location": "/again"}))
    with pytest.raises(ToolError, match="redirects more than"):
        await fetch(bench, "http://example.com/")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.com/",
        "http://127.0.0.1:8000/",
        "http://[::1]/",
        "http://169.254.169.254/",
        "//x",
    ],
)
async def test_other_schemes_and_internal_addresses_are_refused(bench: Bench, url: str) -> None:
    with pytest.raises(ToolError):
        await fetch(bench, url)


async def test_an_error_status_is_an_error_with_its_text(bench: Bench, internet: Any) -> None:
    internet({"example.com": "93.184.216.34"}, lambda _: httpx.Response(404, text="gone"))
    output = await fetch(bench, "http://example.com/")
    assert output.is_error
    assert "404" in output.text
    assert "gone" in output.text


async def test_a_name_with_one_internal_address_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(_: Any, host: str, port: int, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port)) for ip in ("93.184.216.34", "192.168.1.1")]

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.getaddrinfo", resolve)
    with pytest.raises(ToolError, match="internal address"):
        await fetch(bench, "http://example.com/")


async def test_a_name_that_changes_its_mind_is_asked_once_per_hop(bench: Bench, internet: Any) -> None:
    names = {"example.com": "93.184.216.34"}

    def answer(request: httpx.Request) -> httpx.Response:
        names["example.com"] = "127.0.0.1"
        return httpx.Response(200, text="from " + request.url.host)

    internet(names, answer)
    assert (await fetch(bench, "http://example.com/")).text == "from 93.184.216.34"
    with pytest.raises(ToolError, match="internal address"):
        await fetch(bench, "http://example.com/")


async def test_cookies_do_not_travel_from_hop_to_hop(bench: Bench, internet: Any) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/":
            return httpx.Response(302, headers={"location": "/b", "set-cookie": "a=b"})
        return httpx.Response(200, text=request.headers.get("cookie", "none"))

    internet({"example.com": "93.184.216.34"}, answer)
    assert (await fetch(bench, "http://example.com/")).text == "none"


async def test_a_page_that_unpacks_to_gigabytes_is_cut(bench: Bench, internet: Any) -> None:
    bomb = gzip.compress(b"a" * 50_000_000)
    headers = {"content-encoding": "gzip", "content-type": "text/plain"}
    internet({"example.com": "93.184.216.34"}, lambda _: httpx.Response(200, headers=headers, stream=Wire(bomb)))
    output = await fetch(bench, "http://example.com/")
    assert output.whole is not None and web.MAX_BODY < len(output.whole) < web.MAX_BODY + 100
    assert "cut after" in output.text


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip"])
async def test_bytes_that_cannot_be_unpacked_are_an_error(bench: Bench, internet: Any, encoding: str) -> None:
    headers = {"content-encoding": encoding, "content-type": "text/plain"}
    internet({"example.com": "93.184.216.34"}, lambda _: httpx.Response(200, headers=headers, stream=Wire(b"nonsense")))
    with pytest.raises(ToolError, match="packed"):
        await fetch(bench, "http://example.com/")


async def test_a_page_is_read_in_the_character_set_that_it_names(bench: Bench, internet: Any) -> None:
    headers = {"content-type": 'text/plain; charset="iso-8859-1"'}
    internet({"example.com": "93.184.216.34"}, lambda _: httpx.Response(200, headers=headers, content=b"caf\xe9"))
    assert (await fetch(bench, "http://example.com/")).text == "café"


INTERNAL = (
    "10.1.2.3 127.0.0.1 192.168.0.1 169.254.169.254 100.64.0.1 0.0.0.0 224.0.0.1 ::1 fe80::1%eth0 fd00::1 "
    "::ffff:127.0.0.1 64:ff9b::7f00:1 2002:7f00:1:: 64:ff9b:1::7f00:1 ::7f00:1 ::ffff:0:7f00:1 fec0::1 "
    "ff02::1 :: 5f00::1"
)


@pytest.mark.parametrize("address", INTERNAL.split())
def test_internal_addresses_are_known_in_every_disguise(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"])
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(address)
