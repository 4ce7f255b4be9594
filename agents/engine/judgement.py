"""The engine's obedience: every verdict becomes an event, and what it asks for is done."""

from collections.abc import Mapping, Sequence
from typing import Any

from agents import kinds
from agents.engine.journal import Journal
from agents.errors import LoopIncident
from agents.messages import ToolCall
from agents.policy import verdict_texts
from agents.spec import CallStatus
from agents.verdicts import Rung, Verdict


class Judgement:
    """Tells the verdicts of one run and acts on them."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._log = journal.transcript.guarded

    def obey(self, turn: int | None) -> None:
        """Write what is pending. Raises LoopIncident if the last rung is reached; the call that it is on gets its
        answer first, if it has none."""
        self._tell(turn)
        if self._log.stop is None:
            return
        call, verdict = self._log.stop
        waiting = self._journal.transcript.batch.get(call or "")
        if waiting is not None and waiting.result is None:
            self._refuse(waiting.asked, verdict, turn)
        raise LoopIncident(verdict, fuse=verdict.detector == "fuses")

    def _tell(self, turn: int | None) -> None:
        # Behind the one that ends the run nothing is judged, neither now nor by who judges the log later.
        while self._log.pending and self._log.stop is None:
            call, verdict = self._log.pending[0]
            # Written, it is pending no more.
            self._journal.write(self._event(verdict), turn=turn, call=call)

    def refused(self, asked: ToolCall, turn: int) -> bool:
        """Whether the call must not run; it has its answer then."""
        judged = self._log.calls.get(asked.call)
        if judged is None or judged.verdict is None or not judged.refused:
            return False
        self._refuse(asked, judged.verdict, turn)
        return True

    def may_stub(self, call: str) -> bool:
        """Whether the call runs to see if it answers as before."""
        judged = self._log.calls.get(call)
        return judged is not None and judged.may_stub and not judged.issued

    def stub(
        self, call: str, turn: int, text: str, is_error: bool, heard: Mapping[str, Any] | None = None
    ) -> tuple[str, Mapping[str, Any] | None] | None:
        """What the model reads in place of an answer that has not changed, with what was heard in it; None if it has
        changed, or if the guard only looks on."""
        verdict = self._log.settle(call, text, is_error, heard)
        heard = self._log.heard(call)
        self._tell(turn)
        if verdict is None or verdict.rung is not Rung.BLOCK or verdict.shadow:
            return None
        return verdict_texts.stub(verdict, text), heard

    def hint(self, turn: int) -> None:
        """Behind the results of a batch: what the guard has to say to the model and has not said yet."""
        verdicts = [one.verdict for one in self._log.calls.values() if one.verdict is not None]
        due = [one for one in verdicts if one.rung is Rung.STEER and not one.shadow]
        for verdict in due[self._log.hinted :]:
            told = {"rule": verdict.rule, "fingerprint": verdict.fingerprint, "count": verdict.count}
            self._journal.write(kinds.HintInjected(verdict=told, text=verdict_texts.hint(verdict)), turn=turn)

    @property
    def escalates(self) -> bool:
        """Whether a stronger model takes the next turn."""
        verdicts = [one.verdict for one in self._log.calls.values() if one.verdict is not None]
        return any(verdict.rung is Rung.ESCALATE and not verdict.shadow for verdict in verdicts)

    def _refuse(self, asked: ToolCall, verdict: Verdict, turn: int | None) -> None:
        self._journal.write(
            kinds.CallCompleted(
                operation="execute_tool",
                name=asked.name,
                args=asked.args,
                status=CallStatus.BLOCKED.value,
                result=verdict_texts.refusal(verdict),
            ),
            turn=turn,
            call=asked.call,
        )

    def _event(self, verdict: Verdict) -> kinds.VerdictIssued:
        return kinds.VerdictIssued(**told(verdict, self._log.evidence(verdict)))


def told(verdict: Verdict, evidence: Sequence[int]) -> dict[str, Any]:
    """A verdict as events have it; `evidence` as `seq`s."""
    return {
        "detector": verdict.detector,
        "rung": verdict.rung.value,
        "rule": verdict.rule,
        "fingerprint": verdict.fingerprint,
        "step": verdict.step,
        "count": verdict.count,
        "evidence": list(evidence),
        "wasted_tokens": verdict.wasted_tokens,
        "wasted_usd": verdict.wasted_usd,
        "explanation": verdict.explanation,
        "shadow": verdict.shadow,
        "mode": verdict.mode.value if verdict.mode else None,
        "advice": verdict.advice or None,
    }
