"""The wire of the scripted models: a reply as OpenAI-style chunks or as one object, with usage and what it cost."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import orjson

from agents.drill.script import Reply

# US dollars per token.
INPUT_PRICE = Decimal("0.50") / 1_000_000
OUTPUT_PRICE = Decimal("1.50") / 1_000_000
DONE = b"data: [DONE]\n\n"
_TOKEN = re.compile(r"\s*\S+\s*?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What every chunk of one answer repeats. `created` in Unix seconds; `answer` keeps call ids of a history apart."""

    id: str
    model: str
    created: int
    answer: int


def tokens(text: str) -> list[str]:
    """The pieces in which a text streams: words with the blanks before them, nothing lost."""
    pieces = _TOKEN.findall(text)
    rest = text[sum(map(len, pieces)) :]
    return [*pieces, rest] if rest else pieces


def usage(reply: Reply, request_bytes: int) -> dict[str, Any]:
    """Token counts and cost as a provider reports them: four bytes of the request are a token, so is a word said."""
    prompt = math.ceil(request_bytes / 4)
    answered = len(tokens(reply.text)) + sum(math.ceil(len(orjson.dumps(call.args)) / 4) + 4 for call in reply.calls)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": answered,
        "total_tokens": prompt + answered,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
        "cost": float(prompt * INPUT_PRICE + answered * OUTPUT_PRICE),
    }


def _call(head: Head, reply: Reply, index: int) -> dict[str, Any]:
    call = reply.calls[index]
    arguments = orjson.dumps(call.args).decode()
    function = {"name": call.name, "arguments": arguments}
    return {"id": f"call_{head.answer}_{index}", "type": "function", "function": function}


def finish_reason(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def whole(head: Head, reply: Reply, used: Mapping[str, Any]) -> bytes:
    """The answer to a request without `stream`."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = [_call(head, reply, index) for index in range(len(reply.calls))]
    return orjson.dumps(
        {
            "id": head.id,
            "object": "chat.completion",
            "created": head.created,
            "model": head.model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason(reply)}],
            "usage": used,
        }
    )


def stream(head: Head, reply: Reply, used: Mapping[str, Any]) -> tuple[bytes, Iterator[bytes], bytes]:
    """The answer as server-sent events: what comes first, one piece per text token, and all that follows the text."""
    common = orjson.dumps(
        {"id": head.id, "object": "chat.completion.chunk", "created": head.created, "model": head.model}
    )[:-1]

    def chunk(choices: list[Any], **more: Any) -> bytes:
        return b"data: %b,%b\n\n" % (common, orjson.dumps({"choices": choices, **more})[1:])

    def delta(value: Mapping[str, Any], finish: str | None = None) -> bytes:
        return chunk([{"index": 0, "delta": value, "finish_reason": finish}])

    def calls() -> Iterator[bytes]:
        for index in range(len(reply.calls)):
            call = _call(head, reply, index)
            arguments = call["function"]["arguments"]
            half = len(arguments) // 2
            call["function"]["arguments"] = arguments[:half]
            yield delta({"tool_calls": [{"index": index, **call}]})
            yield delta({"tool_calls": [{"index": index, "function": {"arguments": arguments[half:]}}]})

    before, after = delta({"content": "\x00"}).split(b'"\\u0000"')
    pieces = (b"%b%b%b" % (before, orjson.dumps(piece), after) for piece in tokens(reply.text))
    tail = b"".join([*calls(), delta({}, finish_reason(reply)), chunk([], usage=used), DONE])
    return delta({"role": "assistant", "content": ""}), pieces, tail


def error(message: str, code: str) -> bytes:
    return orjson.dumps({"error": {"message": message, "type": "invalid_request_error", "code": code, "param": None}})
