"""The loop: from the first turn, or from where a former worker left it, to one of the intended exits."""

from collections.abc import Mapping, Sequence

from agents import kinds
from agents.engine.control import RunControl
from agents.engine.journal import Journal
from agents.engine.model_call import ModelCall
from agents.engine.outcome import Completed, Exhausted, Outcome, Tripped, close_open_calls, refuse_notes
from agents.engine.transcript import OpenCall
from agents.engine.turn import Turn
from agents.errors import LoopIncident, RunFailed
from agents.messages import UserMessage
from agents.policy.redaction import make_safe
from agents.spec import CallStatus, Resume
from agents.tools.registry import Registry

CLOSING = (
    "The turn budget of this run is used up; no more tools can be called. Write the closing summary for the person "
    "who takes over: what was done, where things stand now, what is left to do."
)

LAST_WORD = "This run is stopped by its guard: {explanation}. No more tools can be called."
USUAL_LAST_WORD = (
    "Say in a few sentences, for the person who takes over: what you were trying to do, what kept it from working, "
    "what you would look at next."
)

LOST = "The worker died while this was running. Whether it took effect is unknown: check before doing it again."
NOT_AS_GIVEN = (
    "Not run: the run went over to another worker before this call's turn, and its arguments held a secret, which is "
    "not kept. Send the call again if it is still wanted."
)


class Loop:
    def __init__(
        self,
        *,
        journal: Journal,
        control: RunControl,
        model_call: ModelCall,
        turn: Turn,
        registry: Registry,
        last_word: bool | str = False,
    ) -> None:
        self._last_word = last_word
        self._journal = journal
        self._transcript = journal.transcript
        self._control = control
        self._model_call = model_call
        self._turn = turn
        self._registry = registry

    async def run(self) -> Outcome:
        """Turns until there is an outcome. Raises RunFailed; passes cancellation through."""
        try:
            return await self._turns()
        except LoopIncident as incident:
            return Tripped(incident=incident, final=await self._explain(incident) if self._last_word else None)

    async def _turns(self) -> Outcome:
        await self._control.drain_inbox()
        outcome: Outcome | None = await self._pick_up()
        while outcome is None:
            if self._transcript.turn >= self._control.limits.turns() and not self._transcript.turn_open:
                return await self._exhausted()
            turn = self._transcript.turn if self._transcript.turn_open else self._transcript.turn + 1
            outcome = await self._turn.take(turn)
        return outcome

    async def _pick_up(self) -> Completed | None:
        """Bring a log that a former worker left in the middle to a turn border; on a new run, take in early notes."""
        transcript = self._transcript
        if transcript.turn == 0:
            self._turn.inject_with_task()
            return None
        self._close_lost_chats()
        if transcript.turn_open and transcript.batch and transcript.answered:
            self._answer_lost_calls()
            await self._turn.run_tools(transcript.turn, _raw_args(transcript.unanswered()))
            return None
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
            with self._control.work():
                return Exhausted(final=await self._model_call.summarise(UserMessage(text=CLOSING)), final_by="model")
        except RunFailed as error:
            return Exhausted(final=self._summary_from_log(error.message), final_by="log")
        except LoopIncident as incident:  # the turn budget had ended the run before the money did
            return Exhausted(final=self._summary_from_log(incident.verdict.explanation), final_by="log")

    async def _explain(self, incident: LoopIncident) -> str | None:
        """The model's last word on why the run trips, if it can still be asked."""
        close_open_calls(self._journal)
        wanted = self._last_word if isinstance(self._last_word, str) else USUAL_LAST_WORD
        text = f"{LAST_WORD.format(explanation=incident.verdict.explanation)} {wanted}"
        instruction = UserMessage(text=make_safe(text).text)
        try:
            with self._control.work():
                return await self._model_call.last_word(instruction)
        except (RunFailed, LoopIncident):
            return None

    def _summary_from_log(self, why: str) -> str:
        """What can be said honestly without the model."""
        transcript = self._transcript
        last = transcript.last_answer.strip() or "(it wrote no text)"
        return (
            f"The turn budget ended the run after {transcript.turn} turns and {transcript.steps} tool calls. "
            f"The model could not be asked for a summary ({why}). The last thing it said: {last}"
        )


def _raw_args(waiting: Sequence[OpenCall]) -> Mapping[str, str]:
    return {one.asked.call: one.asked.args for one in waiting}
