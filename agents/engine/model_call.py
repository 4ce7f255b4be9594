"""One question to the model: attempts, waits between them, live text, and the call's events."""

import asyncio
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from agents import kinds
from agents.engine.control import RunControl
from agents.engine.journal import Journal
from agents.errors import ModelError, RunFailed
from agents.events import stamp
from agents.ids import new_id
from agents.messages import AssistantMessage, Message, ToolCall, Usage
from agents.policy import recovery
from agents.policy.arguments import safe_args
from agents.policy.fault_waits import retry_after
from agents.policy.redaction import make_safe
from agents.ports import ChatAnswer, ChatModel, ChatRequest, Clock, LiveText


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer as the log holds it; `raw_args` keeps each call's arguments exactly as given, to execute them."""

    message: AssistantMessage
    raw_args: dict[str, str]
    cut: bool


class ModelCall:
    """Asks one model on behalf of one run; keeps the history as serialised parts and never walks it again."""

    def __init__(
        self,
        *,
        model: ChatModel,
        live: LiveText,
        clock: Clock,
        journal: Journal,
        control: RunControl,
        tools: bytes | None,
        max_output_tokens: int | None,
        credential: str | None,
    ) -> None:
        self._model = model
        self._live = live
        self._clock = clock
        self._journal = journal
        self._control = control
        self._tools = tools
        self._max_output_tokens = max_output_tokens
        self._credential = credential
        self._parts: list[bytes] = []
        self._encoded = 0

    def begin_with(self, first: Message) -> None:
        """The system message; everything else comes from the transcript."""
        self._parts = [self._model.encode_message(first)]

    async def ask(self, turn: int) -> Answered:
        """The next answer in the conversation. Raises RunFailed when no attempt succeeds."""
        messages = self._journal.transcript.messages
        encode = self._model.encode_message
        self._parts.extend(encode(message) for message in messages[self._encoded :])
        self._encoded = len(messages)
        return await self._call(self._parts, self._tools, turn, self._model.name)

    async def summarise(self, instruction: Message) -> str:
        """A closing answer without tools, outside of any turn. Raises RunFailed."""
        messages = self._journal.transcript.messages
        parts = [*self._parts, *(self._model.encode_message(m) for m in messages[self._encoded :])]
        answered = await self._call([*parts, self._model.encode_message(instruction)], None, None, "summary")
        if not answered.message.text.strip():
            raise RunFailed("malformed_response", "the model wrote no summary")
        return answered.message.text

    async def _call(self, parts: Sequence[bytes], tools: bytes | None, turn: int | None, name: str) -> Answered:
        call = new_id()
        self._journal.write(
            kinds.CallStarted(
                operation="chat",
                name=name,
                model=self._model.name,
                provider=self._model.provider,
                credential=self._credential,
            ),
            turn=turn,
            call=call,
        )
        request = ChatRequest(parts=parts, tools=tools, max_output_tokens=self._max_output_tokens)
        began = self._clock.monotonic()
        waited, attempt = 0.0, 1
        while True:
            stream = _Stream(self._live, call, attempt)
            try:
                answer = await self._model.ask(request, stream.on_text)
            except ModelError as error:
                if stream.offset:
                    self._live.withdrawn(call, attempt)
                waited += await self._after_failure(error, name, call, turn, attempt, waited)
                attempt += 1
            except asyncio.CancelledError:
                self._cut_off(stream, name, call, turn, began)
                raise
            else:
                return self._answered(answer, name, call, turn, began)

    def _cut_off(self, stream: "_Stream", name: str, call: str, turn: int | None, began: float) -> None:
        self._control.tally.sockets += 1
        self._journal.write(
            kinds.CallCompleted(
                operation="chat",
                name=name,
                status="stopped",
                text=make_safe(stream.text()).text or None,
                cost_source="unknown",
                duration_ms=self._since(began),
            ),
            turn=turn,
            call=call,
        )

    async def _after_failure(
        self, error: ModelError, name: str, call: str, turn: int | None, attempt: int, waited: float
    ) -> float:
        """Wait as recovery says and return the seconds waited, or close the call and raise RunFailed."""
        now = self._clock.now()
        decision = recovery.decide(
            kind=error.kind,
            attempt=attempt,
            retry_after_s=_wait_named(error, now),
            waited_s=waited,
            jitter=random.random(),
        )
        facts = _facts(error)
        if isinstance(decision, recovery.GiveUp):
            self._journal.write(
                kinds.CallCompleted(
                    operation="chat",
                    name=name,
                    status="error",
                    result=f"{facts['message']} ({decision.why})",
                    usage=_usage(error.usage),
                    cost_source="none" if error.usage is None else "unknown",
                ),
                turn=turn,
                call=call,
            )
            raise RunFailed(error.kind, f"{facts['message']} ({decision.why})") from error
        until = now + timedelta(seconds=decision.wait_s)
        self._journal.write(
            kinds.CallRetried(
                error=facts,
                action="retry",
                wait_s=decision.wait_s,
                until=stamp(until),
                attempt=attempt,
                usage=_usage(error.usage),
                cost_source=None if error.usage is None else "unknown",
            ),
            turn=turn,
            call=call,
        )
        try:
            await self._clock.sleep(decision.wait_s)
        except asyncio.CancelledError:
            self._journal.write(
                kinds.CallCompleted(operation="chat", name=name, status="stopped", cost_source="none"),
                turn=turn,
                call=call,
            )
            raise
        return decision.wait_s

    def _answered(self, answer: ChatAnswer, name: str, call: str, turn: int | None, began: float) -> Answered:
        safe = make_safe(answer.message.text)
        calls, altered = self._safe_calls(answer.message.tool_calls)
        if safe.altered:
            altered["text"] = safe.altered
        message = replace(answer.message, text=safe.text, tool_calls=calls)
        self._journal.write(
            kinds.CallCompleted(
                operation="chat",
                name=name,
                status="ok",
                text=safe.text,
                opaque=message.opaque,
                origin=message.origin if message.opaque else None,
                tool_calls=[{"call": c.call, "wire_id": c.wire_id, "name": c.name, "args": c.args} for c in calls]
                or None,
                usage=_usage(answer.usage),
                cost_usd=answer.cost_usd,
                cost_source=answer.cost_source,
                finish_reason="length" if answer.cut else answer.finish_reason,
                ttft_ms=answer.ttft_ms,
                duration_ms=self._since(began),
                altered=altered or None,
            ),
            turn=turn,
            call=call,
        )
        raw = {c.call: c.args for c in answer.message.tool_calls}
        return Answered(message=message, raw_args=raw, cut=answer.cut)

    def _safe_calls(self, asked: Sequence[ToolCall]) -> tuple[tuple[ToolCall, ...], dict[str, Any]]:
        """The calls as history, log and page hold them; their wire ids made unique over the whole history."""
        unique = self._journal.transcript.unique_wire_id
        altered: dict[str, Any] = {}
        calls = []
        for one in asked:
            args = safe_args(one.args)
            if args.altered:
                altered[one.call] = args.altered
            calls.append(
                replace(one, wire_id=unique(make_safe(one.wire_id).text), name=_tool_name(one.name), args=args.text)
            )
        return tuple(calls), altered

    def _since(self, began: float) -> float:
        return round((self._clock.monotonic() - began) * 1000, 1)


class _Stream:
    """The text of one attempt as it arrives."""

    __slots__ = ("_attempt", "_call", "_live", "_pieces", "offset")

    def __init__(self, live: LiveText, call: str, attempt: int) -> None:
        self._live = live
        self._call = call
        self._attempt = attempt
        self._pieces: list[str] = []
        self.offset = 0

    def on_text(self, piece: str) -> None:
        self._live.delta(self._call, self._attempt, self.offset, piece)
        self._pieces.append(piece)
        self.offset += len(piece)

    def text(self) -> str:
        return "".join(self._pieces)


# What providers accept as a function name; anything else would make every later request fail.
_NAME_CHARS = re.compile(r"[^a-zA-Z0-9_.-]+")


def _tool_name(name: str) -> str:
    return _NAME_CHARS.sub("_", name)[:64] or "unnamed"


def _wait_named(error: ModelError, now: datetime) -> float | None:
    """What the provider asked for; an attempt that was not judged has its headers."""
    return error.fault.retry_after_s if error.fault is not None else retry_after(error.wire.headers, now=now)


def _facts(error: ModelError) -> dict[str, Any]:
    facts: dict[str, Any] = {"reason": error.kind, "message": make_safe(error.message).text[:2000]}
    if error.wire.status is not None:
        facts["status"] = error.wire.status
    evidence = error.wire.transport or error.wire.body
    if evidence:
        facts["evidence"] = make_safe(evidence).text[:500]
    return facts


def _usage(usage: Usage | None) -> dict[str, int] | None:
    if usage is None:
        return None
    return {
        "input": usage.input,
        "output": usage.output,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "reasoning": usage.reasoning,
    }
