"""The same call that taught nothing: the same error, the same effect once more, the same answer, the same waiting."""

from dataclasses import astuple, dataclass, field
from typing import Any

from agents.policy.answers import Answer
from agents.policy.bounded import Bounded
from agents.policy.findings import Finding
from agents.policy.identity import Act
from agents.policy.natures import Nature
from agents.policy.progress import Progress, talks

_KEYS, _ANSWERS = 512, 6
# What may depend on anything: any change of the world is a reason to ask it again.
_ON_ANYTHING = frozenset({Nature.CHECK, Nature.RUN, Nature.OPERATE})
_SLOW = ("transient",)


@dataclass(slots=True)
class Trace:
    """What one call has come to. `answers`: those it gave since it last taught something; `count`: equal ones since the
    world last changed; `despite`: equal failures in a row whatever changed in between; `idle`: idle edits by then."""

    answers: list[str] = field(default_factory=list)
    shape: str = ""
    nature: str = ""
    count: int = 0
    despite: int = 0
    refused: int = 0
    failed: bool = False
    sort: str = ""
    pending: bool = False
    ended: bool = False
    brief: bool = False
    epoch: int = 0
    stamp: int = 0
    moves: int = 0
    waits: int = 0
    idle_edits: int = 0
    changes: int = 0
    fresh: int = 0
    best: list[float] = field(default_factory=list)
    first: int = 0
    last: int = 0
    batch: int = 0
    tokens: int = 0
    usd: float = 0.0
    said: str = ""


class Repeats:
    name = "repeats"

    def __init__(self) -> None:
        self._traces: Bounded[Trace] = Bounded(_KEYS)
        self._fresh = 0

    # --- before the call --------------------------------------------------------------------------------------

    def judge(self, act: Act, progress: Progress) -> Finding | None:
        trace = self._traces.get(act.key)
        if trace is None or act.exempt:
            return None
        self._fresh = progress.fresh
        nature = act.nature or (Nature(trace.nature) if trace.nature else Nature.READ)
        if trace.failed:
            return self._failing(act, trace, nature, progress)
        if act.polls or (
            trace.pending
            and (not act.path or act.wait_s or trace.brief)
            and nature in (Nature.READ, Nature.CHECK, Nature.RUN, Nature.STEP)
        ):
            return self._found(
                "pending", act, trace, trace.count, leash=_patience(trace, progress, 16) + 10 * act.polls
            )
        if nature is Nature.WAIT:
            return None
        changed = progress.epoch > trace.epoch
        related = progress.changed_since(act.tokens, trace.stamp)
        if nature in (Nature.SEND, Nature.SET, Nature.OPERATE, Nature.EDIT, Nature.ASK, Nature.SPAWN):
            return self._acting(act, trace, nature, changed, progress)
        if nature in (Nature.STEP, Nature.SCREEN):
            if changed:
                return None
            brief = trace.brief or nature is Nature.STEP
            return self._found("screen_step" if brief else "screen_still", act, trace, trace.count)
        if nature in (Nature.THINK, Nature.PLAN, Nature.TEXT):
            return None
        leash = 0
        if changed and (related or nature in _ON_ANYTHING or not act.narrow):
            return None
        if changed:
            leash = 2
        leash += _patience(trace, progress, 1 if trace.ended else 12)
        leash += min(progress.moves - trace.moves, 2)
        return self._found("repeat_read", act, trace, trace.count, leash=leash)

    def _failing(self, act: Act, trace: Trace, nature: Nature, progress: Progress) -> Finding | None:
        changed = progress.epoch > trace.epoch
        related = progress.changed_since(act.tokens, trace.stamp)
        waits = min(progress.waits - trace.waits, 4) if trace.sort in _SLOW or trace.pending else 0
        anything = nature in _ON_ANYTHING or (act.shell and nature is Nature.READ)
        if anything and (changed or trace.changes):
            idle = progress.idle_edits > trace.idle_edits
            return self._found("failure_despite_changes", act, trace, trace.despite, leash=-1 if idle else 0)
        if anything and (act.shell or nature is not Nature.OPERATE):
            return self._found("repeat_failing_command", act, trace, trace.count, leash=waits)
        leash = waits + (2 if related else 1 if changed or trace.changes else 0)
        count = trace.despite if (changed or trace.changes) else trace.count
        return self._found("repeat_error", act, trace, count, leash=leash)

    def _acting(self, act: Act, trace: Trace, nature: Nature, changed: bool, progress: Progress) -> Finding | None:
        if nature is Nature.SEND or nature is Nature.ASK or nature is Nature.SPAWN:
            telling = talks(act.tool) or act.money or nature is not Nature.SEND
            if changed and not act.money and nature is not Nature.SEND:
                return None
            rule = "repeat_effect" if telling or not changed else "repeat_state"
            leash = 0 if not changed else 1 if telling else 3
            return self._found(rule, act, trace, trace.count, leash=leash)
        if changed:
            return None
        if nature is Nature.OPERATE:
            leash = min(progress.moves - trace.moves, 2)
            if act.nature is None:
                # Nobody knows what it does: perhaps each time a step further. What is learnt meanwhile speaks for it.
                leash += 3 + min(max(progress.fresh - trace.fresh, 0), 6)
            return self._found("repeat_operation", act, trace, trace.count, leash=leash)
        return self._found("repeat_state", act, trace, trace.count)

    def _found(self, rule: str, act: Act, trace: Trace, count: int, *, leash: int = 0) -> Finding | None:
        total = count + trace.refused
        if total <= 0:
            return None
        return Finding(
            rule=rule,
            count=total,
            fingerprint=act.key,
            first=trace.first,
            last=trace.last,
            what="the same call",
            said=trace.said,
            leash=leash,
            tokens=trace.tokens,
            usd=trace.usd,
            since=self._fresh - trace.fresh,
        )

    # --- after it ---------------------------------------------------------------------------------------------

    def learn(self, act: Act, answer: Answer, progress: Progress) -> None:
        trace = self._traces.get(act.key)
        now = answer.fault if answer.failed else answer.same
        if trace is None:
            trace = Trace(first=act.call)
        elif not self._taught_nothing(act, trace, answer, now):
            kept = trace.best if answer.failed else []
            trace = Trace(first=act.call, best=kept)
        elif trace.batch == act.batch:
            return  # several in one message are one try
        elif answer.failed or progress.epoch == trace.epoch or not self._starts_over(act, trace):
            trace.count += 1
        else:
            trace.count, trace.first = 1, act.call
        trace.count = max(trace.count, 1)
        trace.despite += answer.failed
        trace.changes += progress.epoch > trace.epoch and trace.epoch > 0 and trace.despite > 1
        self._note(act, trace, answer, now, progress)

    def _taught_nothing(self, act: Act, trace: Trace, answer: Answer, now: str) -> bool:
        if trace.failed != answer.failed:
            return False
        nature = act.nature or (Nature(trace.nature) if trace.nature else None)
        if answer.failed:
            return now in trace.answers and not _better(trace.best, answer)
        if act.money:
            return True
        if nature in (Nature.SEND, Nature.SET, Nature.OPERATE, Nature.EDIT, Nature.SPAWN, Nature.ASK):
            return trace.shape == answer.shape
        return now in trace.answers or answer.clock

    def _starts_over(self, act: Act, trace: Trace) -> bool:
        nature = act.nature or (Nature(trace.nature) if trace.nature else Nature.READ)
        if nature is Nature.SEND or trace.pending:
            return False
        return nature in _ON_ANYTHING or nature is not Nature.READ or not act.narrow

    def _note(self, act: Act, trace: Trace, answer: Answer, now: str, progress: Progress) -> None:
        if now not in trace.answers:
            trace.answers = [*trace.answers[-_ANSWERS + 1 :], now]
        if answer.tally is not None:
            trace.best = list(answer.tally) if not trace.best else _best(trace.best, answer.tally)
        if act.nature is None and (answer.acknowledges or answer.sends):
            trace.nature = (Nature.SEND if answer.sends else Nature.OPERATE).value
        if trace.count == 1:
            trace.waits, trace.idle_edits, trace.moves = progress.waits, progress.idle_edits, progress.moves
            trace.fresh = progress.fresh
            trace.changes = 0 if not answer.failed or trace.despite <= 1 else trace.changes
        else:
            trace.tokens += act.spent_tokens
            trace.usd += act.spent_usd
        trace.shape, trace.failed, trace.sort = answer.shape, answer.failed, answer.sort
        trace.pending, trace.ended = answer.pending, answer.ended
        trace.brief = answer.length < 40 and not answer.failed
        trace.epoch, trace.stamp = progress.epoch, progress.stamp
        trace.last, trace.batch, trace.said = act.call, act.batch, answer.excerpt
        self._traces.put(act.key, trace)

    def still_same(self, act: Act, answer: Answer) -> bool:
        """Whether an answer is one that the same call gave before: then it may be replaced by a stub."""
        trace = self._traces.get(act.key)
        now = answer.fault if answer.failed else answer.same
        return trace is not None and trace.failed == answer.failed and (now in trace.answers or answer.clock)

    def refused(self, act: Act) -> None:
        trace = self._traces.get(act.key)
        if trace is not None:
            trace.refused += 1
            trace.last = act.call

    # --- memory -----------------------------------------------------------------------------------------------

    def person_spoke(self) -> None:
        self._traces.clear()

    def context_compressed(self) -> None:
        """The model has lost what it read: it may read again. What failed has failed."""
        for key in self._traces:
            trace = self._traces.get(key)
            if trace is not None and not trace.failed and trace.nature != Nature.SEND.value:
                trace.count = min(trace.count, 1)
                trace.refused = 0

    def dump(self) -> list[Any]:
        return [[key, list(astuple(trace))] for key, trace in self._traces.dump()]

    def load(self, rows: list[Any]) -> None:
        self._traces.load([(key, Trace(*row)) for key, row in rows])


def _patience(trace: Trace, progress: Progress, most: int) -> int:
    """Who waits before each look has more looks."""
    return min(progress.waits - trace.waits, most)


def _better(best: list[float], answer: Answer) -> bool:
    """Fewer left than ever before, or more done than ever before."""
    if answer.tally is None or not best:
        return False
    left, done = answer.tally
    return (0 <= left < best[0]) or (best[1] >= 0 and done > best[1])


def _best(best: list[float], tally: tuple[float, float]) -> list[float]:
    left = min((one for one in (best[0], tally[0]) if one >= 0), default=-1.0)
    return [left, max(best[1], tally[1])]
