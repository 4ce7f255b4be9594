"""One HTTP/1.1 connection: sends a request in one write, parses the answer and hands it out as a stream."""

import asyncio
import select
from typing import Protocol, Self

import httptools
import httpx

# Unread bytes of an answer above which its socket is not read any more.
MAX_UNREAD = 1024 * 1024
# Bytes on the wire without a single byte of a body: the head, trailers, chunk extensions, interim answers.
MAX_BARREN = 100 * 1024

Origin = tuple[str, str, int]


class Owner(Protocol):
    """Who keeps the connections."""

    def made(self, connection: "Connection") -> None: ...
    def freed(self, connection: "Connection", *, reusable: bool) -> None:
        """The exchange on this connection is over; called exactly once for each `ask`."""
        ...

    def lost(self, connection: "Connection") -> None:
        """The socket is closed."""
        ...


class _Stop(Exception):
    """Ends the parser where the answer ends, whatever bytes follow."""


class Answer(httpx.AsyncByteStream):
    """The answer to one request. Its connection fills it and forgets it when it is complete, read or not."""

    __slots__ = ("_connection", "_pieces", "_read_s", "_unread", "_waiter", "complete", "error", "headers", "opened",
                 "reason", "status", "version")  # fmt: skip

    def __init__(self, connection: "Connection", read_s: float | None) -> None:
        self._connection: Connection | None = connection
        self._read_s = read_s
        self._waiter: asyncio.Future[None] | None = None
        self._pieces: list[bytes] = []
        self._unread = 0
        self.status = 0
        self.reason = b""
        self.version = ""
        self.headers: list[tuple[bytes, bytes]] = []
        # The head is here; the whole answer is here; why it will never be.
        self.opened = False
        self.complete = False
        self.error: Exception | None = None

    # --- for the reader ---

    async def head(self, write_s: float | None) -> None:
        """Until status and headers are known."""
        while not self.opened:
            if self.error is not None:
                raise self.error
            if self._connection is not None and self._connection.unsent:
                await self._news(write_s, httpx.WriteTimeout)
            else:
                await self._news(self._read_s, httpx.ReadTimeout)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """Everything that came since the last time."""
        while not self._pieces:
            if self.error is not None:
                raise self.error
            if self.complete:
                raise StopAsyncIteration
            await self._news(self._read_s, httpx.ReadTimeout)
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._unread = 0
        if self._connection is not None:
            self._connection.flow()
        return data

    async def aclose(self) -> None:
        self.abort()

    def abort(self) -> None:
        """Close the socket now, unless the answer is complete: then the connection serves others already."""
        if self._connection is not None:
            self._connection.fail(httpx.ReadError("the answer was given up"))

    async def _news(self, seconds: float | None, expired: type[httpx.TimeoutException]) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            if seconds is None:
                await self._waiter
            else:
                async with asyncio.timeout(seconds):
                    await self._waiter
        except TimeoutError:
            self.abort()
            raise expired(f"nothing moved for {seconds:g} s") from None
        except BaseException:
            self.abort()
            raise
        finally:
            self._waiter = None

    # --- for the connection ---

    def add(self, piece: bytes) -> int:
        self._pieces.append(piece)
        self._unread += len(piece)
        return self._unread

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def release(self) -> None:
        self._connection = None
        self.wake()

    def lasts_until_close(self) -> bool:
        """Whether nothing but the end of the connection ends the body."""
        coding = b""
        for name, value in self.headers:
            lowered = name.lower()
            if lowered == b"content-length":
                return False
            if lowered == b"transfer-encoding":
                coding = value
        return coding.rpartition(b",")[2].strip().lower() != b"chunked"


class Connection(asyncio.Protocol):
    """The parser's and the event loop's callbacks. At most one answer at a time; bytes that nobody asked for end it."""

    __slots__ = ("_answer", "_barren", "_clean", "_complete", "_head_only", "_interim", "_owner", "_parser", "_paused",
                 "_poll", "_transport", "idle_since", "origin", "unsent")  # fmt: skip

    def __init__(self, owner: Owner, origin: Origin) -> None:
        self._owner = owner
        self.origin = origin
        self.idle_since = 0.0
        self.unsent = False
        self._transport: asyncio.Transport
        self._poll = select.poll()
        self._answer: Answer | None = None
        self._barren = 0
        self._head_only = self._interim = self._complete = self._paused = False
        # Nothing came on this connection that leaves its next answer in doubt.
        self._clean = True
        self._parser = httptools.HttpResponseParser(self)
        # As lenient as browsers are; none of it makes the end of a message uncertain for a client.
        self._parser.set_dangerous_leniencies(
            lenient_chunked_length=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    def ask(self, request: bytes, *, head_only: bool, read_s: float | None) -> Answer:
        """Send a request. Whatever becomes of it is told by the answer."""
        answer = self._answer = Answer(self, read_s)
        self._head_only = head_only
        self._complete = False
        self._barren = 0
        self._transport.write(request)
        return answer

    def usable(self) -> bool:
        """Asks the socket too: the event loop may not have seen yet that the other side is gone."""
        return not self._transport.is_closing() and not self._poll.poll(0)

    def close(self) -> None:
        """At once, without a goodbye. An answer under way fails."""
        self.fail(httpx.ReadError("the connection was closed from here"))

    def fail(self, error: Exception) -> None:
        """End the connection, and with it the answer under way."""
        self._transport.abort()
        if (answer := self._answer) is not None:
            answer.error = error
            self._end(answer, reusable=False)

    def flow(self) -> None:
        """The reader has taken everything: read on."""
        if self._paused:
            self._paused = False
            self._transport.resume_reading()

    def _end(self, answer: Answer, *, reusable: bool) -> None:
        self._answer = None
        self.flow()
        self._owner.freed(self, reusable=reusable and not self._transport.is_closing())
        answer.release()

    # --- the event loop's callbacks ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # With no room to wait in, `pause_writing` says whether something is unsent. (TLS takes 0 for always full.)
        transport.set_write_buffer_limits(high=1, low=0)
        self._poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
        self._owner.made(self)

    def pause_writing(self) -> None:
        self.unsent = True

    def resume_writing(self) -> None:
        self.unsent = False
        if self._answer is not None:
            self._answer.wake()

    def data_received(self, data: bytes) -> None:
        answer = self._answer
        if answer is None:
            self._transport.abort()
            return
        self._barren += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self._complete:
                self.fail(httpx.RemoteProtocolError(f"the answer is no HTTP: {error}"))
                return
            self._clean = False
        if self._complete:
            answer.complete = True
            # An answer that came before the request was out leaves the rest of it on the way.
            self._end(answer, reusable=self._clean and not self.unsent)
        elif self._barren > MAX_BARREN:
            self.fail(httpx.RemoteProtocolError("the head of the answer is too large"))
        else:
            answer.wake()

    def eof_received(self) -> None:
        self._gone(None)

    def connection_lost(self, error: Exception | None) -> None:
        self._owner.lost(self)
        self._gone(error)

    def _gone(self, error: Exception | None) -> None:
        """The other side ended it. What it has said remains readable, and then the error."""
        answer = self._answer
        if answer is None:
            self._transport.abort()
        elif error is not None:
            kind = httpx.WriteError if self.unsent else httpx.ReadError
            self.fail(kind(str(error) or type(error).__name__))
        elif not answer.opened:
            self.fail(httpx.RemoteProtocolError("the server closed the connection without an answer"))
        elif answer.lasts_until_close():
            answer.complete = True
            self._end(answer, reusable=False)
        else:
            self.fail(httpx.RemoteProtocolError("the server closed the connection before the answer was complete"))

    # --- the parser's callbacks ---

    def on_message_begin(self) -> None:
        if self._complete:
            raise _Stop

    def on_status(self, piece: bytes) -> None:
        if (answer := self._answer) is not None:
            answer.reason += piece

    def on_header(self, name: bytes, value: bytes) -> None:
        # Trailers come here too.
        if (answer := self._answer) is not None and not answer.opened:
            answer.headers.append((name, value))

    def on_headers_complete(self) -> None:
        answer = self._answer
        assert answer is not None
        status = self._parser.get_status_code()
        if 100 <= status < 200 and status != 101:
            self._interim = True
            answer.headers.clear()
            answer.reason = b""
            return
        self._barren = 0
        answer.status = status
        answer.version = self._parser.get_http_version()
        answer.opened = True
        if self._head_only:
            self._complete = True
            raise _Stop

    def on_body(self, piece: bytes) -> None:
        self._barren = 0
        answer = self._answer
        if answer is not None and answer.add(piece) > MAX_UNREAD and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        if self._interim:
            self._interim = False
            return
        self._complete = True
        if not self._parser.should_keep_alive():
            self._clean = False
