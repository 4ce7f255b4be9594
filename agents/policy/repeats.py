"""The same call that taught nothing: the same error, the same effect once more, the same answer, the same waiting."""

import re
from dataclasses import astuple
from typing import Any

from agents.policy.answer_words import LOST, MISSING, OTHER, eases
from agents.policy.answers import Answer
from agents.policy.bounded import Bounded
from agents.policy.findings import Finding
from agents.policy.identity import Act
from agents.policy.makings import Makings
from agents.policy.measuring import measures
from agents.policy.natures import LOOKS, MOVES, Nature, by_steps
from agents.policy.progress import Progress, talks
from agents.policy.traces import Trace, best, better, over, over_again
from agents.verdicts import BlockMode

_KEYS, _ANSWERS = 512, 6
# Longer answers are not kept until somebody asks for their shape.
_HELD = 1_500
_RICH = 60
# What may depend on anything: any change of the world is a reason to ask it again.
_ON_ANYTHING = frozenset({Nature.CHECK, Nature.RUN, Nature.OPERATE})
_MAY_PEND = LOOKS | {Nature.STEP}
_ACTS = frozenset({Nature.SEND, Nature.SET, Nature.OPERATE, Nature.EDIT, Nature.SPAWN, Nature.ASK})
# One time more may be a mistake; what is made a fourth time is not.
_SPARE = 1
_SAYS = frozenset({Nature.THINK, Nature.PLAN, Nature.TEXT})
_CHECK = Nature.CHECK
# Each answer of these that is news may be a step: as many of them as repeats, and the run is not stopped for it.
_MAY_PROGRESS = frozenset({"repeat_state", "repeat_operation", "repeat_read"})
_SLOW = ("transient",)
_TAKES = re.compile(r"(?i)\b(?:delete|purge|prune|drain|expire|archive|evict|vacuum|backfill)|\blimit \d+\W*$")
_MANY = re.compile(
    r"\b[1-9][\d,.]+ (?:rows?|records?|items?|messages?|files?|objects?|documents?|entries|keys|events)\b"
    r"|\b(?i:(?:delet|updat|mov|remov|purg|prun|archiv|expir)ed?|affected)(?:[_ ]\w{1,9})?[\"']?\s?[:=]?\s?[1-9][\d,.]+"
)


class Repeats:
    name = "repeats"

    def __init__(self) -> None:
        self._traces: Bounded[Trace] = Bounded(_KEYS)
        self._fresh = 0
        self._makings = Makings()

    # --- before the call --------------------------------------------------------------------------------------

    def judge(self, act: Act, progress: Progress) -> Finding | None:
        trace = self._traces.get(act.key)
        if trace is None or act.exempt:
            return None
        self._fresh = progress.fresh
        nature = act.nature or (Nature(trace.nature) if trace.nature else Nature.READ)
        if trace.failed:
            return self._failing(act, trace, nature, progress)
        if trace.over > 1 and act.nature is Nature.READ and progress.epoch == trace.epoch:
            return self._found("repeat_read", act, trace, max(trace.over, trace.count))
        if (act.polls and trace.sort != LOST) or (
            trace.pending and (not act.path or act.wait_s or trace.brief) and nature in _MAY_PEND
        ):
            return self._found(
                "pending", act, trace, trace.count, leash=_patience(trace, progress, 16) + 10 * act.polls
            )
        if nature is Nature.WAIT:
            return None
        changed = progress.epoch > trace.epoch
        related = progress.changed_since(act.tokens, trace.stamp)
        if nature in _ACTS:
            return self._acting(act, trace, nature, changed, progress)
        if nature in MOVES:
            return None if changed else self._moving(act, trace, nature, progress)
        if nature in _SAYS:
            return None
        leash = 0
        asks_anything = nature in _ON_ANYTHING or not act.narrow or (trace.brief and not act.path)
        # What is over for good stays so, whatever else is done meanwhile.
        if changed and (related or (asks_anything and trace.sort != LOST)):
            return None
        if changed or trace.mixed:
            leash = 2
        leash += _patience(trace, progress, 1 if trace.ended else 12)
        leash += min(progress.moves - trace.moves, 2) + progress.trend(trace.first)
        return self._found("repeat_read", act, trace, trace.count, leash=leash)

    def _moving(self, act: Act, trace: Trace, nature: Nature, progress: Progress) -> Finding | None:
        """A move on a screen or in a stream: the same one again is another one, unless the whole screen stayed."""
        if trace.brief:
            return self._found("screen_step", act, trace, trace.count)
        # Each time with something new between them: a button before every line of a form.
        leash = min(max(progress.fresh - trace.fresh, 0), 8) + 3 * (nature is Nature.STEP and by_steps(act.pairs))
        return self._found("screen_still", act, trace, trace.count, leash=leash)

    def _failing(self, act: Act, trace: Trace, nature: Nature, progress: Progress) -> Finding | None:
        changed = progress.epoch > trace.epoch
        related = progress.changed_since(act.tokens, trace.stamp)
        slow = trace.sort in _SLOW or trace.pending
        # What is missing may be on its way.
        waits = min(
            progress.waits - trace.waits,
            4 + progress.growing if slow or trace.sort == MISSING else 2 if trace.sort == OTHER else 0,
        )
        if slow:
            # Trying again is what the answer asks for, or has helped before.
            waits += eases(trace.said) + min(2 * progress.recovered(act.tool), 3)
        anything = nature in _ON_ANYTHING or (act.shell and nature is Nature.READ)
        if anything and (changed or trace.changes):
            idle = progress.idle_edits > trace.idle_edits
            # Other numbers each time are a failure that moves.
            leash = -1 if idle else 3 if trace.moving >= trace.despite - 1 else 0
            return self._found("failure_despite_changes", act, trace, trace.despite, leash=leash)
        if anything and (act.shell or nature is not Nature.OPERATE):
            return self._found("repeat_failing_command", act, trace, trace.count, leash=waits)
        # Something else was done in between that nobody knows the effect of.
        learnt = not act.narrow and nature is Nature.READ and self._fresh > trace.fresh
        leash = waits + (2 if related else 1 if changed or trace.changes or learnt else 0)
        count = trace.despite if (changed or trace.changes) else trace.count
        return self._found("repeat_error", act, trace, count, leash=leash)

    def _acting(self, act: Act, trace: Trace, nature: Nature, changed: bool, progress: Progress) -> Finding | None:
        # Done again after new was learnt each time: a step of a series.
        series = progress.learnt - trace.learnt >= trace.count
        if nature is Nature.SEND or nature is Nature.ASK or nature is Nature.SPAWN:
            changed = changed or (series and not talks(act.tool) and not act.money)
            telling = talks(act.tool) or act.money or nature is not Nature.SEND
            if changed and not act.money and nature is not Nature.SEND:
                return None
            rule = "repeat_effect" if telling or not changed else "repeat_state"
            leash = 0 if not changed else 1 if telling else 3
            if not (talks(act.tool) or act.money):
                leash += progress.trend(trace.first)
                if progress.epoch - trace.begun >= trace.count > 1:
                    leash += trace.count  # a step that follows each piece of other work
            found = self._found(rule, act, trace, trace.count, leash=leash)
            again = self._again(act, trace)
            if again > 0 and (found is None or again > found.count - found.leash):
                found = self._found("repeat_effect", act, trace, again)
            return found
        again = self._again(act, trace) if nature is Nature.EDIT else 0
        if again > 0:
            return self._found("repeat_effect", act, trace, again)
        if changed:
            return None
        # What it is done for comes nearer each time.
        trend = progress.trend(trace.first)
        if nature is Nature.OPERATE:
            leash = min(progress.moves - trace.moves, 2) + 3 * series + trend
            if _in_portions(act, trace.said):
                return None
            if act.nature is None:
                # Nobody knows what it does: perhaps each time a step further. What is learnt meanwhile speaks for it.
                leash += 3 + min(max(progress.fresh - trace.fresh, 0), 6)
            # As much was learnt meanwhile, or its own answers differ: it is done, and held back if it says the same.
            mild = self._fresh - trace.fresh >= trace.count or len(trace.answers) > 1
            return self._found(
                "repeat_operation", act, trace, trace.count, leash=leash, mode=BlockMode.STUB if mild else None
            )
        # As much was done or learnt meanwhile: it may be a step between others, and a state may be put twice.
        mild = self._fresh - trace.fresh >= trace.count
        return self._found("repeat_state", act, trace, trace.count, leash=trend, mode=BlockMode.STUB if mild else None)

    def _again(self, act: Act, trace: Trace) -> int:
        """How often too much it has made one more of the same, or what was taken back since."""
        again = trace.made - _SPARE if self._makings.doer == act.key else 0
        return max(again, trace.remade + 1) if self._makings.is_undone(act, trace) else again

    def _found(
        self, rule: str, act: Act, trace: Trace, count: int, *, leash: int = 0, mode: BlockMode | None = None
    ) -> Finding | None:
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
            mode=mode,
            tokens=trace.tokens,
            usd=trace.usd,
            since=self._fresh - trace.fresh + (rule in _MAY_PROGRESS),
        )

    # --- after it ---------------------------------------------------------------------------------------------

    def learn(self, act: Act, answer: Answer, progress: Progress) -> None:
        trace = self._traces.get(act.key)
        now = _now(act, answer)
        failed = _failed(act, answer)
        makings = self._makings
        made, ended = makings.made(act, trace, failed), over(trace, answer, progress.epoch)
        remade = trace.remade + 1 if trace is not None and not failed and makings.is_undone(act, trace) else 0
        makings.learn(act, answer, failed)
        if trace is None:
            trace = Trace(first=act.call)
        elif not self._taught_nothing(act, trace, answer, now):
            # Two or three answers in turn, while nothing else changes, teach no more than one.
            turns = failed == trace.failed and progress.epoch == trace.epoch and (failed or answer.length >= _RICH)
            known = trace.answers if turns else []
            trace = Trace(first=act.call, best=trace.best if failed else [], answers=known)
        elif trace.batch == act.batch:
            return  # several in one message are one try
        elif failed or progress.epoch == trace.epoch or not self._starts_over(act, trace):
            trace.count += 1
        else:
            trace.count, trace.first = 1, act.call
        trace.count = max(trace.count, 1)
        trace.despite += failed
        trace.changes += progress.epoch > trace.epoch and trace.epoch > 0 and trace.despite > 1
        trace.made, trace.over = made, ended
        trace.remade, trace.doings, trace.taken = remade, makings.doings, makings.taken(act)
        self._note(act, trace, answer, now, progress)

    def _taught_nothing(self, act: Act, trace: Trace, answer: Answer, now: str) -> bool:
        failed = _failed(act, answer)
        if trace.failed != failed:
            return False
        nature = act.nature or (Nature(trace.nature) if trace.nature else None)
        if failed:
            return now in trace.answers and not better(trace.best, answer)
        if act.money:
            return True
        if nature in _ACTS:
            return trace.its_shape() == answer.shape
        return now in trace.answers or answer.clock or (act.nature is None and over_again(trace, answer))

    def _starts_over(self, act: Act, trace: Trace) -> bool:
        nature = act.nature or (Nature(trace.nature) if trace.nature else Nature.READ)
        if nature is Nature.SEND or trace.pending:
            return False
        return nature in _ON_ANYTHING or nature is not Nature.READ or not act.narrow

    def _note(self, act: Act, trace: Trace, answer: Answer, now: str, progress: Progress) -> None:
        if not trace.answers or now != trace.answers[-1]:
            trace.mixed = now in trace.answers
            trace.answers = [*[one for one in trace.answers if one != now][-_ANSWERS + 1 :], now]
        if answer.tally is not None:
            trace.best = list(answer.tally) if not trace.best else best(trace.best, answer.tally)
        if act.nature is None and (answer.acknowledges or answer.sends):
            trace.nature = (Nature.SEND if answer.sends else Nature.OPERATE).value
        if trace.count == 1:
            trace.waits, trace.idle_edits, trace.moves = progress.waits, progress.idle_edits, progress.moves
            trace.fresh, trace.learnt, trace.begun = progress.fresh, progress.learnt, progress.epoch
            trace.changes = 0 if not _failed(act, answer) or trace.despite <= 1 else trace.changes
        else:
            trace.tokens += act.spent_tokens
            trace.usd += act.spent_usd
        if answer.failed and answer.exact not in trace.exacts:
            trace.exacts = [*trace.exacts[-_ANSWERS + 1 :], answer.exact]
            trace.moving += 1
        trace.shape, trace.answer = (answer.same, None) if act.nature in LOOKS else ("", answer)
        if answer.length > _HELD:
            trace.its_shape()
        trace.failed, trace.sort = _failed(act, answer), answer.sort
        trace.pending, trace.ended = answer.pending, answer.ended
        trace.brief = answer.length < 40 and not answer.failed
        if trace.brief and act.nature in MOVES:
            trace.brief = len(answer.units) < 3
        trace.epoch, trace.stamp = progress.epoch, progress.stamp
        trace.last, trace.batch, trace.said = act.call, act.batch, answer.excerpt
        self._traces.put(act.key, trace)

    def still_same(self, act: Act, answer: Answer) -> bool:
        """Whether an answer is one that the same call gave before: then it may be replaced by a stub."""
        trace = self._traces.get(act.key)
        now = _now(act, answer)
        if trace is None or trace.failed != _failed(act, answer):
            return False
        if act.nature is Nature.SET and not answer.failed and trace.its_shape() == answer.shape:
            return True
        return now in trace.answers or answer.clock or (act.nature is None and over_again(trace, answer))

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
        for _, trace in self._traces.dump():
            trace.its_shape()
        return [self._makings.dump(), [[key, list(astuple(trace))[:-1]] for key, trace in self._traces.dump()]]

    def load(self, kept: list[Any]) -> None:
        made, rows = kept
        self._makings.load(made)
        self._traces.load([(key, Trace(*row)) for key, row in rows])


def _failed(act: Act, answer: Answer) -> bool:
    """Also a check that ran well and found faults has failed."""
    return answer.failed or (act.nature is _CHECK and answer.tally is not None and answer.tally[0] > 0)


def _now(act: Act, answer: Answer) -> str:
    """What an answer is compared by. To one who measures, times are the answer."""
    if answer.failed:
        return answer.fault
    return answer.raw if measures(act) else answer.same


def _in_portions(act: Act, said: str) -> bool:
    """Whether it takes many things away at a time: it is asked again until none is left."""
    text = act.command.text if act.command is not None else act.tool
    return _TAKES.search(text) is not None and _MANY.search(said) is not None


def _patience(trace: Trace, progress: Progress, most: int) -> int:
    """Who waits before each look has more looks."""
    return min(progress.waits - trace.waits, most)
