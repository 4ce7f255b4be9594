"""One turn: ask the model, run what it asked for, put the operator's notes behind the results."""

import asyncio
from collections.abc import Awaitable, Mapping

from agents import kinds
from agents.engine.attempts import OutOfQuota
from agents.engine.control import RunControl
from agents.engine.deadline import Deadline
from agents.engine.journal import Journal
from agents.engine.judgement import Judgement
from agents.engine.model_call import Answered, ModelCall
from agents.engine.outcome import Completed
from agents.engine.tool_batch import ToolBatch
from agents.errors import LoopIncident, RunFailed
from agents.policy import fuses
from agents.policy.redaction import make_safe
from agents.ports import Clock

# A model that is cut off again and again will not get out of it by itself.
MAX_CUT_IN_A_ROW = 3


class Turn:
    def __init__(
        self,
        *,
        journal: Journal,
        control: RunControl,
        model_call: ModelCall,
        batch: ToolBatch,
        judgement: Judgement,
        deadline: Deadline,
        clock: Clock,
        waits_for_quota: bool = True,
    ) -> None:
        self._waits_for_quota = waits_for_quota
        self._journal = journal
        self._transcript = journal.transcript
        self._control = control
        self._model_call = model_call
        self._batch = batch
        self._judgement = judgement
        self._deadline = deadline
        self._clock = clock
        self._closed: Awaitable[int] = _at_once()

    async def take(self, turn: int) -> Completed | None:
        """Take turn number `turn` (counting from 1). None: the loop goes on. Raises RunFailed and LoopIncident."""
        await self._control.hold("before_call", turn)
        await self._control.border()
        self._judgement.obey(turn)
        self._deadline.check()
        trip = fuses.before_model_call(self._control.limits, self._transcript.used(self._clock.now()))
        if trip is not None:
            raise LoopIncident(trip.verdict(self._transcript.steps), fuse=True)
        if not (self._transcript.turn == turn and self._transcript.turn_open):
            self._journal.write(kinds.TurnStarted(), turn=turn)
        answered = await self._answer(turn)
        # The log may lag behind by one model call, no more: a run that cannot write must not run on.
        await self._closed
        if not answered.message.tool_calls:
            return await self.conclude(turn, answered.message.text)
        await self.run_tools(turn, answered.raw_args, answered)
        return None

    async def _answer(self, turn: int) -> Answered:
        """The model's answer, however long that takes: keys that rest or have no money come back."""
        escalates = self._judgement.escalates
        while True:
            try:
                with self._control.work():
                    return await self._model_call.ask(turn, escalates)
            except OutOfQuota as quota:
                if not self._waits_for_quota:
                    raise
                await self._control.rest_until(quota.until, quota.message, turn)
                await self._control.hold("before_call", turn)

    async def run_tools(self, turn: int, raw_args: Mapping[str, str], answered: Answered | None = None) -> None:
        """Run the unanswered calls of this turn (after a resume: what is left of them), then close the turn."""
        calls = [waiting.asked for waiting in self._transcript.unanswered()]
        self._judgement.obey(turn)
        cut = answered is not None and answered.cut
        await self._batch.run(calls, raw_args, turn, cut)
        if cut and self._transcript.cut_in_a_row >= MAX_CUT_IN_A_ROW:
            raise RunFailed(
                "output_cut",
                f"the model's output was cut at the limit {MAX_CUT_IN_A_ROW} times in a row; "
                "raise its output limit or ask for smaller steps",
            )
        await self._control.hold("after_batch", turn)
        self._close(turn)

    def _close(self, turn: int) -> None:
        """Put waiting notes behind the last result (not behind the last turn's: no call follows) and end the turn."""
        self._judgement.hint(turn)
        after_call = next(reversed(self._transcript.batch), None)
        if turn < self._control.limits.turns():
            self._inject(turn, after_call)
        self._closed = self._journal.write(kinds.TurnCompleted(), turn=turn)

    async def conclude(self, turn: int, text: str) -> Completed | None:
        """An answer without tool calls ends the run, unless a note waits that a further turn can take in."""
        await self._control.drain_inbox()
        if turn < self._control.limits.turns() and self._inject(turn, None):
            self._closed = self._journal.write(kinds.TurnCompleted(), turn=turn)
            return None
        self._journal.write(kinds.TurnCompleted(), turn=turn)
        for note in self._control.take_notes():
            self._journal.write(kinds.SteerRefused(command=note.id, code="no_turn_left"), turn=turn)
        return Completed(final=text)

    def _inject(self, turn: int, after_call: str | None) -> int:
        """`turn` of the event is the turn whose model call reads the note: the next one."""
        notes = self._control.take_notes()
        for note in notes:
            safe = make_safe(str(note.args.get("note", "")))
            self._journal.write(
                kinds.SteerInjected(
                    command=note.id, note=safe.text, by=note.by, after_call=after_call, altered=safe.altered
                ),
                turn=turn + 1,
            )
        return len(notes)

    def inject_with_task(self) -> None:
        """Notes that came while the run was queued go in with the task, before the first call."""
        self._inject(0, None)


def _at_once() -> Awaitable[int]:
    """Nothing to wait for."""
    done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    done.set_result(0)
    return done
