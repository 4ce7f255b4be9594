"""The guard of a run: judges each call before it runs from what the model had seen, and learns from each answer.

Pure, incremental, bounded: the same calls and answers give the same verdicts, in constant time per call, and `state` is
plain data that survives a resume. Call `judge` for the calls of a batch in order, then `observe` for those that ran.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agents.policy import orders
from agents.policy.answers import Answer, answer_from, as_data, read_answer
from agents.policy.asked import NO_HINTS, Answered, Asked, Edited, Hints
from agents.policy.doors import Doors
from agents.policy.echoes import without_remarks
from agents.policy.families import Families
from agents.policy.findings import Finding
from agents.policy.identity import Act, act_of
from agents.policy.idling import Idling
from agents.policy.ladder import Streaks
from agents.policy.policies import Numbers, Policy
from agents.policy.progress import Progress
from agents.policy.repeats import Repeats
from agents.policy.rewording import Rewording
from agents.policy.stagnation import RULE as STAGNATION
from agents.policy.stagnation import Stagnation
from agents.policy.staleness import Staleness
from agents.policy.strict import Counted
from agents.policy.verdict_texts import explained, way_out
from agents.verdicts import BlockMode, Rung, Verdict

_ORDER = tuple(Rung)
# What a repeat may cost before it is stopped like an error, in dollars.
_DEAR = 1.0
# A rule that never blocks counts as far gone at this many.
_SOME = 8
# What these count is allowed up to their numbers, and no sign of a loop.
_BUDGETS = frozenset({"spawns"})
_HELD = frozenset({Rung.BLOCK, Rung.ESCALATE, Rung.STOP})
_OVER = frozenset({Rung.ESCALATE, Rung.STOP})
_REFUSE = BlockMode.REFUSE
VERSION = 1


class Guard:
    def __init__(self, policy: Policy, state: Mapping[str, Any] | None = None) -> None:
        self.policy = policy
        # Fuses that hold although the policy is in `shadow`: others than the policy have set them.
        self.hard: frozenset[str] = frozenset()
        self._progress = Progress()
        self._repeats, self._families, self._staleness = Repeats(), Families(), Staleness()
        self._rewording, self._idling, self._doors = Rewording(), Idling(), Doors()
        self._streaks, self._counted = Streaks(), Counted()
        self._detectors = (self._repeats, self._families, self._staleness, self._rewording, self._doors)
        self._stagnation = Stagnation()
        self._batch = self._settled = self._escalated = 0
        self._asked: dict[int, tuple[Act, Verdict | None, str]] = {}
        self._told: set[int] = set()
        self._done: list[tuple[Act, Answer | None, Mapping[str, Edited]]] = []
        if state:
            self._load(state)

    # --- before a call ----------------------------------------------------------------------------------------

    def judge(self, asked: Asked) -> Verdict | None:
        """The verdict on a call that is about to run. `stub` is provisional until `observe` has seen the answer."""
        if asked.batch != self._batch:
            self._settle()
            self._batch = asked.batch
        if asked.call <= self._settled or asked.call in self._told:
            return None  # told twice: counted once
        self._told.add(asked.call)
        act = act_of(self._hinted(asked), self.policy.identity)
        verdict, detector = self._verdict(act)
        self._asked[asked.call] = (act, verdict, detector)
        if verdict is not None and refuses(verdict):
            self._done.append((act, None, {}))
        return verdict

    @property
    def _weighs(self) -> bool:
        return STAGNATION in self.policy.rules

    def _hinted(self, asked: Asked) -> Asked:
        rule = self.policy.tools.get(asked.tool)
        if rule is None:
            return asked
        hints = asked.hints or NO_HINTS
        read_only = hints.read_only if rule.read_only is None else rule.read_only
        return replace(asked, hints=Hints(read_only=read_only, poll=hints.poll or rule.poll, identity=hints.identity))

    def _verdict(self, act: Act) -> tuple[Verdict | None, str]:
        policy = self.policy
        trip = self._counted.judge(act, policy.fuses)
        if trip is not None:
            return self._issue(trip, "fuses", Rung.STOP, None, policy.shadow and trip.rule not in self.hard), "fuses"
        if policy.ladder is not None and (found := self._streaks.judge(act)) is not None:
            rung = self._streaks.rung(policy.ladder, found.count, policy.escalate_at_most)
            if rung is not None:
                mode = BlockMode.REFUSE if rung in (Rung.BLOCK, Rung.ESCALATE) else None
                return self._issue(found, "ladder", rung, mode, policy.shadow), "ladder"
        if not policy.rules:
            return None, ""
        best: tuple[Rung, Finding, Numbers, str] | None = None
        counts: dict[str, float] = {}
        for detector in (*self._detectors, self._idling):
            found = detector.judge(act, self._progress)
            if found is None or (numbers := policy.rules.get(found.rule)) is None:
                continue
            if found.rule not in _BUDGETS:
                short_of = numbers.block or numbers.stop or _SOME
                short = (found.count - self._progress.ordered - found.leash) / short_of
                counts[found.rule] = max(short, counts.get(found.rule, short))
            rung = self._rung(numbers, found)
            if rung is not None and (best is None or _ORDER.index(rung) > _ORDER.index(best[0])):
                best = rung, found, numbers, detector.name
        held = best is not None and best[0] in _HELD and not self._stagnation.looks_always
        if not held and (numbers := policy.rules.get(STAGNATION)) is not None:
            found = self._stagnation.judge(act, self._progress, counts)
            rung = self._rung(numbers, found) if found is not None else None
            if found is not None and rung is not None and (best is None or _ORDER.index(rung) > _ORDER.index(best[0])):
                best = rung, found, numbers, STAGNATION
        if best is None:
            return None, ""
        rung, found, numbers, name = best
        mode = self._mode(rung, found, numbers)
        shadow = policy.shadow or numbers.shadow
        return self._issue(found, name, self._escalate(rung, mode, shadow), mode, shadow), name

    def _rung(self, numbers: Numbers, found: Finding) -> Rung | None:
        ordered = self._progress.ordered
        count, leash = found.count - ordered, found.leash
        stop = numbers.stop + max(leash, 0)
        if found.usd >= _DEAR and numbers.block:
            stop = min(stop, numbers.block + 3 + max(leash, 0))
        if numbers.mode != "observe":
            # A run that learns more than it repeats is not stopped for it: the call is held back, the run goes on.
            if numbers.stop and count >= stop and found.since < max(found.count, 3):
                return Rung.STOP
            if numbers.block and count >= max(numbers.block + leash, 1):
                return Rung.BLOCK
        if numbers.steer and count >= numbers.steer:
            return Rung.STEER
        return Rung.OBSERVE if numbers.observe and found.count >= numbers.observe else None

    def _mode(self, rung: Rung, found: Finding, numbers: Numbers) -> BlockMode | None:
        if rung is not Rung.BLOCK:
            return None
        return found.mode or BlockMode(numbers.mode)

    def _escalate(self, rung: Rung, mode: BlockMode | None, shadow: bool) -> Rung:
        """A refused call may give the next turn to a stronger model, if the policy names one."""
        policy = self.policy
        if policy.escalate_to is None or rung is not Rung.BLOCK or mode is not BlockMode.REFUSE or shadow:
            return rung
        if self._escalated >= policy.escalate_at_most:
            return rung
        self._escalated += 1
        return Rung.ESCALATE

    def _issue(self, found: Finding, detector: str, rung: Rung, mode: BlockMode | None, shadow: bool) -> Verdict:
        return Verdict(
            detector=detector,
            rung=rung,
            rule=found.rule,
            fingerprint=found.fingerprint,
            step=self._counted.steps,
            count=found.count,
            evidence=(found.first,) if found.first == found.last else (found.first, found.last),
            explanation=explained(found, rung, mode),
            mode=mode,
            wasted_tokens=found.tokens,
            wasted_usd=f"{found.usd:.6f}".rstrip("0").rstrip(".") if found.usd else None,
            shadow=shadow,
            advice=f"Raise {found.rule} to let a run like this go on." if detector == "fuses" else way_out(found.rule),
        )

    # --- after it ---------------------------------------------------------------------------------------------

    def observe(self, call: int, answered: Answered) -> Verdict | None:
        """Learn an answer. Returns the final verdict on the call where the answer changes or completes the first one:
        a stub that holds or is taken back, or a fuse that what was done has tripped."""
        row = self._asked.pop(call, None)
        if row is None:
            return None
        act, verdict, name = row
        answer = self._read(act, answered)
        self._done.append((act, answer, answered.edits))
        tripped = self._counted.learn(act, answered.edits, self.policy.fuses)
        if tripped is not None:
            return self._issue(tripped, "fuses", Rung.STOP, None, self.policy.shadow)
        if verdict is None or verdict.mode is not BlockMode.STUB or verdict.rung is not Rung.BLOCK:
            return None
        detector = next((one for one in (*self._detectors, self._stagnation) if one.name == name), None)
        news = self._progress.is_written_anew(answered.edits)
        if not news and detector is not None and detector.still_same(act, answer):
            return verdict
        return replace(verdict, rung=Rung.OBSERVE, mode=None, explanation="The answer has changed: let through.")

    def _read(self, act: Act, answered: Answered) -> Answer:
        if answered.heard is not None:
            return answer_from(answered.heard)
        return read_answer(without_remarks(answered.text, act.pairs), answered.is_error)

    def heard(self, call: int) -> dict[str, Any] | None:
        """What was read out of the answer to a call of this batch, as plain data: kept beside a stub in the log, it
        lets a fold learn (`Answered.heard`) what the run had learnt."""
        return next((as_data(one) for act, one, _ in self._done if one is not None and act.number == call), None)

    def _settle(self) -> None:
        """The batch is over: the model reads its answers, so they count from now on."""
        self._settled = max(self._settled, *self._told) if self._told else self._settled
        self._told.clear()
        # In the order in which they were asked: the calls of a batch end in any order, and on another day in another.
        done, self._done = sorted(self._done, key=_number), []
        for act, answer, edits in done:
            if answer is None:
                for detector in (*self._detectors, self._idling, self._stagnation):
                    detector.refused(act)
                continue
            self._counted.answered(answer.failed)
            self._progress.learn(act, answer, edits)
            self._streaks.learn(act, answer.excerpt)
            for one in self._detectors:
                one.learn(act, answer, self._progress)
            self._idling.learn(act, answer, self._progress, list(edits))
            if self._weighs:
                self._stagnation.learn(act, answer, edits)
        self._asked.clear()

    # --- what is no call --------------------------------------------------------------------------------------

    def person_spoke(self, text: str) -> None:
        """A person's word is a new fact: counters start anew, fuses do not. A mere nudge is none."""
        self._settle()
        if orders.is_nudge(text):
            return
        self._progress.ordered = orders.repeats_ordered(text)
        self._progress.forget_returns()
        self._streaks.person_spoke()
        for detector in (*self._detectors, self._idling, self._stagnation):
            detector.person_spoke()

    def said(self, text: str, call: int) -> Verdict | None:
        """The model answered without a call and was asked to go on."""
        self._settle()
        return self._pseudo(self._idling.said(text, call))

    def compressed(self, call: int) -> Verdict | None:
        """The context was compressed: the model may read again what it has lost."""
        self._settle()
        for detector in (*self._detectors, self._stagnation):
            detector.context_compressed()
        return self._pseudo(self._idling.compressed(call))

    def _pseudo(self, found: Finding | None) -> Verdict | None:
        numbers = self.policy.rules.get(found.rule) if found else None
        if found is None or numbers is None:
            return None
        rung = self._rung(numbers, found)
        shadow = self.policy.shadow or numbers.shadow
        return None if rung is None else self._issue(found, "idling", rung, None, shadow)

    # --- memory -----------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Plain data (JSON). Take it between batches: calls that were judged and not yet observed are forgotten."""
        self._settle()
        return {
            "v": VERSION,
            "batch": self._batch,
            "settled": self._settled,
            "escalated": self._escalated,
            "progress": self._progress.dump(),
            "stagnation": self._stagnation.dump(),
            "idling": self._idling.dump(),
            "streaks": self._streaks.dump(),
            "counted": self._counted.dump(),
            **{one.name: one.dump() for one in self._detectors},
        }

    def _load(self, state: Mapping[str, Any]) -> None:
        self._batch, self._settled, self._escalated = state["batch"], state["settled"], state["escalated"]
        self._progress.load(state["progress"])
        self._stagnation.load(state["stagnation"])
        self._idling.load(state["idling"])
        self._streaks.load(state["streaks"])
        self._counted.load(state["counted"])
        for one in self._detectors:
            one.load(state[one.name])


def _number(done: tuple[Act, Answer | None, Mapping[str, Edited]]) -> int:
    return done[0].number


def refuses(verdict: Verdict) -> bool:
    """Whether the call must not run."""
    if verdict.shadow:
        return False
    return verdict.rung in _OVER or verdict.mode is _REFUSE
