"""Anthropic's messages API."""

from asyncio import CancelledError
from collections.abc import Callable, Sequence

import httpx

from agents.errors import ModelError, Spent, spent_by
from agents.messages import AssistantMessage, Message
from agents.ports import ChatAnswer, ChatRequest, ToolSpec
from agents.providers import catalog, spending, wire
from agents.providers.answer import answer, headers, origin_of
from agents.providers.attempt import Attempt, Target
from agents.providers.blocks import MessageFold
from agents.providers.http import DEFAULT_STALLS, Stalls
from agents.providers.messages_form import joined, marked, part
from agents.providers.places import MESSAGES_PATH
from agents.providers.profiles import PROFILES, Profile
from agents.providers.stream import Broken
from agents.spec import ModelSpec

VERSION = "2023-06-01"
# The API wants a limit on every request. A larger one than this is a matter of the run: money is set aside for it.
DEFAULT_MAX_OUTPUT_TOKENS = 32_000
# What the smallest current models allow, for those that the catalog does not know.
_SAFE_MAX_OUTPUT_TOKENS = 8192
# A long turn may be paused by the server and asked to go on; more often than this is no progress.
MAX_PAUSES = 5
_MESSAGES = next(profile for profile in PROFILES if profile.wire == "messages")


class AnthropicChat:
    """One model behind one base URL; implements `ports.ChatModel`. Thinking goes back to the same `origin` only."""

    # "Requests which include tool_use or tool_result blocks must define tools": it refuses them otherwise.
    keeps_tools = True

    def __init__(
        self,
        spec: ModelSpec,
        url: httpx.URL,
        key: str | None,
        stalls: Stalls = DEFAULT_STALLS,
        profile: Profile = _MESSAGES,
    ) -> None:
        self.name = spec.model
        self.provider = profile.name
        self.origin = origin_of(url, MESSAGES_PATH, spec.model)
        self._target = Target(
            url=url,
            headers=headers(profile, key) | {"anthropic-version": VERSION},
            provider=profile.name,
            secret=key,
            price=catalog.later(spec.model, spec.base_url),
        )
        self._stalls = stalls
        cap = catalog.output_cap(spec.model, spec.base_url) or _SAFE_MAX_OUTPUT_TOKENS
        self._max_output_tokens = spec.max_output_tokens or min(cap, DEFAULT_MAX_OUTPUT_TOKENS)

    # --- what goes out ---

    def encode_message(self, message: Message) -> bytes:
        """One message as a part; never fails, whatever the text holds."""
        return part(message, self.origin)

    def encode_tools(self, tools: Sequence[ToolSpec]) -> bytes | None:
        if not tools:
            return None
        return wire.dumps(
            [{"name": t.name, "description": t.description, "input_schema": dict(t.parameters)} for t in tools]
        )

    def _body(self, request: ChatRequest, limit: int, paused: Sequence[bytes] = ()) -> bytes:
        system, said = joined((*request.parts, *paused))
        pieces = [b'{"model":', wire.dumps(self.name), b',"stream":true,"max_tokens":%d' % limit]
        if system:
            pieces += [b',"system":[', system, b"]"]
        if request.tools:
            # Tools come before the prompt, whose mark covers them; without a prompt they carry one themselves.
            pieces += [b',"tools":', request.tools if system else marked(request.tools[:-1]) + b"]"]
            if request.no_calls:
                pieces.append(b',"tool_choice":{"type":"none"}')
        pieces += [b',"messages":[', said, b"]}"]
        return b"".join(pieces)

    # --- the question ---

    async def ask(self, request: ChatRequest, on_text: Callable[[str], None]) -> ChatAnswer:
        """Stream one answer. Raises ModelError; CancelledError passes through once the socket is closed."""
        limit = request.max_output_tokens or self._max_output_tokens
        fold = MessageFold()
        paused: list[bytes] = []
        pauses = 0
        before: Spent | None = None
        while True:
            attempt = Attempt(self._target, fold, on_text, self._stalls, hears_chants=request.hears_chants)
            try:
                await attempt.run(self._body(request, limit, paused))
                if fold.finish_reason == "pause_turn" and pauses < MAX_PAUSES:
                    pauses += 1
                    paused = [b"a" + b",".join(wire.dumps(block) for block in fold.raw_blocks())]
                    before = _sum(before, attempt.spent_on_answer())
                    fold = fold.going_on()
                    continue
                return self._answer(fold, attempt, before)
            except Broken as broken:
                raise _with(attempt.failed(broken), before) from None
            except ModelError as error:
                raise _with(error, before) from None
            except CancelledError as cancelled:
                cancelled.spent = _sum(before, spent_by(cancelled) or spending.UNKNOWN)  # type: ignore[attr-defined]
                raise

    def _answer(self, fold: MessageFold, attempt: Attempt, before: Spent | None) -> ChatAnswer:
        calls = fold.calls()
        if not fold.finished and not all(wire.is_object(call.args) for call in calls):
            raise Broken("malformed_response", "a tool call with half of its arguments, and no stop reason")
        if fold.finish_reason == "pause_turn":
            raise Broken("malformed_response", f"the turn was paused more than {MAX_PAUSES} times")
        return answer(
            AssistantMessage(text=fold.text(), tool_calls=calls, opaque=fold.kept(), origin=self.origin),
            spent=_sum(before, attempt.spent_on_answer()),
            finish_reason=fold.finish_reason,
            ttft_ms=attempt.ttft_ms,
            cut=fold.finish_reason == "max_tokens",
        )


def _with(error: ModelError, before: Spent | None) -> ModelError:
    if before is not None:
        error.spent = _sum(before, error.spent or spending.UNKNOWN)
        error.usage = error.spent.usage
    return error


def _sum(before: Spent | None, now: Spent) -> Spent:
    return now if before is None else spending.added(before, now)
