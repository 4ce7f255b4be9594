"""The one place that opens sockets to providers: a shared client per event loop, and the clocks that watch a stream."""

import asyncio
from dataclasses import dataclass
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ssl import SSLContext
from types import TracebackType
from typing import Self
from weakref import WeakKeyDictionary

import httpx

from agents.errors import ConfigError
from agents.providers.transport import StreamTransport, proxied

# Far above the number of runs that one worker holds.
MAX_CONNECTIONS = 1000
KEEPALIVE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalls:
    """How long an attempt may stand still, in seconds; None switches a clock off.

    `byte_silence_s`: nothing at all arrives, not even a ping. `no_progress_s`: nothing of an answer arrives; comments,
    pings and empty chunks do not count. `usage_wait_s`: after the finish reason, for a usage chunk and the end mark.
    `close_wait_s`: after the end mark, for the end of the response, so that the connection can be used again.
    """

    connect_s: float | None = 15.0
    byte_silence_s: float | None = 180.0
    no_progress_s: float | None = 300.0
    usage_wait_s: float = 1.0
    close_wait_s: float = 0.02


DEFAULT_STALLS = Stalls()

_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()
_transports: WeakKeyDictionary[asyncio.AbstractEventLoop, StreamTransport] = WeakKeyDictionary()


@cache
def _tls() -> SSLContext:
    """Reading the trust store takes tens of milliseconds, so it happens once per process."""
    return httpx.create_ssl_context()


def _transport(tls: SSLContext) -> StreamTransport:
    return StreamTransport(tls=tls, max_connections=MAX_CONNECTIONS, max_idle=MAX_CONNECTIONS, idle_s=KEEPALIVE_S)


def shared_client() -> httpx.AsyncClient:
    """The running event loop's client. It keeps no cookies and follows no redirects: it serves many credentials."""
    loop = asyncio.get_running_loop()
    client = _clients.get(loop)
    if client is None or client.is_closed:
        tls = _tls()
        transport = None if proxied() else _transport(tls)
        if transport is not None:
            _transports[loop] = transport
        client = _clients[loop] = httpx.AsyncClient(
            verify=tls,
            transport=transport,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            follow_redirects=False,
            # Only where a proxy is in the way. httpcore counts active connections into the keep-alive limit.
            limits=httpx.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_CONNECTIONS),
            timeout=None,
        )
    return client


async def send(request: httpx.Request) -> httpx.Response:
    """Send once, with the answer as a stream.

    Straight to our transport where that does: what the client does in between (cookies, redirects, sign-in) costs more
    than the transport itself, and a provider needs none of it but the credentials in an address.
    """
    client = shared_client()
    transport = _transports.get(asyncio.get_running_loop())
    if transport is None or request.url.userinfo:
        return await client.send(request, stream=True)
    response = await transport.handle_async_request(request)
    response.request = request
    return response


async def close() -> None:
    """Close the running loop's client, if it has one."""
    loop = asyncio.get_running_loop()
    _transports.pop(loop, None)
    if client := _clients.pop(loop, None):
        await client.aclose()


def base_address(base_url: str) -> httpx.URL:
    """The base URL, checked. Raises ConfigError `bad_base_url` with what to write instead."""
    text = base_url.strip()
    shown = repr(text[:200])
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, TypeError, ValueError) as error:
        raise ConfigError("bad_base_url", f"{shown} is no URL ({error}); write http(s)://HOST[:PORT]/v1") from None
    if not text:
        raise ConfigError("bad_base_url", "the base URL is empty; write http(s)://HOST[:PORT]/v1")
    if url.scheme not in ("http", "https"):
        hint = f"write http://{text} or https://{text}" if "://" not in text else "only http and https can be used"
        raise ConfigError("bad_base_url", f"{shown} is no HTTP address; {hint}")
    if not url.host or "%" in url.host:
        raise ConfigError("bad_base_url", f"{shown} names no host; write http(s)://HOST[:PORT]/v1")
    if url.port is not None and not 0 < url.port < 65536:
        raise ConfigError("bad_base_url", f"{shown} has no possible port; write one between 1 and 65535")
    return url.copy_with(fragment=None)


def endpoint(base: httpx.URL, path: str) -> httpx.URL:
    """`path` below the base address; a base that already ends in it is taken as it is, and a query stays."""
    below = base.path.rstrip("/").removesuffix(path)
    return base.copy_with(path=below + path)


class Watch:
    """Ends the block that it wraps when a stream stands still; `expired` then says which clock ran out.

    One timer per attempt, looked at only when it fires: touching a clock costs an assignment, not a timer. Cancellation
    from outside passes through untouched (`asyncio.timeout` tells the two apart).
    """

    __slots__ = ("_end_at", "_loop", "_scope", "_stalls", "_timer", "byte_at", "expired", "progress_at", "started_at")

    def __init__(self, stalls: Stalls) -> None:
        self._stalls = stalls
        self._loop = asyncio.get_running_loop()
        self._scope = asyncio.timeout(None)
        self._timer: asyncio.TimerHandle | None = None
        self._end_at: float | None = None
        self.expired: str | None = None
        self.started_at = self.byte_at = self.progress_at = self._loop.time()

    def end_within(self, seconds: float) -> None:
        """The answer is complete but for details: end the block in this time at the latest, as `settled`."""
        at = self._loop.time() + seconds
        if self._end_at is None or at < self._end_at:
            self._end_at = at
            self._arm()

    async def __aenter__(self) -> Self:
        await self._scope.__aenter__()
        self._arm()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await self._scope.__aexit__(kind, error, trace)

    def _deadlines(self) -> list[tuple[float, str]]:
        stalls = self._stalls
        found: list[tuple[float, str]] = []
        if self._end_at is not None:
            return [(self._end_at, "settled")]
        if stalls.byte_silence_s is not None:
            found.append((self.byte_at + stalls.byte_silence_s, "byte_silence"))
        if stalls.no_progress_s is not None:
            found.append((self.progress_at + stalls.no_progress_s, "no_progress"))
        return found

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        deadlines = self._deadlines()
        self._timer = self._loop.call_at(min(deadlines)[0], self._look) if deadlines else None

    def _look(self) -> None:
        self._timer = None
        now = self._loop.time()
        at, name = min(self._deadlines())
        if at <= now:
            self.expired = name
            self._scope.reschedule(now)
        else:
            self._arm()
