"""HTTP over ASGI with one hop: a request runs whole in a thread of a bounded pool that keeps its database connection.

Django's own ASGI handler gives each request a thread of its own, and so a new database connection (2.5 ms against a
local PostgreSQL, more over a network), and changes threads for every middleware. Stopping a run must not wait for that.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any, cast

from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, ASGIRequest, get_script_prefix
from django.core.handlers.base import BaseHandler
from django.http import FileResponse, HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

THREADS = 16
# Well above what any form or API call of ours needs; Django checks its own limits below this one.
LARGEST_BODY = 8 * 1024 * 1024


class BodyTooLarge(Exception):
    pass


class ThreadedHandler(ASGIHandler):
    """An ASGI application for HTTP scopes; websockets are routed elsewhere."""

    def __init__(self, threads: int = THREADS) -> None:
        BaseHandler.__init__(self)
        self.load_middleware(is_async=False)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="http")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"this handler serves HTTP, not {scope['type']}")
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        except BodyTooLarge:
            await self.send_response(_too_large(), send)
            return
        try:
            await self._serve(scope, body, send)
        finally:
            body.close()

    async def _serve(self, scope: Scope, body: IO[bytes], send: Send) -> None:
        request, refused = self.create_request(scope, body)
        response: HttpResponseBase
        if request is None:
            response = cast(HttpResponse, refused)
        else:
            response = await self._in_thread(self._respond, scope, request)
        try:
            await self.send_response(self._streamed(response), send)
        finally:
            await self._in_thread(response.close)

    def _respond(self, scope: Scope, request: ASGIRequest) -> HttpResponseBase:
        set_script_prefix(get_script_prefix(scope))
        signals.request_started.send(sender=self.__class__, scope=scope)
        response = self.get_response(cast(HttpRequest, request))
        # What `close` sends `request_finished` as.
        response._handler_class = self.__class__  # type: ignore[attr-defined]
        if isinstance(response, FileResponse):
            response.block_size = self.chunk_size
        return response

    def _streamed(self, response: HttpResponseBase) -> HttpResponseBase:
        """A response that reads files, with the reading done in the pool and not on the loop."""
        if isinstance(response, StreamingHttpResponse) and not response.is_async:
            response.streaming_content = self._pieces(iter(cast(Iterator[bytes], response.streaming_content)))
        return response

    async def _pieces(self, source: Iterator[bytes]) -> AsyncIterator[bytes]:
        while (piece := await self._in_thread(next, source, None)) is not None:
            yield piece

    async def _in_thread(self, work: Callable[..., Any], *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, *args)

    async def read_body(self, receive: Receive) -> IO[bytes]:
        """The whole body, if it is not too large; raises RequestAborted when the client has gone."""
        read = 0

        async def counted() -> Mapping[str, Any]:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > LARGEST_BODY:
                raise BodyTooLarge
            return message

        return await super().read_body(counted)


def _too_large() -> HttpResponse:
    message = "The request body is larger than this server takes."
    return JsonResponse({"error": {"code": "body_too_large", "message": message, "detail": {}}}, status=413)
