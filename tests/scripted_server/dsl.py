"""The responses a script is made of: answers, tool calls, errors, and what goes wrong in the middle of them."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Wait:
    """Send nothing for so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Gate:
    """Send nothing until the event is set."""

    event: asyncio.Event


@dataclass(frozen=True, slots=True)
class Stall:
    """Send nothing more; hold the socket until the client leaves."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Close the socket in order (FIN), without the end of the body."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Close the socket with a reset (RST)."""


Move = bytes | Wait | Gate | Stall | Cut | Reset


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How a provider writes its stream: line ends, keep-alive comments, and the sizes in which it flushes bytes.

    `flush` is walked round and round; odd small sizes split lines and CRLF pairs, and every event is also split inside
    its first multi-byte character. None: each event in one piece.
    """

    eol: str = "\r\n"
    comments: bool = True
    flush: tuple[int, ...] | None = (1, 7, 64, 3, 250, 11)


PLAIN = Dialect(eol="\n", comments=False, flush=None)
ODD = Dialect()


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One HTTP response. `length`: announce Content-Length instead of chunked transfer."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    moves: Sequence[Move] = ()
    flush: tuple[int, ...] | None = None
    length: bool = False


def wait(seconds: float) -> Wait:
    return Wait(seconds)


def gate(event: asyncio.Event) -> Gate:
    return Gate(event)


def stall() -> Stall:
    return Stall()


def cut() -> Cut:
    return Cut()


def reset() -> Reset:
    return Reset()


def chunk(delta: Mapping[str, Any] | None = None, *, finish: str | None = None, **top: Any) -> dict[str, Any]:
    """One `chat.completion.chunk`. Without a delta it has no choices, as a usage chunk has none."""
    choices = [] if delta is None else [{"index": 0, "delta": dict(delta), "finish_reason": finish}]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": choices,
        **top,
    }


def _event(value: Any, dialect: Dialect) -> bytes:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"data: {text}{dialect.eol * 2}".encode()


def stream(
    *items: Mapping[str, Any] | str | Move, dialect: Dialect = ODD, headers: Mapping[str, str] | None = None
) -> Response:
    """A streamed 200: dicts and strings become events, bytes go out as they are, moves happen where they stand."""
    moves: list[Move] = []
    for number, item in enumerate(items):
        if dialect.comments and number % 3 == 0:
            moves.append(f": keep-alive {number}{dialect.eol * 2}".encode())
        moves.append(_event(item, dialect) if isinstance(item, Mapping | str) else item)
    return Response(headers={"content-type": "text/event-stream", **(headers or {})}, moves=moves, flush=dialect.flush)


def usage(prompt: int = 10, completion: int = 5, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion, **more}


def _ending(finish: str | None, used: Mapping[str, Any] | None, done: bool) -> list[Mapping[str, Any] | str]:
    ending: list[Mapping[str, Any] | str] = [chunk({}, finish=finish)] if finish else []
    if used is not None:
        ending.append(chunk(usage=dict(used)))
    return [*ending, "[DONE]"] if done else ending


def say(
    text: str,
    *,
    before: Iterable[Move] = (),
    after: Iterable[Move] = (),
    pause_s: float = 0.0,
    size: int = 5,
    finish: str | None = "stop",
    used: Mapping[str, Any] | None = None,
    done: bool = True,
    dialect: Dialect = ODD,
) -> Response:
    """An answer of text in pieces of `size` characters; usage follows in a last chunk with no choices.

    `before` happens before the first byte of text, `after` between the text and its end (`after=[stall()]`).
    """
    items: list[Mapping[str, Any] | str | Move] = [chunk({"role": "assistant", "content": ""}), *before]
    for start in range(0, len(text), size):
        items += [Wait(pause_s)] if pause_s and start else []
        items.append(chunk({"content": text[start : start + size]}))
    ending = _ending(finish, usage() if used is None else used, done)
    return stream(*items, *after, *ending, dialect=dialect)


def ask_tools(
    *calls: tuple[str, Any],
    text: str = "",
    ids: Sequence[str] | None = None,
    index: bool = False,
    finish: str | None = "tool_calls",
    used: Mapping[str, Any] | None = None,
    done: bool = True,
    dialect: Dialect = ODD,
) -> Response:
    """Tool calls as `(name, args)`; args may be a dict or raw text. Deltas carry no index unless asked for."""
    items: list[Mapping[str, Any] | str | Move] = [chunk({"role": "assistant", "content": text})]
    for number, (name, args) in enumerate(calls):
        raw_args = args if isinstance(args, str) else json.dumps(args)
        place = {"index": number} if index else {}
        wire_id = ids[number] if ids else f"call-{number}"
        half = len(raw_args) // 2
        first = {**place, "id": wire_id, "type": "function", "function": {"name": name, "arguments": raw_args[:half]}}
        items.append(chunk({"tool_calls": [first]}))
        items.append(chunk({"tool_calls": [{**place, "function": {"arguments": raw_args[half:]}}]}))
    return stream(*items, *_ending(finish, usage() if used is None else used, done), dialect=dialect)


def raw(
    content: bytes,
    *,
    content_type: str = "text/event-stream",
    flush: tuple[int, ...] | None = None,
    after: Iterable[Move] = (),
) -> Response:
    """A 200 whose body is exactly these bytes."""
    return Response(headers={"content-type": content_type}, moves=[content, *after], flush=flush)


def whole(text: str, *, used: Mapping[str, Any] | None = None) -> Response:
    """A 200 that ignores `stream` and answers with one JSON object."""
    message = {"role": "assistant", "content": text}
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": dict(usage() if used is None else used),
    }
    headers = {"content-type": "application/json"}
    return Response(headers=headers, moves=[json.dumps(body).encode()], length=True)


_MEANINGS = {400: "Bad request", 401: "Incorrect API key provided", 404: "No such model", 429: "Rate limit reached"}


def status(
    code: int,
    message: str | None = None,
    *,
    body: Any = None,
    retry_after: float | str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """An error as JSON: `{"error": {...}}`, or the given body."""
    said = message or _MEANINGS.get(code, "The server had an error")
    given = {"error": {"message": said, "type": "error", "code": None}} if body is None else body
    sent = {"content-type": "application/json", **(headers or {})}
    if retry_after is not None:
        sent["retry-after"] = str(retry_after)
    text = given if isinstance(given, str) else json.dumps(given)
    return Response(status=code, headers=sent, moves=[text.encode()], length=True)


def html(code: int = 502, title: str = "Bad gateway") -> Response:
    """What a proxy in front of a provider answers."""
    page = f"<html><head><title>{title}</title></head><body><h1>{code} {title}</h1></body></html>"
    return Response(status=code, headers={"content-type": "text/html"}, moves=[page.encode()], length=True)
