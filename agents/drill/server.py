"""The HTTP server of the scripted models: chat completions, the model list, a log of what became of each socket, and a
receiver of alerts."""

import asyncio
import socket
import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import orjson

from agents.drill import wire
from agents.drill.ledger import Entry, RequestLog
from agents.drill.receiver import Receiver
from agents.drill.scenarios import SCENARIOS, reply
from agents.drill.script import Reply, read

if TYPE_CHECKING:
    import uvicorn

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

HOST = "127.0.0.1"
PORT = 8089
MARKER_HEADER = b"x-run"
_MOST_LETTER = 262_144


class DrillApp:
    """The ASGI application. One per server: it owns the request log and the receiver."""

    def __init__(self) -> None:
        self.log = RequestLog()
        self.receiver = Receiver()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, path = scope["method"], scope["path"].removeprefix("/v1")
        if (method, path) == ("POST", "/chat/completions"):
            await self._chat(scope, receive, send)
        elif (method, path) == ("GET", "/models"):
            await _answer(send, 200, orjson.dumps(_models()))
        elif (method, path) == ("GET", "/drill/requests"):
            await _answer(send, 200, orjson.dumps(self.log.rows(**_filters(scope["query_string"]))))
        elif (method, path) == ("POST", "/drill/requests/reset"):
            self.log.reset()
            await _answer(send, 200, b'{"changed":true}')
        elif path.startswith("/drill/alerts"):
            await self._alerts(method, path.removeprefix("/drill/alerts").strip("/"), scope, receive, send)
        else:
            await _answer(send, 404, wire.error(f"There is no {method} {scope['path']} here.", "not_found"))

    async def _chat(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = await _body(receive)
        try:
            request = orjson.loads(raw)
            conversation = read(request)
        except (orjson.JSONDecodeError, AttributeError, TypeError):
            await _answer(send, 400, wire.error("The body is no chat completion request.", "bad_request"))
            return
        marker = next((value.decode() for name, value in scope["headers"] if name == MARKER_HEADER), None)
        entry = self.log.open(conversation.model, marker or conversation.word("marker"))
        scenario = SCENARIOS.get(conversation.model)
        if scenario is None:
            entry.closed("refused")
            message = f"No model {conversation.model!r} here; there are: {', '.join(SCENARIOS)}."
            await _answer(send, 404, wire.error(message, "model_not_found"))
            return
        said = reply(scenario, conversation)
        head = wire.Head(
            id=f"chatcmpl-{entry.id}", model=scenario.name, created=int(time.time()), answer=conversation.answers
        )
        await self._say(request, head, said, wire.usage(said, len(raw)), entry, receive, send)

    async def _alerts(self, method: str, place: str, scope: Scope, receive: Receive, send: Send) -> None:
        """`POST` `{secret}` opens a place `{path}`, `POST` to it takes a letter, `GET ?incident=` tells what came;
        `DELETE` closes a place and forgets what came to it."""
        if method == "GET" and not place:
            wanted = parse_qs(scope["query_string"].decode()).get("incident", [None])[0]
            await _answer(send, 200, orjson.dumps({"letters": self.receiver.rows(wanted)}))
            return
        if method == "DELETE" and place:
            await _answer(send, 204 if self.receiver.close(place) else 404, b"")
            return
        raw = await _body(receive) if method == "POST" else b""
        if method != "POST" or len(raw) > _MOST_LETTER:
            await _answer(
                send, 405 if method != "POST" else 413, wire.error("Not here, or not so much.", "bad_request")
            )
        elif place:
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            status, why = self.receiver.take(place, headers, raw)
            await _answer(send, status, wire.error(why, "not_taken") if why else b"")
        else:
            try:
                opened = self.receiver.open(str(orjson.loads(raw)["secret"]))
            except (ValueError, KeyError, TypeError) as error:
                await _answer(send, 400, wire.error(f"No place was opened: {error}", "bad_request"))
                return
            await _answer(send, 201, orjson.dumps({"path": f"/drill/alerts/{opened}"}))

    async def _say(
        self,
        request: dict[str, Any],
        head: wire.Head,
        said: Reply,
        used: dict[str, Any],
        entry: Entry,
        receive: Receive,
        send: Send,
    ) -> None:
        if not request.get("stream"):
            sending = _whole(send, entry, wire.whole(head, said, used), said)
        else:
            sending = _stream(send, entry, wire.stream(head, said, used), said.pace_s)
        await _unless_gone(sending, entry, receive)


async def _unless_gone(sending: Any, entry: Entry, receive: Receive) -> None:
    """Send until all is sent or the client has gone, whichever comes first; the log says which."""
    sender = asyncio.ensure_future(sending)
    gone = asyncio.ensure_future(receive())
    try:
        await asyncio.wait({sender, gone}, return_when=asyncio.FIRST_COMPLETED)
        # `receive` also returns once the response is complete, so the sender is asked first.
        if sender.done():
            sender.result()
            entry.closed("completed")
    finally:
        entry.closed("client_gone")
        sender.cancel()
        gone.cancel()
        await asyncio.gather(sender, gone, return_exceptions=True)


async def _whole(send: Send, entry: Entry, body: bytes, said: Reply) -> None:
    await asyncio.sleep(said.pace_s * len(wire.tokens(said.text)))
    entry.begun()
    await _answer(send, 200, body)


async def _stream(send: Send, entry: Entry, parts: tuple[bytes, Any, bytes], pace_s: float) -> None:
    first, pieces, tail = parts
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")],
        }
    )
    entry.begun()
    if not pace_s:
        await send({"type": "http.response.body", "body": b"".join([first, *pieces, tail])})
        return
    await send({"type": "http.response.body", "body": first, "more_body": True})
    now = asyncio.get_running_loop().time
    for piece in pieces:
        # All streams of one pace wake at the same ticks: hundreds of them cost one wake-up of the loop, not hundreds.
        await asyncio.sleep(pace_s - now() % pace_s)
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": tail})


async def _body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


async def _answer(send: Send, status: int, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _filters(query: bytes) -> dict[str, Any]:
    given = parse_qs(query.decode())
    return {
        "model": given.get("model", [None])[0],
        "marker": given.get("marker", [None])[0],
        "still_open": given.get("open", ["0"])[0] == "1",
    }


def _models() -> dict[str, Any]:
    prices = {"prompt": f"{wire.INPUT_PRICE:f}", "completion": f"{wire.OUTPUT_PRICE:f}"}
    rows = [{"id": name, "object": "model", "created": 0, "owned_by": "drill", "pricing": prices} for name in SCENARIOS]
    return {"object": "list", "data": rows}


def _server(app: DrillApp) -> "uvicorn.Server":
    import uvicorn  # 0.1 s to import: only who serves pays for it

    config = uvicorn.Config(
        app, lifespan="off", access_log=False, log_level="warning", ws="none", timeout_graceful_shutdown=1
    )
    return uvicorn.Server(config)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; raises OSError when the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, or asyncio leaves Nagle's algorithm on and each answer waits 40 ms for a delayed acknowledgement.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(1024)
    except OSError:
        bound.close()
        raise
    return bound


def base_url(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}/v1" if ":" in host else f"http://{host}:{port}/v1"


def serve(bound: socket.socket) -> None:
    """Serve on this socket until SIGTERM or SIGINT."""
    _server(DrillApp()).run(sockets=[bound])


class DrillServer:
    """The server in a thread of its own, for as long as the `with` block lasts; `base_url` is where it listens."""

    def __init__(self, host: str = HOST, port: int = 0) -> None:
        self._socket = listen(host, port)
        self.base_url = base_url(self._socket)
        self.app = DrillApp()
        self._server = _server(self.app)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True, name="drill")

    def __enter__(self) -> "DrillServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=5)
        self._socket.close()
