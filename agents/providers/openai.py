"""Chat completions as OpenAI defined them and many servers speak them."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import httpx

from agents.errors import ModelError
from agents.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from agents.ports import ChatAnswer, ChatRequest, ToolSpec
from agents.providers import catalog, wire
from agents.providers.answer import answer, origin_of
from agents.providers.assemble import Unattributable
from agents.providers.attempt import Attempt, Target
from agents.providers.completion import CompletionFold
from agents.providers.http import DEFAULT_STALLS, Stalls
from agents.providers.stream import Broken
from agents.spec import ModelSpec

PATH = "/chat/completions"
# Reasoning models here refuse the older parameter; most other servers know no other.
_NEW_LIMIT_HOSTS = re.compile(r"(^|\.)(openai\.com|openai\.azure\.com)$")


class OpenAIChat:
    """One model behind one base URL; implements `ports.ChatModel`. Opaque fields go back to the same `origin` only."""

    provider = "openai"

    def __init__(self, spec: ModelSpec, url: httpx.URL, key: str | None, stalls: Stalls = DEFAULT_STALLS) -> None:
        self.name = spec.model
        self.origin = origin_of(url, PATH, spec.model)
        headers = {"content-type": "application/json", "accept": "text/event-stream, application/json;q=0.9"}
        headers |= {"accept-encoding": "identity", "user-agent": "pilothouse"}
        if key:
            headers["authorization"] = f"Bearer {key}"
        self._target = Target(url=url, headers=headers, provider=self.provider, secret=key)
        self._stalls = stalls
        self._max_output_tokens = spec.max_output_tokens
        self._price = catalog.price(spec.model, spec.base_url)
        self._limit_name = "max_completion_tokens" if _NEW_LIMIT_HOSTS.search(url.host) else "max_tokens"
        self._ask_for_usage = True

    # --- what goes out ---

    def encode_message(self, message: Message) -> bytes:
        """One message as JSON, done once per message; never fails, whatever the text holds."""
        return wire.dumps(_message(message, self.origin))

    def encode_tools(self, tools: Sequence[ToolSpec]) -> bytes | None:
        if not tools:
            return None
        return wire.dumps(
            [
                {
                    "type": "function",
                    "function": {"name": t.name, "description": t.description, "parameters": dict(t.parameters)},
                }
                for t in tools
            ]
        )

    def _body(self, request: ChatRequest, limit: int | None) -> bytes:
        """The parts are joined, never walked: a request costs its bytes, not its messages."""
        pieces = [b'{"model":', wire.dumps(self.name), b',"stream":true']
        if self._ask_for_usage:
            pieces.append(b',"stream_options":{"include_usage":true}')
        if limit:
            pieces.append(b',"%b":%d' % (self._limit_name.encode(), limit))
        if request.tools:
            pieces += [b',"tools":', request.tools]
        pieces += [b',"messages":[', b",".join(request.parts), b"]}"]
        return b"".join(pieces)

    # --- the question ---

    async def ask(self, request: ChatRequest, on_text: Callable[[str], None]) -> ChatAnswer:
        """Stream one answer. Raises ModelError; CancelledError passes through once the socket is closed."""
        try:
            return await self._attempt(request, on_text)
        except ModelError as error:
            # A server that refuses a parameter before it did anything is asked again without it, and never with it.
            if error.wire.status not in (400, 422) or not self._learn(error.wire.body):
                raise
            return await self._attempt(request, on_text)

    def _learn(self, complaint: str) -> bool:
        """Take in what the server does not know. Returns whether that changes the request."""
        if self._ask_for_usage and ("stream_options" in complaint or "include_usage" in complaint):
            self._ask_for_usage = False
            return True
        if self._limit_name == "max_tokens" and "max_completion_tokens" in complaint:
            self._limit_name = "max_completion_tokens"
            return True
        return False

    async def _attempt(self, request: ChatRequest, on_text: Callable[[str], None]) -> ChatAnswer:
        limit = request.max_output_tokens or self._max_output_tokens
        fold = CompletionFold()
        attempt = Attempt(self._target, fold, on_text, self._stalls)
        await attempt.run(self._body(request, limit))
        try:
            return self._answer(fold, limit, attempt.ttft_ms)
        except Broken as broken:
            raise attempt.failed(broken) from None
        except Unattributable as error:
            raise attempt.failed(Broken("malformed_response", str(error))) from None

    def _answer(self, fold: CompletionFold, limit: int | None, ttft_ms: float | None) -> ChatAnswer:
        if len(fold.calls) and not fold.finished and not fold.calls.all_complete():
            raise Broken("malformed_response", "a tool call with half of its arguments, and no finish reason")
        if (refusal := fold.refusal()) and not fold.text().strip() and not len(fold.calls):
            raise Broken("content_policy", f"the model refused: {refusal}")
        return answer(
            AssistantMessage(text=fold.text(), tool_calls=fold.calls.calls(), opaque=fold.kept(), origin=self.origin),
            usage=fold.usage(),
            reported=fold.cost(),
            price=self._price,
            finish_reason=fold.finish_reason,
            ttft_ms=ttft_ms,
            cut=fold.cut(limit),
        )


def _message(message: Message, origin: str) -> dict[str, Any]:
    match message:
        case SystemMessage(text=text):
            return {"role": "system", "content": text}
        case UserMessage(text=text):
            return {"role": "user", "content": text}
        case ToolMessage(wire_id=wire_id, text=text):
            return {"role": "tool", "tool_call_id": wire_id, "content": text}
        case AssistantMessage():
            return _assistant(message, origin)


def _assistant(message: AssistantMessage, origin: str) -> dict[str, Any]:
    opaque = dict(message.opaque) if message.opaque and message.origin == origin else {}
    out: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    if thinking := opaque.pop("content_thinking", None):
        parts = [{"type": "thinking", "thinking": [{"type": "text", "text": thinking}]}]
        out["content"] = parts + ([{"type": "text", "text": message.text}] if message.text else [])
    fields = opaque.pop("call_fields", None)
    if message.tool_calls:
        calls: list[dict[str, Any]] = [
            {"id": c.wire_id, "type": "function", "function": {"name": c.name, "arguments": _arguments(c.args)}}
            for c in message.tool_calls
        ]
        if isinstance(fields, list) and len(fields) == len(calls):
            calls = [{**extra, **call} for call, extra in zip(calls, fields, strict=True)]
        out["tool_calls"] = calls
    elif out["content"] is None:
        out["content"] = ""
    return {**opaque, **out}


def _arguments(raw: str) -> str:
    """Servers parse the arguments in a history and fail on what is no JSON object, so a broken text is wrapped."""
    if wire.is_object(raw):
        return raw
    return wire.dumps({"invalid_arguments": raw}).decode() if raw.strip() else "{}"
