"""An MCP server behind an address: the SDK's streamable HTTP over a client of ours, which bounds what it takes in."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

LONGEST_ANSWER = 8 * 1024 * 1024
CONNECT_S = 10.0
# What a closing session may take to say good-bye.
LEAVE_S = 0.3


@asynccontextmanager
async def reached(
    url: str, *, headers: Mapping[str, str], read_s: float, hurry: Callable[[], bool]
) -> AsyncIterator[tuple[Any, Any]]:
    """The session's streams while the context lasts. `hurry` tells at its end to cut every connection first."""
    timeout = httpx2.Timeout(CONNECT_S, read=read_s)
    # No proxy from the environment, nor cookies: what goes to this server is what the agent's row says.
    client = httpx2.AsyncClient(
        headers=dict(headers), timeout=timeout, trust_env=False, event_hooks={"response": [_bounded]}
    )
    async with client, streamable_http_client(url, http_client=client, max_sse_event_size=LONGEST_ANSWER) as streams:
        try:
            yield streams[0], streams[1]
        finally:
            if hurry():
                await client.aclose()
            else:
                client.timeout = httpx2.Timeout(LEAVE_S)


async def _bounded(response: httpx2.Response) -> None:
    """A body that is read whole stays within bounds; a stream of events has its own."""
    if "text/event-stream" not in response.headers.get("content-type", ""):
        response.stream = _Capped(response.stream)


class _Capped(httpx2.AsyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = 0
        async for chunk in self._stream:
            total += len(chunk)
            if total > LONGEST_ANSWER:
                raise httpx2.ReadError(f"the server sent more than {LONGEST_ANSWER} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
