"""The guard over the log of one run: each event is handed to it as it is written, and again when a log is read.

Live run, resumed run and what is judged afterwards see the same bodies, so they come to the same verdicts.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from agents import kinds
from agents.kinds import Body
from agents.policy.asked import Answered, Asked, Edited, Hints
from agents.policy.contents import edited
from agents.policy.guard import Guard, refuses
from agents.policy.policies import Fuses, Policy
from agents.spec import LIMIT_NAMES, CallStatus, Limit, Limits
from agents.verdicts import BlockMode, Rung, Verdict

# A call with one of these was answered, but its tool said or did nothing that counts as success.
GOOD = frozenset({CallStatus.OK.value, CallStatus.STUB.value, CallStatus.DRY_RUN.value})
_READS = Hints(read_only=True)
_NO_HINTS = Hints()
# Evidence is recent calls; the numbers of older ones are let go.
_SEQS = 4_096


@dataclass(slots=True, kw_only=True)
class JudgedCall:
    """A call of the latest answer. `number` counts calls and what stands between them (a note, a text, a compression).

    `verdict` on a stub is provisional until the call has been run. `told`: rung and rule of what the log tells on it.
    """

    number: int
    verdict: Verdict | None
    issued: bool = False
    told: set[tuple[str, str]] = field(default_factory=set)
    edits: dict[str, Edited] = field(default_factory=dict)

    @property
    def refused(self) -> bool:
        return self.verdict is not None and refuses(self.verdict)

    @property
    def may_stub(self) -> bool:
        verdict = self.verdict
        return verdict is not None and verdict.rung is Rung.BLOCK and verdict.mode is BlockMode.STUB


class GuardedLog:
    """`pending` holds verdicts that no event tells yet, each with the call it is on (None: on no call). `stop` is the
    told one that ends the run, also when it had no time to end under the worker that told it.
    """

    def __init__(self, policy: Policy, limits: Limits | None = None) -> None:
        self.policy = policy
        self.guard = Guard(policy)
        self.stop: tuple[str | None, Verdict] | None = None
        # Hints that stand behind the results of the latest batch.
        self.hinted = 0
        self._limits = limits
        if limits is not None:
            self.limit(limits)
        self.calls: dict[str, JudgedCall] = {}
        self.pending: deque[tuple[str | None, Verdict]] = deque()
        self._numbers = self._batches = 0
        self._hints: dict[str, Hints] = {}
        self._seqs: dict[int, int] = {}

    def limit(self, limits: Limits) -> None:
        """The limits in force now; a fuse of the policy that they name is theirs."""
        self._limits = limits
        self.guard.policy = _held_by(self.policy, limits)
        self.guard.hard = _hard(limits)

    def apply(self, body: Body, *, turn: int | None, call: str | None, seq: int) -> None:
        match body:
            case kinds.CallCompleted(operation="chat"):
                if turn is not None and body.status == "ok":
                    self._answer(body, seq)
            case kinds.CallCompleted():
                self._completed(body, call, seq)
            case kinds.EditRecorded():
                if call in self.calls:
                    self.calls[call].edits[body.path] = _edited(body)
            case kinds.SteerInjected():
                self._next(seq)
                self.guard.person_spoke(body.note)
            case kinds.ContextCompressed():
                self._pend(None, self.guard.compressed(self._next(seq)))
            case kinds.VerdictIssued():
                self._issued(body, call)
            case kinds.HintInjected():
                self.hinted += 1
            case kinds.FuseRaised():
                self._raised(body)
            case kinds.RunStarted():
                self._hints = dict.fromkeys(body.read_only or (), _READS)

    def settle(self, call: str, text: str, is_error: bool, heard: Mapping[str, Any] | None = None) -> Verdict | None:
        """Before the end of a call that may become a stub is written: the verdict as it stands now that its answer is
        known. The log gets `heard` beside the stub, so that whoever reads it learns the same."""
        judged = self.calls[call]
        answered = Answered(text=text, is_error=is_error, edits=judged.edits, heard=heard)
        judged.verdict = self.guard.observe(judged.number, answered) or judged.verdict
        self._pend(call, judged.verdict)
        return judged.verdict

    def heard(self, call: str) -> Mapping[str, Any] | None:
        return self.guard.heard(self.calls[call].number)

    def evidence(self, verdict: Verdict) -> list[int]:
        """Where the log holds the calls that a verdict rests on."""
        return [self._seqs[number] for number in verdict.evidence if number in self._seqs]

    def _answer(self, body: kinds.CallCompleted, seq: int) -> None:
        asked = body.tool_calls or ()
        self.calls, self.hinted = {}, 0
        if not asked:
            if body.text:
                self._pend(None, self.guard.said(body.text, self._next(seq)))
            return
        self._batches += 1
        usage = body.usage or {}
        tokens = sum(usage.get(part, 0) for part in ("input", "output", "cache_read", "cache_write"))
        usd = float(body.cost_usd) if body.cost_usd is not None else 0.0
        for one in asked:
            number = self._next(seq)
            verdict = self.guard.judge(
                Asked(
                    call=number,
                    batch=self._batches,
                    tool=one["name"],
                    args=one["args"],
                    hints=self._hints.get(one["name"], _NO_HINTS),
                    tokens=tokens,
                    cost_usd=usd,
                )
            )
            tokens, usd = 0, 0.0
            self.calls[one["call"]] = judged = JudgedCall(number=number, verdict=verdict)
            if verdict is not None and not judged.may_stub:
                self._pend(one["call"], verdict)

    def _completed(self, body: kinds.CallCompleted, call: str | None, seq: int) -> None:
        judged = self.calls.get(call) if call is not None else None
        if judged is None:
            return
        self._seqs[judged.number] = seq
        if body.status == CallStatus.BLOCKED.value:
            return
        answered = Answered(
            text=body.result or "", is_error=body.status not in GOOD, edits=judged.edits, heard=body.heard
        )
        verdict = self.guard.observe(judged.number, answered)
        if verdict is not None:
            judged.verdict = verdict
            if (verdict.rung.value, verdict.rule) not in judged.told:
                self._pend(call, verdict)

    def _issued(self, body: kinds.VerdictIssued, call: str | None) -> None:
        if call in self.calls:
            self.calls[call].issued = True
            self.calls[call].told.add((body.rung, body.rule))
        told = None
        for at, (on, verdict) in enumerate(self.pending):
            if on == call and verdict.rule == body.rule:
                del self.pending[at]
                told = verdict
                break
        if body.rung == Rung.STOP.value and not body.shadow and self.stop is None:
            self.stop = call, told or _verdict_of(body)

    def _raised(self, body: kinds.FuseRaised) -> None:
        """What is judged from here on is judged by it, also by whoever reads the log later."""
        if self._limits is not None:
            raised = {name: Limit(value=Decimal(value), source="raised") for name, value in body.limits.items()}
            self.limit(replace(self._limits, **{name: one for name, one in raised.items() if name in LIMIT_NAMES}))

    def _pend(self, call: str | None, verdict: Verdict | None) -> None:
        if verdict is not None:
            self.pending.append((call, verdict))

    def _next(self, seq: int) -> int:
        self._numbers += 1
        self._seqs[self._numbers] = seq
        self._seqs.pop(self._numbers - _SEQS, None)
        return self._numbers


def _edited(body: kinds.EditRecorded) -> Edited:
    before = body.before_sha256 or ""
    if body.sha256 is None:
        return replace(edited(None), before=before)
    return Edited(exact=body.sha256, loose=body.loose or "", code=body.code or "", before=before)


def _held_by(policy: Policy, limits: Limits | None) -> Policy:
    """The policy with the limits in force in place of its own: they may be tighter, and may be raised."""
    if limits is None:
        return policy
    steps, tokens, cost = limits.max_steps, _own(limits.max_tokens), _own(limits.max_cost)
    held: Fuses = replace(
        policy.fuses,
        max_steps=int(steps.value) if steps else None,
        max_tokens=int(tokens.value) if tokens else None,
        max_cost=float(cost.value) if cost else None,
    )
    return replace(policy, fuses=held)


def _hard(limits: Limits) -> frozenset[str]:
    """The fuses that do not come from a policy, be it the parent's: they hold although it may only look on."""
    given = {name: getattr(limits, name) for name in LIMIT_NAMES}
    return frozenset(name for name, one in given.items() if one is not None and one.source not in ("policy", "parent"))


def _verdict_of(body: kinds.VerdictIssued) -> Verdict:
    """A verdict that was not the guard's own (an answer that chants), as the log tells it."""
    return Verdict(
        detector=body.detector,
        rung=Rung(body.rung),
        rule=body.rule,
        fingerprint=body.fingerprint,
        step=body.step,
        count=body.count,
        evidence=(),
        explanation=body.explanation,
        wasted_tokens=body.wasted_tokens,
        wasted_usd=body.wasted_usd,
        advice=body.advice or "",
    )


def _own(limit: Limit | None) -> Limit | None:
    """What a sub-agent has of its parent is kept by the parent's account."""
    return None if limit is None or limit.source == "parent" else limit
