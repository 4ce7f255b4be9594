"""The transport against real sockets: framing, reuse, failures as httpx names them, and a cancel at every stage."""

import asyncio
import gzip
import os
import socket
import ssl
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from agents.providers.connection import MAX_UNREAD
from agents.providers.transport import StreamTransport, proxied
from tests.agents.providers.peers import CHUNKED, Peer, always, certificate, framed, once, served, sized

END = b"0\r\n\r\n"
FOREVER: dict[str, float | None] = {"connect": None, "read": None, "write": None, "pool": None}


@pytest.fixture
async def transport() -> AsyncIterator[StreamTransport]:
    made = StreamTransport()
    yield made
    await made.aclose()


def asked(url: str, body: bytes = b"{}", **timeout: float) -> httpx.Request:
    return httpx.Request("POST", url, content=body, extensions={"timeout": FOREVER | timeout})


async def ask(transport: httpx.AsyncBaseTransport, url: str, body: bytes = b"{}", **timeout: float) -> bytes:
    async with asyncio.timeout(20):
        response = await transport.handle_async_request(asked(url, body, **timeout))
        return await response.aread()


async def until(state: Any) -> None:
    async with asyncio.timeout(20):
        while not state():
            await asyncio.sleep(0.001)


def sockets() -> int:
    count = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
        except OSError:
            pass
    return count


@contextmanager
def swallowing() -> Iterator[int]:
    """A port that neither accepts nor refuses: its backlog is full."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
            fillers.append(filler)
        yield port
        for filler in fillers:
            filler.close()


# --- what is on the wire ---


async def test_head_and_body_go_out_as_one_request(transport: StreamTransport) -> None:
    async with served(always(sized(b"hi", b"X-One: 1"))) as server:
        response = await transport.handle_async_request(asked(server.url, b'{"a":1}'))
        assert await response.aread() == b"hi"
    head, body = server.peers[0].requests[0]
    assert head.startswith(b"POST /v1/x?y=1 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % server.port)
    assert b"Content-Length: 7\r\n" in head
    assert body == b'{"a":1}'
    assert (response.status_code, response.reason_phrase, response.http_version) == (200, "OK", "HTTP/1.1")
    assert response.headers["x-one"] == "1"


async def test_a_streamed_request_body_is_sent_in_chunks(transport: StreamTransport) -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b"one"
        yield b"two"

    got: list[bytes] = []

    async def play(peer: Peer) -> None:
        got.append(await peer.reader.readuntil(END))
        await peer.send(sized(b"ok"))

    async with served(play) as server, httpx.AsyncClient(transport=transport) as client:
        assert (await client.post(server.url, content=parts())).text == "ok"
    assert got[0].endswith(b"\r\n\r\n6\r\nonetwo\r\n0\r\n\r\n")


@pytest.mark.parametrize("value", ["a\r\nX-Other: 1", "a\nb", "a\0b", "sk-secret\n"])
async def test_a_header_cannot_smuggle_lines_and_the_error_keeps_its_value_secret(
    transport: StreamTransport, value: str
) -> None:
    request = httpx.Request("POST", "http://127.0.0.1:9/", headers={"authorization": value}, content=b"")
    with pytest.raises(httpx.LocalProtocolError, match="authorization") as caught:
        await transport.handle_async_request(request)
    assert "secret" not in str(caught.value)
    assert transport.busy == 0


async def test_sockets_send_without_delay(transport: StreamTransport) -> None:
    async with served(always(sized(b""))) as server:
        await ask(transport, server.url)
        (connection,) = transport._open
        sock = connection._transport.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


# --- answers, compared with httpx' own transport ---

ANSWERS = {
    "content length": [sized(b"hello")],
    "empty": [sized(b"")],
    "chunked": [CHUNKED + framed(b"one", b"two") + END],
    "chunked with extensions and trailers": [CHUNKED + b"3;a=b\r\none\r\n0\r\nX-Trailer: 1\r\n\r\n"],
    "spaces after the chunk size": [CHUNKED + b"3  \r\none\r\n0\r\n\r\n"],
    "until close": [b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", b"one", b"two"],
    "http 1.0": [b"HTTP/1.0 200 OK\r\n\r\n", b"one"],
    "bare line feeds": [b"HTTP/1.1 200 OK\nContent-Length: 3\n\none"],
    "no reason": [b"HTTP/1.1 200\r\nContent-Length: 3\r\n\r\none"],
    "interim answers": [b"HTTP/1.1 100 Continue\r\nA: b\r\n\r\nHTTP/1.1 103 Early\r\n\r\n", sized(b"hi", b"C: d")],
    "latin headers": [sized(b"hi", b"X: caf\xe9")],
    "an error": [sized(b"no", status=b"429 Too Many")],
    "no content": [b"HTTP/1.1 204 No Content\r\n\r\n"],
    "not modified": [b"HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n"],
    "length and chunked": [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n" + framed(b"one") + END
    ],
    "closed before the head": [b""],
    "closed in the head": [b"HTTP/1.1 200 OK\r\nContent"],
    "a short body": [b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"],
    "half a chunk": [CHUNKED + framed(b"one") + b"9\r\nhalf"],
    "no last chunk": [CHUNKED + framed(b"one")],
    "no end of trailers": [CHUNKED + framed(b"one") + b"0\r\n"],
    "a wrong chunk size": [CHUNKED + b"zz\r\none\r\n0\r\n\r\n"],
    "another protocol": [b"SSH-2.0-OpenSSH_9.6\r\n"],
    "a header without a colon": [b"HTTP/1.1 200 OK\r\nnonsense\r\nContent-Length: 0\r\n\r\n"],
    "a wrong length": [b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nhi"],
}


async def outcome(transport: httpx.AsyncBaseTransport, url: str, method: str = "POST") -> Any:
    client = httpx.AsyncClient(transport=transport, trust_env=False)
    async with asyncio.timeout(20), client:
        try:
            async with client.stream(method, url, content=b"{}") as response:
                body = await response.aread()
        except httpx.HTTPError as error:
            return type(error)
        return response.status_code, response.http_version, response.headers.raw, body


@pytest.mark.parametrize("pieces", ANSWERS.values(), ids=ANSWERS.keys())
async def test_an_answer_means_what_it_means_to_httpx(pieces: list[bytes]) -> None:
    async with served(once(*pieces)) as server:
        ours = await outcome(StreamTransport(), server.url)
        theirs = await outcome(httpx.AsyncHTTPTransport(), server.url)
    assert ours == theirs


async def test_head_requests_have_no_body_to_wait_for() -> None:
    async with served(once(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")) as server:
        ours = await outcome(StreamTransport(), server.url, "HEAD")
        assert ours == await outcome(httpx.AsyncHTTPTransport(), server.url, "HEAD")
        assert ours[3] == b""


async def test_compressed_answers_are_left_to_httpx(transport: StreamTransport) -> None:
    packed = gzip.compress(b"hello " * 100)
    play = always(sized(packed, b"Content-Encoding: gzip"))
    async with served(play) as server, httpx.AsyncClient(transport=transport) as client:
        assert (await client.post(server.url, content=b"")).content == b"hello " * 100


async def test_heads_and_trailers_without_end_are_refused(transport: StreamTransport) -> None:
    for start in (b"HTTP/1.1 200 OK\r\nX: ", CHUNKED + b"0\r\nX: ", CHUNKED + b"3;x="):
        async with served(once(start, b"a" * 400_000, b"a" * 400_000)) as server:
            with pytest.raises(httpx.RemoteProtocolError, match="too large"):
                await ask(transport, server.url)


# --- failures ---


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200", CHUNKED + framed(b"one"), sized(b"12345")[:-2]])
async def test_a_reset_is_a_read_error(transport: StreamTransport, sent: bytes) -> None:
    async with served(once(sent, reset=True)) as server:
        with pytest.raises(httpx.ReadError):
            await ask(transport, server.url)


async def test_what_came_before_a_reset_is_still_read(transport: StreamTransport) -> None:
    async with served(once(CHUNKED + framed(b"one"), reset=True)) as server:
        response = await transport.handle_async_request(asked(server.url))
        await until(lambda: not transport._open)
        stream = aiter(response.stream)  # type: ignore[arg-type]
        assert await anext(stream) == b"one"
        with pytest.raises(httpx.ReadError):
            await anext(stream)


async def test_nothing_listens_or_no_such_host_is_a_connect_error(transport: StreamTransport) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with pytest.raises(httpx.ConnectError, match=str(port)):
            await ask(transport, f"http://127.0.0.1:{port}/")
    for host in ("nowhere.invalid", "a" * 70):
        with pytest.raises(httpx.ConnectError):
            await ask(transport, f"http://{host}/")
    assert transport.busy == 0


async def test_a_connect_that_takes_too_long_is_a_connect_timeout(transport: StreamTransport) -> None:
    with swallowing() as port:
        before = sockets()
        with pytest.raises(httpx.ConnectTimeout):
            await ask(transport, f"http://127.0.0.1:{port}/", connect=0.05)
        await until(lambda: sockets() == before)
    assert transport.busy == 0


@pytest.mark.parametrize("sent", [b"", CHUNKED, CHUNKED + framed(b"one")])
async def test_silence_is_a_read_timeout(transport: StreamTransport, sent: bytes) -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(sent)
        await peer.gone()

    async with served(play) as server:
        with pytest.raises(httpx.ReadTimeout):
            await ask(transport, server.url, read=0.05)
        await asyncio.wait_for(server.peers[0].closed.wait(), 10)


async def test_a_server_that_takes_no_body_is_a_write_timeout_or_a_write_error(transport: StreamTransport) -> None:
    hold = asyncio.Event()

    async def play(peer: Peer) -> None:
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await hold.wait()
        peer.reset()

    body = b"x" * 20_000_000
    async with served(play) as server:
        with pytest.raises(httpx.WriteTimeout):
            await ask(transport, server.url, body, write=0.05)
        task = asyncio.ensure_future(ask(transport, server.url, body))
        await until(lambda: len(server.peers) == 2)
        hold.set()
        with pytest.raises(httpx.WriteError):
            await task


async def test_an_answer_may_come_before_the_request_is_out(transport: StreamTransport) -> None:
    async def play(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await peer.send(sized(b"too large", status=b"413 Too Large"))
        await asyncio.sleep(30)

    async with served(play) as server:
        assert await ask(transport, server.url, b"x" * 20_000_000) == b"too large"
        assert (transport.busy, transport.idle) == (0, 0)


# --- reuse ---


async def test_one_connection_serves_request_after_request(transport: StreamTransport) -> None:
    async with served(always(CHUNKED + framed(b"a", b"b") + END)) as server:
        for _ in range(50):
            assert await ask(transport, server.url) == b"ab"
    assert [len(peer.requests) for peer in server.peers] == [50]


async def test_a_complete_answer_frees_its_connection_though_nobody_reads_it(transport: StreamTransport) -> None:
    async with served(always(CHUNKED + framed(b"data: [DONE]\n\n") + END)) as server:
        for _ in range(3):
            response = await transport.handle_async_request(asked(server.url))
            await until(lambda: transport.idle == 1)
            await response.aclose()
        response = await transport.handle_async_request(asked(server.url))
        await until(lambda: transport.idle == 1)
        assert await ask(transport, server.url) == await response.aread() == b"data: [DONE]\n\n"
    assert len(server.peers) == 1


async def test_origins_do_not_share_connections(transport: StreamTransport) -> None:
    async with served(always(sized(b"a"))) as one, served(always(sized(b"b"))) as two:
        for _ in range(3):
            assert await ask(transport, one.url) == b"a"
            assert await ask(transport, two.url) == b"b"
    assert (len(one.peers), len(two.peers)) == (1, 1)


@pytest.mark.parametrize(
    "answer",
    [sized(b"hi", b"Connection: close"), sized(b"hi") + b"x", sized(b"hi") + sized(b"ho"), b"HTTP/1.0 200 OK\r\n\r\n"],
)
async def test_doubtful_connections_are_not_used_again(transport: StreamTransport, answer: bytes) -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(answer)
        if answer.startswith(b"HTTP/1.1"):
            await peer.gone()

    async with served(play) as server:
        for _ in range(2):
            await ask(transport, server.url)
        assert [len(peer.requests) for peer in server.peers] == [1, 1]
        await until(lambda: not transport._open)


@pytest.mark.parametrize("stray", [b"", b"x", sized(b"late")])
async def test_an_idle_connection_that_stirs_is_dropped(transport: StreamTransport, stray: bytes) -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await peer.send(sized(b"hi"))
        await stir.wait()
        if stray:
            await peer.send(stray)
            await peer.gone()

    stir = asyncio.Event()
    async with served(play) as server:
        await ask(transport, server.url)
        assert transport.idle == 1
        stir.set()
        await until(lambda: transport.idle == 0 and not transport._open)
        assert await ask(transport, server.url) == b"hi"


async def test_a_dead_connection_is_noticed_before_the_event_loop_notices(transport: StreamTransport) -> None:
    """The close has arrived, but this loop has not looked at its sockets since."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        first = asyncio.ensure_future(ask(transport, url))
        loop = asyncio.get_running_loop()
        one = await asyncio.to_thread(lambda: listener.accept()[0])
        await asyncio.to_thread(one.recv, 65536)
        one.sendall(sized(b"one"))
        assert await first == b"one"
        assert transport.idle == 1
        one.close()
        second = asyncio.ensure_future(ask(transport, url))
        two = await asyncio.to_thread(lambda: listener.accept()[0])
        await loop.run_in_executor(None, two.recv, 65536)
        two.sendall(sized(b"two"))
        assert await second == b"two"
        two.close()


async def test_idle_connections_expire_and_are_capped() -> None:
    transport = StreamTransport(idle_s=0.05, max_idle=3)
    async with served(always(sized(b"hi"))) as server:
        await asyncio.gather(*(ask(transport, server.url) for _ in range(8)))
        assert len(server.peers) == 8
        assert transport.idle == 3
        await until(lambda: sum(peer.closed.is_set() for peer in server.peers) == 8)
        assert transport.idle == 0
    await transport.aclose()


# --- many at once ---


async def test_three_hundred_streams_at_once_keep_apart(transport: StreamTransport) -> None:
    async def play(peer: Peer) -> None:
        while (body := await peer.request()) is not None:
            await peer.send(CHUNKED + framed(body))
            for _ in range(3):
                await asyncio.sleep(0)
                await peer.send(framed(body))
            await peer.send(END)

    async def run(number: int) -> None:
        for turn in range(3):
            body = b"%d-%d" % (number, turn)
            assert await ask(transport, server.url, body) == body * 4

    async with served(play) as server:
        await asyncio.gather(*(run(number) for number in range(300)))
    assert len(server.peers) == 300
    assert transport.busy == 0


async def test_more_exchanges_than_allowed_wait_in_line() -> None:
    transport = StreamTransport(max_connections=2)
    async with served(always(sized(b"hi"))) as server:
        assert await asyncio.gather(*(ask(transport, server.url) for _ in range(20))) == [b"hi"] * 20
        assert len(server.peers) == 2
    await transport.aclose()


async def test_waiting_in_line_ends_with_a_pool_timeout_or_a_cancel() -> None:
    async def play(peer: Peer) -> None:
        await peer.request()
        await release.wait()
        await peer.send(sized(b"hi"))
        await peer.gone()

    release = asyncio.Event()
    transport = StreamTransport(max_connections=1)
    async with served(play) as server:
        first = asyncio.ensure_future(ask(transport, server.url))
        await until(lambda: transport.busy == 1)
        with pytest.raises(httpx.PoolTimeout):
            await ask(transport, server.url, pool=0.02)
        waiting = asyncio.ensure_future(ask(transport, server.url))
        await until(lambda: len(transport._queue) > 0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        release.set()
        assert await first == b"hi"
        await until(lambda: transport.busy == 0)
    await transport.aclose()


async def test_a_reader_that_does_not_read_stops_the_sender(transport: StreamTransport) -> None:
    sent = 0

    async def play(peer: Peer) -> None:
        nonlocal sent
        await peer.request()
        await peer.send(CHUNKED)
        for _ in range(400):
            await peer.send(framed(b"x" * 100_000))
            sent += 1
        await peer.send(END)
        await peer.gone()

    async with served(play) as server:
        response = await transport.handle_async_request(asked(server.url))
        (connection,) = transport._open
        await until(lambda: connection._paused)
        held = response.stream._unread  # type: ignore[union-attr]
        assert MAX_UNREAD < held < MAX_UNREAD + 600_000
        assert sent < 400
        total = 0
        async for piece in response.stream:  # type: ignore[union-attr]
            total += len(piece)
        assert total == 40_000_000
        assert transport.idle == 1


# --- cancel and close ---


async def quiet(peer: Peer) -> None:
    await peer.request()
    await peer.gone()


async def mid_body(peer: Peer) -> None:
    await peer.request()
    await peer.send(CHUNKED + framed(b"one"))
    await peer.gone()


async def ended(task: asyncio.Future[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("play", [quiet, mid_body])
async def test_a_cancel_closes_the_socket_within_two_milliseconds(transport: StreamTransport, play: Any) -> None:
    took = []
    async with served(play) as server:
        for number in range(5):
            task = asyncio.ensure_future(ask(transport, server.url))
            await until(lambda n=number: len(server.peers) > n and server.peers[n].requests)
            await asyncio.sleep(0.01)
            began = asyncio.get_running_loop().time()
            await ended(task)
            await asyncio.wait_for(server.peers[number].closed.wait(), 10)
            took.append(server.peers[number].closed_at - began)
    assert min(took) < 0.002
    assert (transport.busy, transport.idle) == (0, 0)


async def test_closing_an_unfinished_answer_closes_the_socket(transport: StreamTransport) -> None:
    async with served(mid_body) as server:
        response = await transport.handle_async_request(asked(server.url))
        await response.aclose()
        await asyncio.wait_for(server.peers[0].closed.wait(), 10)
        assert (transport.busy, transport.idle) == (0, 0)
        stream = response.stream
        with pytest.raises(httpx.ReadError):
            async for _ in stream:  # type: ignore[union-attr]
                pass


async def test_a_cancel_while_connecting_leaves_no_socket(transport: StreamTransport) -> None:
    with swallowing() as port:
        before = sockets()
        task = asyncio.ensure_future(ask(transport, f"http://127.0.0.1:{port}/"))
        await until(lambda: sockets() == before + 1)
        await ended(task)
        assert sockets() == before
    assert transport.busy == 0


async def test_a_cancel_at_any_step_leaves_nothing_behind(transport: StreamTransport) -> None:
    """Cut after 0, 1, 2, ... rounds of the event loop, from before the connect to after the end."""
    async with served(always(CHUNKED + framed(b"one") + END)) as server:
        await ask(transport, server.url)
        await transport.aclose()
        await until(lambda: all(peer.closed.is_set() for peer in server.peers))
        before = sockets()
        for fresh in (True, False):
            for rounds in range(40):
                pool = StreamTransport()
                if not fresh:
                    await ask(pool, server.url)
                task = asyncio.ensure_future(ask(pool, server.url))
                for _ in range(rounds):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                assert pool.busy == 0
                assert await ask(pool, server.url) == b"one"
                await pool.aclose()
        await until(lambda: all(peer.closed.is_set() for peer in server.peers) and sockets() == before)


async def test_closing_the_transport_ends_everything(transport: StreamTransport) -> None:
    async with served(mid_body) as server:
        task = asyncio.ensure_future(ask(transport, server.url))
        await until(lambda: transport.busy == 1 and server.peers and server.peers[0].requests)
        await transport.aclose()
        assert not transport._open
        with pytest.raises(httpx.ReadError):
            await task
        with pytest.raises(RuntimeError, match="closed"):
            await ask(transport, server.url)


def test_a_loop_that_ends_leaves_no_warning_though_nobody_closed() -> None:
    program = """
        import asyncio, gc
        import httpx
        from agents.providers.transport import StreamTransport
        from tests.agents.providers.peers import always, served, sized
        kept = []
        async def main(play, cancel):
            async with served(play) as server:
                transport = StreamTransport()
                kept.append(transport)
                request = httpx.Request("POST", server.url, content=b"")
                response = await transport.handle_async_request(request)
                if not cancel:
                    await response.aread()
        asyncio.run(main(always(sized(b"hi")), False))
        asyncio.run(main(always(sized(b"hi")[:-1]), True))
        assert not any(transport._open for transport in kept)
        kept.clear()
        gc.collect()
        print("done")
    """
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", textwrap.dedent(program)]
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("done", "")


async def test_a_transport_serves_one_event_loop_only() -> None:
    transport = StreamTransport()
    async with served(always(sized(b"hi"))) as server:
        await ask(transport, server.url)

        def elsewhere() -> None:
            with pytest.raises(RuntimeError, match="another event loop"):
                asyncio.run(ask(transport, server.url))

        await asyncio.to_thread(elsewhere)
    await transport.aclose()


# --- TLS ---


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return certificate(tmp_path_factory.mktemp("tls"))


def server_side(pair: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


async def test_https_names_the_host_and_its_protocol_and_keeps_the_connection(pair: tuple[Path, Path]) -> None:
    names: list[str | None] = []
    context = server_side(pair)
    context.sni_callback = lambda sock, name, ctx: names.append(name)
    transport = StreamTransport(ssl.create_default_context(cafile=str(pair[0])))
    async with served(always(CHUNKED + framed(b"hi") + END), tls=context) as server:
        for _ in range(5):
            assert await ask(transport, server.url) == b"hi"
        assert names == ["localhost"]
        (peer,) = server.peers
        assert peer.writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
        await transport.aclose()
        await until(lambda: peer.closed.is_set())


async def test_an_untrusted_certificate_is_a_connect_error(transport: StreamTransport, pair: tuple[Path, Path]) -> None:
    async with served(always(sized(b"hi")), tls=server_side(pair)) as server:
        with pytest.raises(httpx.ConnectError, match="certificate"):
            await ask(transport, server.url)
    assert transport.busy == 0


async def test_a_plain_server_behind_https_is_a_connect_error(transport: StreamTransport) -> None:
    async def play(peer: Peer) -> None:
        await peer.reader.read(1)
        await peer.send(sized(b"what?", status=b"400 Bad Request"))

    async with served(play) as server:
        with pytest.raises(httpx.ConnectError):
            await ask(transport, server.url.replace("http://", "https://"))


@pytest.mark.parametrize("whole", [sized(b"x" * 5_000_000), b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 5_000_000])
async def test_a_slow_reader_gets_all_of_it_over_tls(pair: tuple[Path, Path], whole: bytes) -> None:
    transport = StreamTransport(ssl.create_default_context(cafile=str(pair[0])))
    async with served(once(whole), tls=server_side(pair)) as server:
        response = await transport.handle_async_request(asked(server.url))
        (connection,) = transport._open
        await until(lambda: connection._paused)
        assert len(await response.aread()) == 5_000_000
        await until(lambda: not transport._open)
        assert (transport.busy, transport.idle) == (0, 0)
    await transport.aclose()


@pytest.mark.parametrize(
    ("play", "kind"),
    [
        (once(CHUNKED + framed(b"one")), httpx.RemoteProtocolError),
        (once(CHUNKED + framed(b"one"), reset=True), httpx.NetworkError),
    ],
)
async def test_a_broken_answer_over_tls_is_an_error(pair: tuple[Path, Path], play: Any, kind: Any) -> None:
    transport = StreamTransport(ssl.create_default_context(cafile=str(pair[0])))
    async with served(play, tls=server_side(pair)) as server:
        with pytest.raises(kind):
            await ask(transport, server.url)
    await transport.aclose()


async def test_a_cancel_over_tls_closes_the_socket_within_two_milliseconds(pair: tuple[Path, Path]) -> None:
    transport = StreamTransport(ssl.create_default_context(cafile=str(pair[0])))
    took = []
    async with served(mid_body, tls=server_side(pair)) as server:
        for number in range(5):
            task = asyncio.ensure_future(ask(transport, server.url))
            await until(lambda n=number: len(server.peers) > n and server.peers[n].requests)
            await asyncio.sleep(0.01)
            began = asyncio.get_running_loop().time()
            await ended(task)
            await asyncio.wait_for(server.peers[number].closed.wait(), 10)
            took.append(server.peers[number].closed_at - began)
    assert min(took) < 0.002
    await transport.aclose()


async def test_a_cancel_in_the_handshake_leaves_no_socket(transport: StreamTransport) -> None:
    async with served(quiet) as server:
        before = sockets()
        task = asyncio.ensure_future(ask(transport, server.url.replace("http://", "https://")))
        await until(lambda: server.peers)
        await ended(task)
        await asyncio.wait_for(server.peers[0].closed.wait(), 10)
        await until(lambda: sockets() <= before + 1)
    assert transport.busy == 0


# --- proxies ---


def test_proxies_of_the_environment_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    assert not proxied()
    monkeypatch.setenv("NO_PROXY", "localhost")
    assert not proxied()
    for name in ("HTTPS_PROXY", "http_proxy", "ALL_PROXY"):
        with monkeypatch.context() as patched:
            patched.setenv(name, "http://127.0.0.1:3128")
            assert proxied()
