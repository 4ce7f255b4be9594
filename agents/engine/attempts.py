"""One question through all its attempts: each failure gets its one right answer, and every step is told."""

import asyncio
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, assert_never

from agents.engine import chants, ledger
from agents.engine.asked import Asked, Pen
from agents.engine.control import RunControl
from agents.engine.journal import Journal
from agents.engine.key_reports import KeyReports
from agents.engine.ledger import NOTHING, UNKNOWN
from agents.engine.purse import Purse
from agents.engine.questions import Question
from agents.engine.stream import Stream
from agents.errors import ClassifiedError, LoopIncident, ModelError, RunFailed, spent_by
from agents.policy import fuses, recovery
from agents.policy.recovery import (
    Chances,
    Compress,
    FallBack,
    GiveUp,
    LowerOutput,
    Repair,
    Retry,
    Rotate,
    Tried,
    WaitForQuota,
)
from agents.policy.redaction import make_safe
from agents.ports import ChatAnswer, Clock, KeyReport, LiveText, Models, Picked, Resting
from agents.spec import ModelSpec

# A model that was left because it was busy is tried again after this long.
BACK_S = 300.0
# A key that just worked is not asked for anew: that would cost every turn a look into the pool.
KEEP_S = 5.0


class OutOfQuota(RunFailed):
    """No key of any model may be used for longer than a call may wait. `until` None: no time will bring one."""

    def __init__(self, kind: str, message: str, until: datetime | None) -> None:
        super().__init__(kind, message)
        self.until = until


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A complete answer and the call that it ends; whoever asked writes it down before anything else happens."""

    answer: ChatAnswer
    asked: Asked
    duration_ms: float


class Attempts:
    """One per run; remembers which of its models is in use."""

    def __init__(
        self,
        *,
        models: Models,
        specs: Sequence[ModelSpec],
        live: LiveText,
        clock: Clock,
        journal: Journal,
        control: RunControl,
        purse: Purse,
    ) -> None:
        self._models = models
        self._specs = specs
        self._live = live
        self._clock = clock
        self._journal = journal
        self._control = control
        self._purse = purse
        self._pen = Pen(journal, clock)
        self._place = 0
        self._back_at: float | None = None
        self._kept: tuple[int, Picked, float] | None = None
        self._keys = KeyReports(models)

    async def ask(self, question: Question) -> Answer:
        """Raises RunFailed when nothing helps, OutOfQuota when only time or money would, LoopIncident between attempts;
        a cancel closes the call and the socket at once."""
        if not question.last_word:
            self._check_fuses()
        asked = Asked(question=question, place=self._first_place(question))
        try:
            await self._pick(asked)
            await question.prepare(asked.model)
            while True:
                await self._pay(asked)
                self._pen.open(asked, self._specs[asked.place])
                asked.attempt += 1
                try:
                    answer = await self._attempt(asked)
                except ModelError as error:
                    await self._recover(asked, error)
                else:
                    self._keys.soon(KeyReport(credential=asked.model.credential, spent_usd=answer.cost_usd))
                    return Answer(answer=answer, asked=asked, duration_ms=self._pen.since(asked))
        except asyncio.CancelledError as cancelled:
            self._cut_off(asked, cancelled)
            raise
        except BaseException as error:
            self._pen.close(asked, "error", make_safe(str(error)).text, text=None, cost=asked.unpaid or NOTHING)
            raise

    def _first_place(self, question: Question) -> int:
        if question.first is not None:
            return question.first
        if self._back_at is not None and self._clock.monotonic() >= self._back_at:
            self._place, self._back_at = 0, None
        return self._place

    async def _attempt(self, asked: Asked) -> ChatAnswer:
        assert asked.request is not None
        request = replace(asked.request, hears_chants=chants.listens(self._journal))
        stream = asked.stream = Stream(self._live, asked.id, asked.attempt)
        cost = UNKNOWN
        try:
            answer = await asked.model.model.ask(request, stream.on_text)
            cost = ledger.of_answer(answer)
            return answer
        except ModelError as error:
            stream.withdraw()
            asked.stream, asked.unpaid = None, ledger.of_error(error)
            cost = asked.unpaid
            raise
        except BaseException as error:
            cost = ledger.of_spent(spent_by(error), UNKNOWN)
            raise
        finally:
            self._purse.settle(asked, cost)

    def _cut_off(self, asked: Asked, cancelled: asyncio.CancelledError) -> None:
        """The run stops or is given back: what was under way is told with what it had cost."""
        if asked.stream is None:
            self._pen.close(asked, "stopped", None, text=None, cost=asked.unpaid or NOTHING)
            return
        self._control.tally.sockets += 1
        spent = spent_by(cancelled)
        text = make_safe(asked.stream.text()).text or None
        self._pen.close(asked, "stopped", None, text=text, cost=ledger.of_spent(spent, UNKNOWN))
        if spent is not None and spent.cost_usd is not None:
            self._keys.soon(KeyReport(credential=asked.model.credential, reason="cancelled", spent_usd=spent.cost_usd))

    async def _pay(self, asked: Asked) -> None:
        """Before each attempt. Of a pool another key, if this one has not enough left of its limit."""
        check = (lambda: None) if asked.question.last_word else self._check_fuses
        while (short := await self._purse.pay(asked, check)) is not None:
            asked.failed.add(str(asked.model.credential))
            got = await self._models.pick(asked.place, frozenset(asked.failed))
            if isinstance(got, Resting) or got.credential in asked.failed:
                raise OutOfQuota("billing", f"{short.explanation} (credential_limit)", short.until)
            asked.picked, self._kept = got, None

    # --- a model with a key ---------------------------------------------------------------------------------------

    async def _pick(self, asked: Asked) -> None:
        """A model that may be used, after a wait or further down the list if need be. Raises OutOfQuota."""
        if self._kept is not None:
            place, picked, until = self._kept
            if place == asked.place and self._clock.monotonic() < until:
                asked.picked = picked
                return
        while True:
            got = await self._models.pick(asked.place)
            if isinstance(got, Picked):
                asked.picked = got
                self._kept = (asked.place, got, self._clock.monotonic() + KEEP_S)
                return
            rests_s = self._rests(asked, got)
            step = recovery.at_rest(
                rests_s, asked.tried, model=self._has(asked.place + 1), why=got.why, jitter=random.random()
            )
            facts = {"reason": "rate_limit", "message": make_safe(got.why).text[:2000]}
            if isinstance(step, WaitForQuota):
                raise self._out_of_quota(asked, "rate_limit", step)
            self._pen.open(asked, self._specs[asked.place])
            action = "cooldown" if isinstance(step, Retry) else step.action
            self._pen.retried(asked, facts, action, step.wait_s)
            if isinstance(step, FallBack):
                self._step_down(asked, "rate_limit")
            await self._wait(asked, step.wait_s)

    def _step_down(self, asked: Asked, reason: str) -> None:
        """Go on with the next model, and stay there for a while."""
        left, asked.place = self._specs[asked.place], asked.place + 1
        self._pen.fell_back(asked, self._told(left), self._told(self._specs[asked.place]), reason)
        asked.tried = Tried(waited_s=asked.tried.waited_s)
        asked.picked, asked.failed = None, set()
        if asked.question.first is None:
            self._place = asked.place
            self._back_at = None if recovery.lasts(reason) else self._clock.monotonic() + BACK_S

    def _told(self, spec: ModelSpec) -> str:
        twice = sum(other.model == spec.model for other in self._specs) > 1
        return f"{spec.model} at {spec.base_url}" if twice else spec.model

    def _has(self, place: int) -> bool:
        return place < len(self._specs)

    def _rests(self, asked: Asked, resting: Resting) -> float:
        """Seconds until a key is back; infinite if no time will bring one."""
        if resting.until is None:
            return math.inf
        asked.backs.append(resting.until)
        return max((resting.until - self._clock.now()).total_seconds(), 0.0)

    def _out_of_quota(self, asked: Asked, reason: str, step: WaitForQuota, said: str = "") -> OutOfQuota:
        """The next call looks at the first model again."""
        if asked.question.first is None:
            self._place, self._back_at = 0, None
        now = self._clock.now()
        backs = [back for back in asked.backs if back > now]
        if step.after_s is not None:
            backs.append(now + timedelta(seconds=step.after_s))
        return OutOfQuota(reason, f"{said} ({step.why})" if said else step.why, min(backs, default=None))

    # --- after a failure ------------------------------------------------------------------------------------------

    async def _recover(self, asked: Asked, error: ModelError) -> None:
        """Do what makes another attempt worth while, or raise."""
        self._kept = None
        if error.chant is not None:
            asked.chants += 1
            chants.chanted(self._journal, error.chant, asked.chants, asked.unpaid, asked.question.turn, asked.id)
        fault = ledger.judged(error, asked.question.context(asked.model), self._clock.now())
        facts = ledger.facts(error, fault)
        await self._keys.failed(asked, fault, facts["message"])
        chances = await self._chances(asked, fault, ledger.output_cap(error, fault))
        done = False
        while not done:
            step = recovery.decide(fault, asked.tried, chances, random.random())
            if isinstance(step, GiveUp):
                raise RunFailed(fault.reason, f"{facts['message']} ({step.why})") from error
            if isinstance(step, WaitForQuota):
                # What is refused for good does not come back when another key does.
                rests_s = step.after_s if fault.retryable else fault.retry_after_s
                self._pen.rotated(asked, None, fault.reason, rests_s)
                raise self._out_of_quota(asked, fault.reason, step, facts["message"]) from error
            if isinstance(step, LowerOutput):
                asked.question.lower(asked.model, step.cap, ledger.stated_window(error, fault))
            done = await self._take(asked, step, fault, facts)

    async def _take(self, asked: Asked, step: recovery.Another, fault: ClassifiedError, facts: dict[str, Any]) -> bool:
        """Tell the step, wait, and make it. False if it changed nothing."""
        question, picked = asked.question, asked.model
        changes: Sequence[str] = ()
        match step:
            case Repair():
                changes = question.repair(picked)
            case LowerOutput(cap=cap):
                changes = [f"an answer may have {cap} tokens"]
        self._pen.retried(asked, facts, step.action, step.wait_s, changes)
        match step:
            case Rotate(cooldown_s=cooldown_s):
                self._pen.rotated(asked, asked.next.credential if asked.next else None, fault.reason, cooldown_s)
            case FallBack():
                self._step_down(asked, fault.reason)
        await self._wait(asked, step.wait_s)
        match step:
            case Retry():
                asked.tried = replace(asked.tried, failures=asked.tried.failures + 1)
                await self._pick_again(asked, picked, fault)
            case Rotate():
                asked.picked, asked.next = asked.next, None
            case FallBack():
                await self._pick(asked)
                await question.prepare(asked.model)
            case Compress():
                asked.tried = replace(asked.tried, compressed=True)
                return await question.compress(picked)
            case Repair():
                asked.tried = replace(asked.tried, repaired=True)
            case LowerOutput():
                asked.tried = replace(asked.tried, lowered=True)
            case _:
                assert_never(step)
        return True

    async def _pick_again(self, asked: Asked, before: Picked, fault: ClassifiedError) -> None:
        """After a wait: of a pool perhaps another key, or the same one, rested."""
        if before.credential is None or not fault.should_rotate_credential:
            return
        asked.failed.clear()
        place = asked.place
        await self._pick(asked)
        if asked.place != place:
            await asked.question.prepare(asked.model)
        elif asked.model.credential != before.credential:
            after, asked.picked = asked.model, before
            self._pen.rotated(asked, after.credential, fault.reason, None)
            asked.picked = after

    async def _chances(self, asked: Asked, fault: ClassifiedError, output_cap: int | None) -> Chances:
        key, rests_s, label = False, None, asked.model.credential
        if fault.should_rotate_credential and label is not None:
            asked.failed.add(label)
            got = await self._models.pick(asked.place, frozenset(asked.failed))
            if isinstance(got, Resting):
                rests_s = self._rests(asked, got)
            elif got.credential not in asked.failed:
                key, asked.next = True, got
        mendable = asked.question.mendable
        return Chances(
            key=key,
            model=self._has(asked.place + 1),
            rests_s=rests_s,
            pooled=label is not None,
            compress=mendable,
            repair=mendable,
            output_cap=output_cap,
        )

    async def _wait(self, asked: Asked, seconds: float) -> None:
        self._check_fuses()
        with self._control.rest():
            await self._clock.sleep(seconds)
        asked.tried = replace(asked.tried, waited_s=asked.tried.waited_s + seconds)

    def _check_fuses(self) -> None:
        """An attempt is checked as the first one is: failed ones cost too."""
        transcript = self._journal.transcript
        trip = fuses.before_model_call(self._control.limits, transcript.used(self._clock.now()))
        if trip is not None:
            raise LoopIncident(trip.verdict(transcript.steps), fuse=True)
