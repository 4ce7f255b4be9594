"""What a run has used of the fuses that no column counts: identical calls, edits back and forth, failures in a row,
time at work. A fold over its log, kept per run and led on from where it stood."""

import threading
from collections import OrderedDict
from datetime import datetime, timedelta

from agents import kinds
from agents.events import Event, decode
from agents.policy.answers import answer_from, read_answer
from agents.policy.asked import Asked, Edited
from agents.policy.guarded import GOOD
from agents.policy.identity import Act, act_of
from agents.policy.policies import Fuses, Policy
from agents.policy.strict import Counted
from agents.spec import CallStatus
from control.runs.models import Event as Row
from control.runs.models import Run

KEPT = 128
_STATES = ("run.started", "run.waiting", "run.continued", "run.requeued", "fuse.raised")
_ENDS = ("run.completed", "run.exhausted", "run.interrupted", "run.tripped", "run.failed", "run.lost")
_WORK = ("call.completed", "edit.recorded")
# From the second one on, identical calls are told.
_TELL = Fuses(max_identical_calls=1)

_guard = threading.Lock()
_kept: OrderedDict[str, "Tally"] = OrderedDict()


class Tally:
    """Counts as the guard does, by the same parts. `since` is where a clock that never stopped would have begun; it is
    None while the run is not at work."""

    def __init__(self, policy: Policy) -> None:
        fuses = policy.fuses
        self.counts_failures = fuses.max_failures_in_a_row is not None
        self.counts_calls = bool(fuses.max_identical_calls or fuses.max_oscillations or self.counts_failures)
        self.seq = 0
        self.identical = 0
        self.identical_name = ""
        self.worked = timedelta()
        self.since: datetime | None = None
        self.raised: dict[str, str] = {}
        self.lock = threading.Lock()
        self._counted = Counted()
        self._identity = policy.identity
        self._acts: dict[str, Act] = {}
        self._edits: dict[str, dict[str, Edited]] = {}

    @property
    def failures(self) -> int:
        return self._counted.failures

    @property
    def oscillations(self) -> int:
        return self._counted.oscillations

    def seconds(self, now: datetime) -> float:
        """Time at work so far."""
        return ((now - self.since) if self.since else self.worked).total_seconds()

    def extend(self, run: str, upto: int) -> None:
        """Fold in what is new of the kinds that count; all up to `upto` is in the log by now. Call with the lock."""
        if upto <= self.seq:
            return
        wanted = (*_STATES, *_ENDS, *(_WORK if self.counts_calls else ()))
        rows = Row.objects.filter(run_id=run, seq__gt=self.seq, kind__in=wanted).order_by("seq")
        for body in rows.values_list("body", flat=True).iterator(chunk_size=500):
            event = decode(body)
            self.apply(event)
            self.seq = event.seq
        # What does not count is not looked through again.
        self.seq = max(self.seq, upto)

    def apply(self, event: Event) -> None:
        match event.data:
            case kinds.RunStarted() | kinds.RunContinued():
                if self.since is None:
                    self.since = event.at - self.worked
            case kinds.FuseRaised() as body:
                self.raised.update({name: str(value) for name, value in body.limits.items() if value is not None})
            case kinds.CallCompleted(operation="chat") as body:
                if body.status == "ok":
                    self._asked(body)
            case kinds.CallCompleted() as body:
                self._answered(body, event.call or "")
            case kinds.EditRecorded() as body:
                if body.sha256 is not None:
                    self._edits.setdefault(event.call or "", {})[body.path] = Edited(exact=body.sha256)
            case _:
                self._rest(event.at)

    def _rest(self, at: datetime) -> None:
        if self.since is not None:
            self.worked = max(self.worked, at - self.since)
            self.since = None

    def _asked(self, body: kinds.CallCompleted) -> None:
        self._acts, self._edits = {}, {}
        for number, one in enumerate(body.tool_calls or (), 1):
            act = act_of(Asked(call=number, batch=0, tool=str(one["name"]), args=one["args"]), self._identity)
            self._acts[str(one["call"])] = act
            found = self._counted.judge(act, _TELL)
            count = found.count if found else 1
            if count > self.identical:
                self.identical, self.identical_name = count, act.tool

    def _answered(self, body: kinds.CallCompleted, call: str) -> None:
        act = self._acts.get(call)
        if act is None or body.status == CallStatus.BLOCKED.value:
            return
        self._counted.learn(act, self._edits.get(call, {}), _TELL)
        if self.counts_failures:
            failing = body.status not in GOOD
            answer = answer_from(body.heard) if body.heard else read_answer(body.result or "", failing)
            self._counted.answered(answer.failed)


def of(run: Run, policy: Policy) -> Tally:
    """The run's tally up to now. The policy is frozen, so a kept one stays right."""
    with _guard:
        tally = _kept.get(run.pk)
        if tally is None:
            tally = _kept[run.pk] = Tally(policy)
        _kept.move_to_end(run.pk)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    with tally.lock:
        tally.extend(run.pk, run.last_seq)
    return tally
