"""Anthropic's messages API."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import httpx

from agents.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from agents.ports import ChatAnswer, ChatRequest, ToolSpec
from agents.providers import catalog, wire
from agents.providers.answer import answer, origin_of
from agents.providers.attempt import Attempt, Target
from agents.providers.blocks import MessageFold
from agents.providers.http import DEFAULT_STALLS, Stalls
from agents.providers.stream import Broken
from agents.spec import ModelSpec

PATH = "/messages"
VERSION = "2023-06-01"
# The API wants a limit on every request; this is what the smallest current models allow.
DEFAULT_MAX_OUTPUT_TOKENS = 8192

# A part is the role's letter and then the content blocks: adjacent parts of one role become one message when they are
# joined, since the API wants the roles to alternate and all results of a batch in one message.
_ROLES = {b"u": b"user", b"a": b"assistant"}
_SYSTEM = b"s"
_CACHE_MARK = b',"cache_control":{"type":"ephemeral"}}'


class AnthropicChat:
    """One model behind one base URL; implements `ports.ChatModel`. Thinking goes back to the same `origin` only."""

    provider = "anthropic"

    def __init__(self, spec: ModelSpec, url: httpx.URL, key: str | None, stalls: Stalls = DEFAULT_STALLS) -> None:
        self.name = spec.model
        self.origin = origin_of(url, PATH, spec.model)
        headers = {"content-type": "application/json", "accept": "text/event-stream, application/json;q=0.9"}
        headers |= {"accept-encoding": "identity", "user-agent": "pilothouse", "anthropic-version": VERSION}
        if key:
            headers["x-api-key"] = key
        self._target = Target(url=url, headers=headers, provider=self.provider, secret=key)
        self._stalls = stalls
        self._max_output_tokens = spec.max_output_tokens or DEFAULT_MAX_OUTPUT_TOKENS
        self._price = catalog.price(spec.model, spec.base_url)

    # --- what goes out ---

    def encode_message(self, message: Message) -> bytes:
        """One message as a part; never fails, whatever the text holds."""
        letter, blocks = _blocks(message, self.origin)
        return letter + b",".join(wire.dumps(block) for block in blocks)

    def encode_tools(self, tools: Sequence[ToolSpec]) -> bytes | None:
        if not tools:
            return None
        return wire.dumps(
            [{"name": t.name, "description": t.description, "input_schema": dict(t.parameters)} for t in tools]
        )

    def _body(self, request: ChatRequest, limit: int) -> bytes:
        system = [part[1:] for part in request.parts if part[:1] == _SYSTEM and len(part) > 1]
        messages = []
        spoken = (part for part in request.parts if part[:1] in _ROLES and len(part) > 1)
        for letter, parts in groupby(spoken, key=lambda part: part[:1]):
            messages.append([_ROLES[letter], b",".join(part[1:] for part in parts)])
        # Two of the four cache marks there are: behind the prompt, and behind all that is said so far.
        if messages and messages[-1][0] == b"user":
            messages[-1][1] = messages[-1][1][:-1] + _CACHE_MARK
        pieces = [b'{"model":', wire.dumps(self.name), b',"stream":true,"max_tokens":%d' % limit]
        if system:
            pieces += [b',"system":[', b",".join(system)[:-1] + _CACHE_MARK, b"]"]
        if request.tools:
            pieces += [b',"tools":', request.tools]
        said = b",".join(b'{"role":"%b","content":[%b]}' % (role, blocks) for role, blocks in messages)
        pieces += [b',"messages":[', said, b"]}"]
        return b"".join(pieces)

    # --- the question ---

    async def ask(self, request: ChatRequest, on_text: Callable[[str], None]) -> ChatAnswer:
        """Stream one answer. Raises ModelError; CancelledError passes through once the socket is closed."""
        limit = request.max_output_tokens or self._max_output_tokens
        fold = MessageFold()
        attempt = Attempt(self._target, fold, on_text, self._stalls)
        await attempt.run(self._body(request, limit))
        try:
            calls = fold.calls()
            if not fold.finished and not all(wire.is_object(call.args) for call in calls):
                raise Broken("malformed_response", "a tool call with half of its arguments, and no stop reason")
            return answer(
                AssistantMessage(text=fold.text(), tool_calls=calls, opaque=fold.kept(), origin=self.origin),
                usage=fold.usage(),
                reported=None,
                price=self._price,
                finish_reason=fold.finish_reason,
                ttft_ms=attempt.ttft_ms,
                cut=fold.finish_reason == "max_tokens",
            )
        except Broken as broken:
            raise attempt.failed(broken) from None


def _blocks(message: Message, origin: str) -> tuple[bytes, list[dict[str, Any]]]:
    """The role's letter and the content blocks. Blank text makes no block: the API refuses it."""
    match message:
        case SystemMessage(text=text):
            return b"s", _text(text)
        case UserMessage(text=text):
            return b"u", _text(text)
        case ToolMessage(wire_id=wire_id, text=text):
            return b"u", [{"type": "tool_result", "tool_use_id": wire_id, "content": text or "(no output)"}]
        case AssistantMessage():
            return b"a", _assistant(message, origin)


def _assistant(message: AssistantMessage, origin: str) -> list[dict[str, Any]]:
    kept = message.opaque if message.opaque and message.origin == origin else {}
    calls = [{"type": "tool_use", "id": c.wire_id, "name": c.name, "input": _input(c.args)} for c in message.tool_calls]
    return [*kept.get("thinking_blocks", ()), *_text(message.text), *calls]


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _input(raw: str) -> dict[str, Any]:
    """The arguments as the object that the API wants; a text that is none is wrapped, so that nothing is lost."""
    try:
        value = wire.loads(raw.encode("utf-8", "replace")) if raw.strip() else {}
    except wire.NotJSON:
        value = None
    return value if isinstance(value, dict) else {"invalid_arguments": raw}
