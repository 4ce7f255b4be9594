"""What one call has come to, over all the times it was made."""

from dataclasses import dataclass, field

from agents.policy.answers import Answer


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
    mixed: bool = False
    exacts: list[str] = field(default_factory=list)
    moving: int = 0
    learnt: int = 0
    # How often it made one more of something while nothing else was done.
    made: int = 0
    # How often the world had changed by the first of them.
    begun: int = 0
    # How often it was made again after it was taken back, with nothing else done; what had been done and taken back by
    # the latest one.
    remade: int = 0
    doings: int = 0
    taken: int = 0
    # How often in a row the same answer told that what is asked about is over.
    over: int = 0
    # The answer whose shape is `shape`, as long as nobody has asked for that.
    answer: Answer | None = None

    def its_shape(self) -> str:
        if self.answer is not None:
            self.shape, self.answer = self.answer.shape, None
        return self.shape


def better(best: list[float], answer: Answer) -> bool:
    """Fewer left than ever before, or more done than ever before."""
    if answer.tally is None or not best:
        return False
    left, done = answer.tally
    return (0 <= left < best[0]) or (best[1] >= 0 and done > best[1])


def best(best: list[float], tally: tuple[float, float]) -> list[float]:
    left = min((one for one in (best[0], tally[0]) if one >= 0), default=-1.0)
    return [left, max(best[1], tally[1])]


def over(trace: Trace | None, answer: Answer, epoch: int) -> int:
    """How often in a row the same answer has told that it is over: in words, or by waiting for nothing any more."""
    waited = trace is not None and (trace.pending or trace.over)
    if answer.failed or answer.pending or not (answer.ended or waited):
        return 0
    if trace is None or trace.epoch != epoch or answer.same != trace.answers[-1]:
        return 1
    return trace.over + 1


def over_again(trace: Trace, answer: Answer) -> bool:
    """Whether it was over once more, only under another number."""
    return answer.ended and trace.ended and trace.its_shape() == answer.shape
