"""The connection's parser by itself: any cut of the bytes gives the same answer, and no cut-off gives a whole one."""

import asyncio
import itertools
import socket
from typing import Any

import httpx
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.providers.connection import Answer, Connection
from tests.agents.providers.peers import framed

BODIES = st.lists(st.binary(min_size=1, max_size=40), max_size=5)
HEADERS = st.lists(
    st.tuples(st.sampled_from([b"X-One", b"date", b"Server"]), st.sampled_from([b"", b"a", b"a: b, c", b"\xe9"])),
    max_size=4,
)


class Wire(asyncio.Transport):
    """Notes what the connection does to its socket."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__({"socket": sock})
        self.aborted = False
        self.written = b""

    def write(self, data: Any) -> None:
        self.written += data

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True


class Keeper:
    """Counts what a connection tells its owner."""

    def __init__(self) -> None:
        self.freed_as: list[bool] = []

    def made(self, connection: Connection) -> None:
        pass

    def lost(self, connection: Connection) -> None:
        pass

    def freed(self, connection: Connection, *, reusable: bool) -> None:
        self.freed_as.append(reusable)


def opened() -> tuple[Connection, Wire, Keeper]:
    keeper = Keeper()
    connection = Connection(keeper, ("http", "x", 80))
    with socket.socket() as sock:
        wire = Wire(sock)
        connection.connection_made(wire)
    return connection, wire, keeper


def read(answer: Answer) -> tuple[bytes, Exception | None]:
    """The body that is there, and what comes after it."""

    async def gather() -> tuple[bytes, Exception | None]:
        body = b""
        try:
            async for piece in answer:
                body += piece
        except httpx.HTTPError as error:
            return body, error
        return body, None

    step = gather().send
    try:
        step(None)
    except StopIteration as stop:
        found: tuple[bytes, Exception | None] = stop.value
        return found
    raise AssertionError("the answer is not over")


@st.composite
def answers(draw: st.DrawFn) -> tuple[bytes, list[tuple[bytes, bytes]], bytes, str]:
    """The bytes of an answer, its headers, its body, and how it is framed."""
    headers, pieces = draw(HEADERS), draw(BODIES)
    framing = draw(st.sampled_from(["chunked", "length", "close"]))
    body = b"".join(pieces)
    if framing == "chunked":
        headers = [*headers, (b"Transfer-Encoding", b"chunked")]
        trailer = draw(st.sampled_from([b"", b"X-Trailer: 1\r\n"]))
        sent = framed(*pieces) + b"0\r\n" + trailer + b"\r\n"
    elif framing == "length":
        headers = [(b"Content-Length", b"%d" % len(body)), *headers]
        sent = body
    else:
        sent = body
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in headers)
    interim = draw(st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early\r\nLink: a\r\n\r\n"]))
    return interim + b"HTTP/1.1 200 Fine\r\n" + lines + b"\r\n" + sent, headers, body, framing


def cuts(data: bytes, at: list[int]) -> list[bytes]:
    edges = [0, *sorted({n % (len(data) + 1) for n in at}), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges) if a < b]


POSITIONS = st.lists(st.integers(0, 10_000), max_size=12)


@settings(max_examples=400, deadline=None)
@given(answers(), POSITIONS, st.integers(1, 3))
def test_any_cut_of_the_bytes_gives_the_same_answer(made: Any, at: list[int], times: int) -> None:
    data, headers, body, framing = made
    connection, wire, keeper = opened()
    for _ in range(1 if framing == "close" else times):
        answer = connection.ask(b"GET", head_only=False, read_s=None)
        for piece in cuts(data, at):
            connection.data_received(piece)
        if framing == "close":
            connection.eof_received()
        assert (answer.status, answer.reason, answer.headers) == (200, b"Fine", headers)
        assert answer.complete
        assert read(answer) == (body, None)
    assert keeper.freed_as == ([False] if framing == "close" else [True] * times)
    assert not wire.aborted


@settings(max_examples=400, deadline=None)
@given(answers(), POSITIONS, st.integers(0, 10_000), st.sampled_from([None, ConnectionResetError("reset")]))
def test_no_answer_that_is_cut_off_passes_for_a_whole_one(
    made: Any, at: list[int], end: int, error: Exception | None
) -> None:
    data, _, body, framing = made
    end %= len(data)
    connection, _wire, keeper = opened()
    answer = connection.ask(b"GET", head_only=False, read_s=None)
    for piece in cuts(data[:end], at):
        connection.data_received(piece)
    connection.connection_lost(error)
    got, failure = read(answer)
    assert body.startswith(got)
    assert keeper.freed_as == [False]
    if error is not None:
        assert isinstance(failure, httpx.ReadError)
    elif framing == "close" and answer.opened:
        assert failure is None
    else:
        assert isinstance(failure, httpx.RemoteProtocolError)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), POSITIONS, st.booleans())
def test_rubbish_ends_in_an_answer_or_an_error_and_frees_the_connection_once(
    rubbish: bytes, at: list[int], headed: bool
) -> None:
    connection, _, keeper = opened()
    answer = connection.ask(b"GET", head_only=False, read_s=None)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" if headed else b""
    for piece in cuts(head + rubbish, at):
        connection.data_received(piece)
    connection.eof_received()
    connection.connection_lost(None)
    read(answer)
    assert len(keeper.freed_as) == 1


@settings(max_examples=200, deadline=None)
@given(answers(), st.binary(min_size=1, max_size=60), POSITIONS)
def test_bytes_after_the_answer_never_reach_the_next_one(made: Any, stray: bytes, at: list[int]) -> None:
    data, _, body, framing = made
    if framing == "close" or not stray.strip(b"\r\n"):
        return
    connection, wire, keeper = opened()
    answer = connection.ask(b"GET", head_only=False, read_s=None)
    for piece in cuts(data + stray, at):
        connection.data_received(piece)
    assert read(answer) == (body, None)
    assert wire.aborted or keeper.freed_as == [False]
