"""What a run asks of its models, as the log has it: the next answer, a closing summary, a summary of older turns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents import kinds
from agents.engine import ledger
from agents.engine.attempts import Answer, Attempts
from agents.engine.compressor import Compressor, Draft
from agents.engine.control import RunControl
from agents.engine.journal import Journal
from agents.engine.purse import Purse
from agents.engine.questions import Closing, LastWord, NextTurn, Summary
from agents.engine.window import Windows, known_size
from agents.errors import RunFailed
from agents.messages import AssistantMessage, Message, SystemMessage, ToolCall
from agents.policy.arguments import safe_args
from agents.policy.budgets import room
from agents.policy.redaction import make_safe
from agents.policy.repair import legal_name
from agents.ports import Clock, LiveText, Models, ToolSpec
from agents.spec import ModelSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer as the log holds it; `raw_args` keeps each call's arguments exactly as given, to execute them."""

    message: AssistantMessage
    raw_args: dict[str, str]
    cut: bool


class ModelCall:
    """Asks the models of one run on its behalf. `specs` are they in order of preference; `summariser` is the name of
    the one that writes summaries, if another than the one in use, `stronger` of the one that helps out of a loop."""

    def __init__(
        self,
        *,
        models: Models,
        specs: Sequence[ModelSpec],
        live: LiveText,
        clock: Clock,
        journal: Journal,
        control: RunControl,
        system: SystemMessage,
        tools: Sequence[ToolSpec],
        summariser: str | None = None,
        stronger: str | None = None,
        purse: Purse,
    ) -> None:
        self._journal = journal
        self._specs = specs
        self._summariser = _place(specs, summariser)
        self._stronger = _place(specs, stronger)
        self._attempts = Attempts(
            models=models, specs=specs, live=live, clock=clock, journal=journal, control=control, purse=purse
        )
        self._windows = Windows(transcript=journal.transcript, system=system, tools=tools)
        self._compressor = Compressor(journal, self._summary_of, self._record_tokens)

    def result_chars(self) -> int:
        """How much of one tool result the model gets to read."""
        return self._windows.result_chars()

    async def ask(self, turn: int, escalates: bool = False) -> Answered:
        """The next answer in the conversation, from the stronger model if one is named and the guard `escalates`.

        Raises RunFailed, OutOfQuota or LoopIncident.
        """
        question = NextTurn(self._windows, self._compressor, turn)
        question.first = self._stronger if escalates else None
        got = await self._attempts.ask(question)
        self._measure(got)
        return self._answered(got, turn)

    async def summarise(self, instruction: Message) -> str:
        """A closing answer in text, outside of any turn. Raises RunFailed, OutOfQuota or LoopIncident."""
        return await self._close(Closing(self._windows, self._compressor, instruction))

    async def last_word(self, instruction: Message) -> str:
        """The same in short for a run that trips, paid from what is kept for it within every limit. Raises alike."""
        return await self._close(LastWord(self._windows, self._compressor, instruction))

    async def _close(self, question: Closing) -> str:
        got = await self._attempts.ask(question)
        text = self._answered(got, None).message.text
        if not text.strip():
            raise RunFailed("malformed_response", "the model wrote no summary")
        return text

    async def _summary_of(self, request: Sequence[Message]) -> Draft:
        got = await self._attempts.ask(Summary(self._windows, request, self._summariser))
        answered = self._answered(got, None)
        return Draft(text=answered.message.text, was_cut=answered.cut)

    async def _record_tokens(self) -> int | None:
        """What the summariser can read, if it is another model than the one in use and its window is known."""
        if self._summariser is None:
            return None
        spec = self._specs[self._summariser]
        return room(await known_size(spec), spec.max_output_tokens).usable

    def _measure(self, got: Answer) -> None:
        if not got.answer.estimated:
            self._windows.known(got.asked.model).measured(got.answer.usage)

    def _answered(self, got: Answer, turn: int | None) -> Answered:
        answer = got.answer
        safe = make_safe(answer.message.text)
        calls, altered = self._safe_calls(answer.message.tool_calls if turn is not None else ())
        if safe.altered:
            altered["text"] = safe.altered
        message = replace(answer.message, text=safe.text, tool_calls=calls)
        self._journal.write(
            kinds.CallCompleted(
                operation="chat",
                name=got.asked.name,
                status="ok",
                text=safe.text,
                opaque=message.opaque,
                origin=message.origin if message.opaque else None,
                tool_calls=[{"call": c.call, "wire_id": c.wire_id, "name": c.name, "args": c.args} for c in calls]
                or None,
                finish_reason="length" if answer.cut else answer.finish_reason,
                ttft_ms=answer.ttft_ms,
                duration_ms=got.duration_ms,
                altered=altered or None,
                **ledger.of_answer(answer).fields(),
            ),
            turn=turn,
            call=got.asked.id,
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
            calls.append(replace(one, wire_id=unique(one.wire_id), name=legal_name(one.name), args=args.text))
        return tuple(calls), altered


def _place(specs: Sequence[ModelSpec], name: str | None) -> int | None:
    return next((n for n, spec in enumerate(specs) if spec.model == name), None)
