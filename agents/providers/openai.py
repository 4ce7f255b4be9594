"""Chat completions as OpenAI defined them and many servers speak them, each with ways of its own (profiles)."""

import re
from collections.abc import Callable, Sequence

import httpx

from agents.errors import ModelError
from agents.messages import AssistantMessage, Message
from agents.ports import ChatAnswer, ChatRequest, ToolSpec
from agents.providers import catalog, wire
from agents.providers.answer import answer, headers, origin_of
from agents.providers.assemble import Unattributable
from agents.providers.attempt import Attempt, Target
from agents.providers.chat_form import form
from agents.providers.completion import CompletionFold
from agents.providers.http import DEFAULT_STALLS, Stalls
from agents.providers.places import CHAT_PATH
from agents.providers.profiles import GENERIC, Profile
from agents.providers.stream import Broken
from agents.spec import ModelSpec

_NOT_KNOWN = re.compile(r"unsupported|unrecogni[sz]ed|unknown|unexpected|not (permitted|supported|allowed)|extra", re.I)


class OpenAIChat:
    """One model behind one base URL; implements `ports.ChatModel`. Opaque fields go back to the same `origin` only."""

    def __init__(
        self,
        spec: ModelSpec,
        url: httpx.URL,
        key: str | None,
        stalls: Stalls = DEFAULT_STALLS,
        profile: Profile = GENERIC,
    ) -> None:
        self.name = spec.model
        self.provider = profile.name
        self.origin = origin_of(url, CHAT_PATH, spec.model)
        self._profile = profile
        self._target = Target(
            url=url,
            headers=headers(profile, key),
            provider=profile.name,
            secret=key,
            price=catalog.later(spec.model, spec.base_url),
        )
        self._stalls = stalls
        self._max_output_tokens = spec.max_output_tokens
        self._limit_name = profile.limit
        self._ask_for_usage = profile.usage == "stream_options"
        self._extras = b"".join(
            b",%b:%b" % (wire.dumps(name), wire.dumps(value)) for name, value in profile.extras(spec.model).items()
        )

    # --- what goes out ---

    def encode_message(self, message: Message) -> bytes:
        """One message as JSON, done once per message; never fails, whatever the text holds."""
        return wire.dumps(form(message, self.origin, self._profile, self.name))

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
        pieces.append(self._extras)
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
        unknown = "max_completion_tokens" in complaint and _NOT_KNOWN.search(complaint) is not None
        if unknown and self._limit_name == self._profile.limit == "max_completion_tokens":
            self._limit_name = "max_tokens"
            return True
        return False

    async def _attempt(self, request: ChatRequest, on_text: Callable[[str], None]) -> ChatAnswer:
        limit = request.max_output_tokens or self._max_output_tokens
        fold = CompletionFold()
        attempt = Attempt(self._target, fold, on_text, self._stalls, hears_chants=request.hears_chants)
        await attempt.run(self._body(request, limit))
        try:
            return self._answer(fold, limit, attempt)
        except Broken as broken:
            raise attempt.failed(broken) from None
        except Unattributable as error:
            raise attempt.failed(Broken("malformed_response", str(error))) from None

    def _answer(self, fold: CompletionFold, limit: int | None, attempt: Attempt) -> ChatAnswer:
        if len(fold.calls) and not fold.finished and not fold.calls.all_complete():
            raise Broken("malformed_response", "a tool call with half of its arguments, and no finish reason")
        if (refusal := fold.refusal()) and not fold.text().strip() and not len(fold.calls):
            raise Broken("content_policy", f"the model refused: {refusal}")
        return answer(
            AssistantMessage(text=fold.text(), tool_calls=fold.calls.calls(), opaque=fold.kept(), origin=self.origin),
            spent=attempt.spent_on_answer(fold.cost()),
            finish_reason=fold.finish_reason,
            ttft_ms=attempt.ttft_ms,
            cut=fold.cut(limit),
        )
