"""The bus of many machines: Redis pub/sub, sent in pipelines by one thread, read on a connection of its own."""

import asyncio
import os
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import hiredis
import redis
from redis.backoff import NoBackoff
from redis.connection import SSLConnection, parse_url
from redis.retry import Retry

from control.runs.bus import Deliver, Reader, Subscription
from control.runs.bus_outbox import Message, Outbox

PING_EVERY_S = 5.0
SILENT_AFTER_S = 15.0


def _where(url: str) -> dict[str, Any]:
    parts: dict[str, Any] = dict(parse_url(url))  # type: ignore[no-untyped-call]
    return parts


def channel_prefix(url: str, installation: str) -> str:
    """What stands before a topic. Pub/sub is not bound to a database number, so the number is in it too: two
    installations on one server stay apart by either."""
    return f"{installation}:{_where(url).get('db', 0)}:"


def client(url: str, timeout_s: float = 0.5) -> redis.Redis:
    """A client for short requests that must not hang: one try, bounded."""
    return redis.Redis.from_url(
        url,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        socket_keepalive=True,
        retry=Retry(NoBackoff(), 0),
    )


def _packed(*words: str | bytes) -> bytes:
    packed: bytes = hiredis.pack_command(words)  # type: ignore[arg-type]  # the stub knows one word only
    return packed


class _RedisLink(asyncio.Protocol):
    """A subscribed connection. Speaks RESP2 directly: redis-py's asyncio reader costs ten times as much a message."""

    def __init__(self, prefix: str, topics: Sequence[str], auth: tuple[str, ...], deliver: Deliver) -> None:
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self.ready: asyncio.Future[None] = self._loop.create_future()
        self._auth = auth
        self._wanted = len(topics)
        self._topics = {(prefix + topic).encode(): topic for topic in topics}
        self._deliver = deliver
        self._reader = hiredis.Reader()
        self._transport: asyncio.WriteTransport | None = None
        self._heard_at = time.monotonic()
        self._pinger: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport
        if self._auth:
            transport.write(_packed("AUTH", *self._auth))
        # So that an operator sees in CLIENT LIST whose connection it is.
        transport.write(_packed("CLIENT", "SETNAME", f"pilothouse-bus-{os.getpid()}"))
        transport.write(_packed("SUBSCRIBE", *self._topics))
        self._pinger = self._loop.call_later(PING_EVERY_S, self._ping)

    def data_received(self, data: bytes) -> None:
        self._heard_at = time.monotonic()
        self._reader.feed(data)
        while (reply := self._reader.gets()) is not False:
            if isinstance(reply, hiredis.ReplyError):
                self._refuse(ConnectionError(f"Redis refused the subscription: {reply}"))
                return
            if not isinstance(reply, list):
                continue
            if reply[0] == b"message":
                self._deliver(self._topics[reply[1]], reply[2])
            elif reply[0] == b"subscribe" and reply[2] == self._wanted and not self.ready.done():
                self.ready.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._pinger is not None:
            self._pinger.cancel()
        if not self.ready.done():
            self.ready.set_exception(ConnectionError("Redis closed the connection"))
        if not self.closed.done():
            self.closed.set_result(None)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _refuse(self, error: Exception) -> None:
        if not self.ready.done():
            self.ready.set_exception(error)
        self.close()

    def _ping(self) -> None:
        # A peer that vanished without a FIN is noticed only by asking.
        if time.monotonic() - self._heard_at > SILENT_AFTER_S:
            self.close()
            return
        if self._transport is not None:
            self._transport.write(_packed("PING"))
        self._pinger = self._loop.call_later(PING_EVERY_S, self._ping)


class RedisBus:
    def __init__(self, url: str, installation: str) -> None:
        """`installation` is REDIS_PREFIX: only those of the same name hear each other."""
        self._url = url
        self._prefix = channel_prefix(url, installation)
        self._client = client(url)
        self._outbox = Outbox("bus sender", self._send)

    def publish(self, topic: str, message: bytes) -> None:
        self._outbox.put(topic, message)

    async def subscribe(self, topics: Iterable[str], deliver: Deliver) -> Subscription:
        reader = Reader(self._connector(tuple(topics)), deliver)
        await reader.start()
        return reader

    def close(self, timeout_s: float = 0.5) -> None:
        self._outbox.close(timeout_s)
        self._client.close()

    def _send(self, batch: Sequence[Message]) -> None:
        try:
            with self._client.pipeline(transaction=False) as pipeline:
                for topic, message in batch:
                    pipeline.publish(self._prefix + topic, message)
                pipeline.execute()
        except redis.RedisError as error:
            raise ConnectionError(str(error)) from error

    def _connector(self, topics: Sequence[str]) -> Callable[[Deliver], Awaitable[_RedisLink]]:
        where = _where(self._url)
        password = where.get("password")
        user = where.get("username")
        auth = tuple(part for part in (user, password) if part) if password else ()

        async def connect(deliver: Deliver) -> _RedisLink:
            loop = asyncio.get_running_loop()

            def make() -> _RedisLink:
                return _RedisLink(self._prefix, topics, auth, deliver)

            if "path" in where:
                _, link = await loop.create_unix_connection(make, where["path"])
            else:
                tls = ssl.create_default_context() if where.get("connection_class") is SSLConnection else None
                host, port = where.get("host", "localhost"), where.get("port", 6379)
                _, link = await loop.create_connection(make, host, port, ssl=tls)
            try:
                await link.ready
            except BaseException:
                link.close()
                raise
            return link

        return connect
