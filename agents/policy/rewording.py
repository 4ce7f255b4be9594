"""The same thing said again in other words: to one address, to a new sub-agent, to a person, to itself."""

from dataclasses import astuple, dataclass
from typing import Any

from agents.policy import likeness
from agents.policy.answers import Answer
from agents.policy.bounded import Bounded
from agents.policy.findings import Finding
from agents.policy.identity import Act
from agents.policy.natures import Nature
from agents.policy.progress import Progress

_ADDRESSES, _KEPT = 64, 8
_SAYING = frozenset({Nature.SEND, Nature.SPAWN, Nature.ASK, Nature.THINK})
_NO_WORDS: likeness.Words = (frozenset(), frozenset())
RULES = {
    Nature.SEND: "reworded_effect",
    Nature.SPAWN: "respawned",
    Nature.ASK: "reworded_question",
    Nature.THINK: "thinking_in_circles",
}


@dataclass(slots=True)
class Said:
    key: str
    words: list[list[int]]
    outcome: list[list[int]]
    failed: bool
    call: int
    batch: int
    epoch: int


class Rewording:
    name = "rewording"

    def __init__(self) -> None:
        self._said: Bounded[list[Said]] = Bounded(_ADDRESSES)
        self._refused: Bounded[int] = Bounded(_ADDRESSES)

    def judge(self, act: Act, progress: Progress) -> Finding | None:
        if act.nature not in _SAYING or act.exempt:
            return None
        before = self._said.get(_to(act))
        if not before:
            return None
        like = [one for one in before if likeness.alike(likeness.load(one.words), act.words)]
        if act.nature is Nature.SPAWN:
            like = _same_outcome(like, act.key)
        if not like:
            return None
        batches = {one.batch for one in like}
        if act.nature in (Nature.SEND, Nature.ASK) and all(one.key == act.key for one in like):
            return None  # nothing was reworded
        refused = self._refused.get(_to(act)) or 0
        return Finding(
            rule=RULES[act.nature],
            count=len(batches) + refused,
            fingerprint=act.address,
            first=like[0].call,
            last=like[-1].call,
            what="the same in other words",
            leash=min(progress.epoch - like[0].epoch, 2) if act.nature is Nature.ASK else 0,
        )

    def learn(self, act: Act, answer: Answer, progress: Progress) -> None:
        if act.nature not in _SAYING or (answer.failed and act.nature is Nature.SEND):
            return
        outcome = likeness.words_of(answer.prose) if act.nature is Nature.SPAWN else _NO_WORDS
        fruitless = answer.failed or answer.fruitless
        one = Said(
            act.key,
            likeness.dump(act.words),
            likeness.dump(outcome),
            fruitless,
            act.call,
            act.batch,
            progress.epoch,
        )
        self._said.put(_to(act), [*(self._said.get(_to(act)) or [])[-_KEPT + 1 :], one])

    def still_same(self, act: Act, answer: Answer) -> bool:
        return False

    def refused(self, act: Act) -> None:
        if act.nature in _SAYING and _to(act) in self._said:
            self._refused.put(_to(act), (self._refused.get(_to(act)) or 0) + 1)

    def person_spoke(self) -> None:
        self._said.clear()
        self._refused.clear()

    def context_compressed(self) -> None:
        """A mail that has left has left."""

    def dump(self) -> list[Any]:
        return [[[key, [list(astuple(one)) for one in row]] for key, row in self._said.dump()], self._refused.dump()]

    def load(self, rows: list[Any]) -> None:
        self._said.load([(key, [Said(*one) for one in row]) for key, row in rows[0]])
        self._refused.load(rows[1])


def _to(act: Act) -> str:
    return act.tool if act.nature in (Nature.SPAWN, Nature.THINK, Nature.ASK) else act.address


def _same_outcome(like: list[Said], key: str) -> list[Said]:
    """Those with the very same brief or the same outcome as the latest: a series with results of its own is work."""
    if not like:
        return like
    last = like[-1]
    ended = likeness.load(last.outcome)
    return [
        one
        for one in like
        if one is last
        or one.key == key
        or (one.failed and last.failed)
        or likeness.alike(likeness.load(one.outcome), ended)
    ]
