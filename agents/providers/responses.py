"""OpenAI's responses API, without state: nothing is stored there, and the whole conversation goes out each time."""

from collections.abc import Callable, Sequence

import httpx

from agents.errors import ModelError
from agents.messages import AssistantMessage, Message
from agents.ports import ChatAnswer, ChatRequest, ToolSpec
from agents.providers import catalog, wire
from agents.providers.answer import answer, headers, origin_of
from agents.providers.attempt import Attempt, Target
from agents.providers.http import Stalls
from agents.providers.places import RESPONSES_PATH
from agents.providers.profiles import Profile
from agents.providers.responses_fold import ResponseFold
from agents.providers.responses_form import part
from agents.providers.stream import Broken
from agents.spec import ModelSpec


class ResponsesChat:
    """One model behind one base URL; implements `ports.ChatModel`. Reasoning goes back, encrypted, to the same
    `origin` only."""

    def __init__(self, spec: ModelSpec, url: httpx.URL, key: str | None, stalls: Stalls, profile: Profile) -> None:
        self.name = spec.model
        self.provider = profile.name
        self.origin = origin_of(url, RESPONSES_PATH, spec.model)
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
        self._ask_for_reasoning = True

    # --- what goes out ---

    def encode_message(self, message: Message) -> bytes:
        """One message as input items; never fails, whatever the text holds."""
        return part(message, self.origin, item_ids=self._profile.item_ids)

    def encode_tools(self, tools: Sequence[ToolSpec]) -> bytes | None:
        if not tools:
            return None
        # Strict schemas are the default here, and most schemas are not strict.
        return wire.dumps(
            [
                {
                    "type": "function",
                    "name": t.name,
                    "description": t.description,
                    "parameters": dict(t.parameters),
                    "strict": False,
                }
                for t in tools
            ]
        )

    def _body(self, request: ChatRequest, limit: int | None) -> bytes:
        pieces = [b'{"model":', wire.dumps(self.name), b',"stream":true,"store":false']
        if self._ask_for_reasoning:
            pieces.append(b',"include":["reasoning.encrypted_content"]')
        if limit:
            pieces.append(b',"max_output_tokens":%d' % limit)
        if request.tools:
            pieces += [b',"tools":', request.tools]
        pieces += [b',"input":[', b",".join(one for one in request.parts if one), b"]}"]
        return b"".join(pieces)

    # --- the question ---

    async def ask(self, request: ChatRequest, on_text: Callable[[str], None]) -> ChatAnswer:
        """Stream one answer. Raises ModelError; CancelledError passes through once the socket is closed."""
        try:
            return await self._attempt(request, on_text)
        except ModelError as error:
            # Models that do not reason, and servers that know no encryption, refuse to be asked for it.
            if error.wire.status not in (400, 422) or not self._learn(error.wire.body):
                raise
            return await self._attempt(request, on_text)

    def _learn(self, complaint: str) -> bool:
        said = complaint.lower()
        if self._ask_for_reasoning and ("encrypted" in said or '"include' in said or "'include" in said):
            self._ask_for_reasoning = False
            return True
        return False

    async def _attempt(self, request: ChatRequest, on_text: Callable[[str], None]) -> ChatAnswer:
        limit = request.max_output_tokens or self._max_output_tokens
        fold = ResponseFold()
        attempt = Attempt(self._target, fold, on_text, self._stalls, hears_chants=request.hears_chants)
        await attempt.run(self._body(request, limit))
        try:
            return self._answer(fold, attempt)
        except Broken as broken:
            raise attempt.failed(broken) from None

    def _answer(self, fold: ResponseFold, attempt: Attempt) -> ChatAnswer:
        calls = fold.calls()
        if not fold.finished:
            raise Broken("malformed_response", "an end mark without a completed response")
        if (refusal := fold.refusal()) and not fold.text().strip() and not calls:
            raise Broken("content_policy", f"the model refused: {refusal}")
        return answer(
            AssistantMessage(text=fold.text(), tool_calls=calls, opaque=fold.kept(), origin=self.origin),
            spent=attempt.spent_on_answer(fold.cost()),
            finish_reason=fold.finish_reason,
            ttft_ms=attempt.ttft_ms,
            cut=fold.finish_reason == "length",
        )
