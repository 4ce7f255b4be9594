"""The way to providers: httpx' transport over our own connections, for requests with one body and streamed answers.

Streaming through httpcore and h11 costs several times the CPU of everything else that a turn of a loop does.
"""

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator
from ssl import SSLContext
from urllib.request import getproxies

import httpx

from agents.providers.connection import Answer, Connection, Origin

_PORTS = {"http": 80, "https": 443}
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
# A line end inside of a header would let a value write headers, and requests, of its own: lines are counted as well.
_HEAD = re.compile(rb"%b [!-~]+ HTTP/1\.1\r\n(?:%b: [^\r\n\0]*\r\n)*\r\n" % (_TOKEN, _TOKEN))
_HEADER = re.compile(rb"%b: [^\r\n\0]*\r\n" % _TOKEN)


def proxied() -> bool:
    """Whether the environment names a proxy. httpx' own transport speaks to proxies, ours does not."""
    proxies = getproxies()
    return any(proxies.get(scheme) for scheme in ("http", "https", "all"))


class StreamTransport(httpx.AsyncBaseTransport):
    """Belongs to the event loop that it is first used on, and closes with it at the latest.

    `max_connections` bounds the exchanges under way, `max_idle` the connections kept open for the next ones. A request
    is sent once: when its connection breaks, the caller decides whether that is worth another try.
    """

    def __init__(
        self,
        tls: SSLContext | None = None,
        idle_s: float = 30.0,
        *,
        max_connections: int = 1000,
        max_idle: int = 1000,
    ) -> None:
        self._tls = tls
        self._max_connections = max_connections
        self._max_idle = max_idle
        self._idle_s = idle_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end_of_loop: AsyncGenerator[None, None] | None = None
        self._closed = False
        self._open: set[Connection] = set()
        # Per origin, the one used last at the end; and all of them, the one that rests longest first.
        self._idle: dict[Origin, dict[Connection, None]] = {}
        self._resting: dict[Connection, None] = {}
        self._expiry: asyncio.TimerHandle | None = None
        self._busy = 0
        self._queue: deque[asyncio.Future[None]] = deque()

    @property
    def busy(self) -> int:
        """Exchanges under way, those still connecting among them."""
        return self._busy

    @property
    def idle(self) -> int:
        return len(self._resting)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        data = await encoded(request)
        timeout = request.extensions.get("timeout", {})
        connection = await self._connection(_origin(request.url), timeout)
        if (sent := request.extensions.get("sent")) is not None:
            # From here on the other side may have heard us, and may charge for it.
            sent()
        answer = connection.ask(data, head_only=request.method == "HEAD", read_s=timeout.get("read"))
        await answer.head(timeout.get("write"))
        return _response(answer)

    async def aclose(self) -> None:
        """Close every connection; answers under way fail."""
        self._closed = True
        if (end := self._end_of_loop) is not None:
            self._end_of_loop = None
            await end.aclose()

    # --- connections ---

    async def _connection(self, origin: Origin, timeout: dict[str, float | None]) -> Connection:
        if self._closed:
            raise RuntimeError("the transport is closed")
        if self._loop is not asyncio.get_running_loop():
            await self._settle()
        if self._busy < self._max_connections:
            self._busy += 1
        else:
            await self._turn(timeout.get("pool"))
        resting = self._idle.get(origin)
        while resting:
            connection, _ = resting.popitem()
            del self._resting[connection]
            if connection.usable():
                return connection
            connection.close()
        try:
            return await self._connect(origin, timeout.get("connect"))
        except BaseException:
            self._leave()
            raise

    async def _connect(self, origin: Origin, connect_s: float | None) -> Connection:
        scheme, host, port = origin
        # A name may lead to several addresses, of which one swallows everything: try the next one soon.
        literal = ":" in host or host.replace(".", "").isdigit()
        try:
            async with asyncio.timeout(connect_s):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: Connection(self, origin),
                    host,
                    port,
                    ssl=self._context() if scheme == "https" else None,
                    happy_eyeballs_delay=None if literal else 0.25,
                )
        except TimeoutError as error:
            raise httpx.ConnectTimeout(str(error) or f"no connection within {connect_s} s") from error
        except (OSError, ValueError) as error:
            raise httpx.ConnectError(str(error) or type(error).__name__) from error
        return connection

    def _context(self) -> SSLContext:
        if self._tls is None:
            self._tls = httpx.create_ssl_context()
        self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls

    async def _turn(self, pool_s: float | None) -> None:
        """Wait in line for the end of another exchange, whose place passes over to this one."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(waiter)
        try:
            async with asyncio.timeout(pool_s):
                await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled():
                self._leave()
            if isinstance(error, TimeoutError):
                raise httpx.PoolTimeout(f"{self._max_connections} connections are busy") from None
            raise

    def _leave(self) -> None:
        while self._queue:
            waiter = self._queue.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._busy -= 1

    # --- what connections tell ---

    def made(self, connection: Connection) -> None:
        self._open.add(connection)
        if self._closed:
            connection.close()

    def freed(self, connection: Connection, *, reusable: bool) -> None:
        self._leave()
        if not reusable or self._closed or not self._max_idle:
            connection.close()
            return
        if len(self._resting) >= self._max_idle:
            self._drop(next(iter(self._resting)))
        connection.idle_since = asyncio.get_running_loop().time()
        self._idle.setdefault(connection.origin, {})[connection] = None
        self._resting[connection] = None
        if self._expiry is None:
            self._expiry = asyncio.get_running_loop().call_later(self._idle_s, self._expire)

    def lost(self, connection: Connection) -> None:
        self._open.discard(connection)
        self._forget(connection)

    def _forget(self, connection: Connection) -> None:
        if connection in self._resting:
            del self._resting[connection]
            del self._idle[connection.origin][connection]

    def _drop(self, connection: Connection) -> None:
        self._forget(connection)
        connection.close()

    def _expire(self) -> None:
        self._expiry = None
        loop = asyncio.get_running_loop()
        for connection in list(self._resting):
            ends = connection.idle_since + self._idle_s
            if ends > loop.time():
                self._expiry = loop.call_at(ends, self._expire)
                return
            self._drop(connection)

    # --- the end ---

    async def _settle(self) -> None:
        """Bind to the running loop."""
        if self._loop is not None:
            raise RuntimeError("the transport belongs to another event loop")
        self._loop = asyncio.get_running_loop()
        self._end_of_loop = self._until_the_loop_ends()
        await anext(self._end_of_loop)

    async def _until_the_loop_ends(self) -> AsyncGenerator[None, None]:
        """Loops close their generators before they end: the last moment to close sockets in good order."""
        try:
            yield
        finally:
            self._closed = True
            # Whoever keeps the transport keeps no event loop alive with it.
            self._loop = self._end_of_loop = None
            if self._expiry is not None:
                self._expiry.cancel()
                self._expiry = None
            for connection in list(self._open):
                connection.close()
            while self._open:  # noqa: ASYNC110 - the sockets close within the next rounds of the loop
                await asyncio.sleep(0)


async def encoded(request: httpx.Request) -> bytes:
    """Head and body, ready for one write. Raises LocalProtocolError, without the value, for a header out of form."""
    lines = [name + b": " + value + b"\r\n" for name, value in request.headers.raw]
    target = request.url.raw_path
    head = b"%b %b HTTP/1.1\r\n%b\r\n" % (request.method.encode("ascii"), target, b"".join(lines))
    if head.count(b"\n") != len(lines) + 2 or not _HEAD.fullmatch(head):
        bad = next((line.partition(b":")[0] for line in lines if not _HEADER.fullmatch(line)), target)
        raise httpx.LocalProtocolError(f"illegal header or target {bad[:100]!r}")
    try:
        body = request.content
    except httpx.RequestNotRead:
        body = await request.aread()
    if b"\r\ntransfer-encoding: chunked\r\n" in head.lower():
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    return head + body


def _origin(url: httpx.URL) -> Origin:
    scheme = url.scheme
    if scheme not in _PORTS:
        raise httpx.UnsupportedProtocol(f"only http and https can be used, not {scheme!r}")
    return scheme, url.raw_host.decode("ascii"), url.port or _PORTS[scheme]


def _response(answer: Answer) -> httpx.Response:
    extensions = {"http_version": b"HTTP/" + answer.version.encode("ascii"), "reason_phrase": answer.reason}
    return httpx.Response(answer.status, headers=answer.headers, stream=answer, extensions=extensions)
