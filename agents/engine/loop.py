"""The loop: from the first turn, or from where a former worker left it, to one of the intended exits."""

from collections.abc import Mapping, Sequence

from agents import kinds
from agents.engine.control import RunControl
from agents.engine.journal import Journal
from agents.engine.model_call import ModelCall
from agents.engine.outcome import Exhausted, Outcome, refuse_notes
from agents.engine.transcript import OpenCall
from agents.engine.turn import Turn
from agents.errors import FuseTripped, RunFailed
from agents.messages import UserMessage
from agents.spec import CallStatus, Resume
from agents.tools.registry import Registry

CLOSING = (
    "The turn budget of this run is used up; no more tools can be called. Write the closing summary for the person "
    "who takes over: what was done, where things stand now, what is left to do."
)

LOST = "The worker died while this was running. Whether it took effect is unknown: check before doing it again."
NOT_AS_GIVEN = (
    "Not run: the run went over to another worker before this call's turn, and its arguments held a secret, which is "
    "not kept. Send the call again if it is still wanted."
)


class Loop:
    def __init__(
        self, *, journal: Journal, control: RunControl, model_call: ModelCall, turn: Turn, registry: Registry
    ) -> None:
        self._journal = journal
        self._transcript = journal.transcript
        self._control = control
        self._model_call = model_call
        self._turn = turn
        self._registry = registry

    async def run(self) -> Outcome:
        """Turns until there is an outcome. Raises RunFailed; passes cancellation through."""
        await self._control.drain_inbox()
        outcome = await self._pick_up()
        while outcome is None:
            if self._transcript.turn >= self._control.limits.turns() and not self._transcript.turn_open:
                return await self._exhausted()
            turn = self._transcript.turn if self._transcript.turn_open else self._transcript.turn + 1
            outcome = await self._turn.take(turn)
        return outcome

    async def _pick_up(self) -> Outcome | None:
        """Bring a log that a former worker left in the middle to a turn border; on a new run, take in early notes."""
        transcript = self._transcript
        if transcript.turn == 0:
            self._turn.inject_with_task()
            return None
        self._close_lost_chats()
        if transcript.turn_open and transcript.batch and transcript.answered:
            self._answer_lost_calls()
            return await self._turn.run_tools(transcript.turn, _raw_args(transcript.unanswered()))
        if transcript.answered and not transcript.batch:
            return await self._turn.conclude(transcript.turn, transcript.last_answer)
        return None

    def _close_lost_chats(self) -> None:
        for call, chat in list(self._transcript.open_chats.items()):
            self._journal.write(
                kinds.CallCompleted(
                    operation="chat", name=chat.name, status=CallStatus.EFFECT_UNKNOWN.value, cost_source="unknown"
                ),
                turn=self._transcript.turn,
                call=call,
            )

    def _answer_lost_calls(self) -> None:
        """Calls that had started and may not be run again get `effect_unknown`; the others stay open and run now.

        But for those whose arguments the log does not hold as the model gave them: with a marker in place of a secret
        they would do something else.
        """
        for waiting in self._transcript.unanswered():
            tool = self._registry.get(waiting.asked.name)
            resume = tool.spec.resume if tool else Resume.UNKNOWN
            if resume is Resume.ADOPT and waiting.child:
                continue
            if not waiting.started or resume is Resume.RERUN:
                if waiting.altered:
                    self._answer(waiting, CallStatus.NOT_STARTED, NOT_AS_GIVEN)
                continue
            self._answer(waiting, CallStatus.EFFECT_UNKNOWN, LOST)

    def _answer(self, waiting: OpenCall, status: CallStatus, text: str) -> None:
        self._journal.write(
            kinds.CallCompleted(
                operation="execute_tool",
                name=waiting.asked.name,
                args=waiting.asked.args,
                status=status.value,
                result=text,
            ),
            turn=self._transcript.turn,
            call=waiting.asked.call,
        )

    async def _exhausted(self) -> Exhausted:
        refuse_notes(self._journal, self._control, "no_turn_left")
        try:
            return Exhausted(final=await self._model_call.summarise(UserMessage(text=CLOSING)), final_by="model")
        except (RunFailed, FuseTripped) as error:
            return Exhausted(final=self._summary_from_log(error), final_by="log")

    def _summary_from_log(self, error: RunFailed | FuseTripped) -> str:
        """What can be said honestly without the model."""
        transcript = self._transcript
        last = transcript.last_answer.strip() or "(it wrote no text)"
        return (
            f"The turn budget ended the run after {transcript.turn} turns and {transcript.steps} tool calls. "
            f"The model could not be asked for a summary ({error.message}). The last thing it said: {last}"
        )


def _raw_args(waiting: Sequence[OpenCall]) -> Mapping[str, str]:
    return {one.asked.call: one.asked.args for one in waiting}
