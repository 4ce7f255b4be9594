"""What a run has made, what it has taken back, and what it makes again with nothing else done."""

from typing import Any

from agents.policy.answers import Answer
from agents.policy.bounded import Bounded
from agents.policy.identity import Act
from agents.policy.natures import IDLES, Nature, appends, made_by, makes, takes_back
from agents.policy.progress import talks
from agents.policy.traces import Trace

_KINDS = 128
_STILL = IDLES | {Nature.READ, Nature.CHECK, Nature.TEXT}


def makes_more(act: Act) -> bool:
    """Whether a call makes one more of something, and does not only tell of it; or puts it at the end of a file."""
    if act.nature is Nature.EDIT:
        return appends(act.tool)
    return act.nature is Nature.SEND and makes(act.tool) and not talks(act.tool)


class Makings:
    """`doer`: the latest call that may have changed something; `doings`: how many did and were not taken back."""

    def __init__(self) -> None:
        self.doer, self.doings = "", 0
        # By kind: how often something was taken back, how many that were made are still there.
        self._taken: Bounded[int] = Bounded(_KINDS)
        self._built: Bounded[int] = Bounded(_KINDS)

    def made(self, act: Act, trace: Trace | None, failed: bool) -> int:
        """How often in a row, with nothing else done in between, this call has made one more of the same."""
        again = self.doer == act.key
        if failed or not act.pairs or not makes_more(act):
            return 0
        return trace.made + (trace.batch != act.batch) if trace is not None and again else 1

    def taken(self, act: Act) -> int:
        """How often things of the kind that a call makes were taken back."""
        return self._taken.get(made_by(act.tool)) or 0

    def is_undone(self, act: Act, trace: Trace) -> bool:
        """Whether what this call once made was taken back since, and nothing else was done that still stands."""
        if not trace.doings or self.doings != trace.doings - 1 or not makes(act.tool) or talks(act.tool):
            return False
        return self.taken(act) > trace.taken

    def learn(self, act: Act, answer: Answer, failed: bool) -> None:
        if act.nature in _STILL or failed:
            return
        self.doer = act.key
        kind = made_by(act.tool)
        if takes_back(act.tool):
            self._taken.put(kind, (self._taken.get(kind) or 0) + 1)
            if built := self._built.get(kind) or 0:
                # What is taken back again is nothing that was done.
                self._built.put(kind, built - 1)
                self.doings -= 1
        elif act.nature is not None or answer.acknowledges or answer.sends:
            self.doings += 1
            if makes(act.tool):
                self._built.put(kind, (self._built.get(kind) or 0) + 1)

    def dump(self) -> list[Any]:
        return [self.doer, self.doings, self._taken.dump(), self._built.dump()]

    def load(self, kept: list[Any]) -> None:
        self.doer, self.doings, taken, built = kept
        self._taken.load(taken)
        self._built.load(built)
