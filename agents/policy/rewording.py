"""The same thing said again in other words: to one address, to a new sub-agent, to a person, to itself."""

import re
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from agents.policy import likeness
from agents.policy.answers import Answer
from agents.policy.bounded import Bounded
from agents.policy.canonical import is_volatile, meaning
from agents.policy.findings import Finding
from agents.policy.identity import Act
from agents.policy.makings import makes_more
from agents.policy.natures import Nature
from agents.policy.progress import Progress, keeps
from agents.policy.scrubbing import HAS_DIGIT
from agents.policy.subjects import TEXTS, tokens_of
from agents.policy.vocabulary import words

_NAMES = (
    TEXTS
    | words("fields", "briefs")
    | {"agent", "agentid", "name", "role", "worker", "workerid", "subagent", "subagenttype"}
)
_TAKEN, _BEGINS = words("fields", "taken"), words("fields", "begins")
_HOUR = re.compile(r"(?:\d{4}-\d\d-\d\d[T ])\d\d:\d\d")
_ADDRESSES, _KEPT = 64, 8
_SAYING = frozenset({Nature.SEND, Nature.SPAWN, Nature.ASK, Nature.THINK})
# Notes to oneself that are alike may be two thoughts.
_OF_NOTES = 2
_SEND, _SPAWN = Nature.SEND, Nature.SPAWN
_BY_TOOL = _SAYING - {Nature.SEND}
RULES = {
    Nature.SEND: "reworded_effect",
    Nature.SPAWN: "respawned",
    Nature.ASK: "reworded_question",
    Nature.THINK: "thinking_in_circles",
}


@dataclass(slots=True)
class Said:
    key: str
    text: str
    outcome: str
    failed: bool
    call: int
    batch: int
    epoch: int
    ids: list[str] = field(default_factory=list)
    learnt: int = 0
    # Whether a person has spoken since.
    heard: bool = False
    asks: bool = False


class Rewording:
    name = "rewording"

    def __init__(self) -> None:
        self._said: Bounded[list[Said]] = Bounded(_ADDRESSES)
        self._refused: Bounded[int] = Bounded(_ADDRESSES)

    def judge(self, act: Act, progress: Progress) -> Finding | None:
        nature = _saying(act)
        if nature is None or act.exempt:
            return None
        # What a person has answered counts on as long as nobody has looked at anything since: asked again, it is the
        # same question.
        before = [one for one in self._said.get(_to(act)) or () if not one.heard or one.learnt == progress.learnt]
        if not before:
            return None
        # Nothing was heard between them: then less likeness is enough.
        slot = makes_more(act) and not _makes(act) and _names_time(act)
        idle = nature is Nature.SEND and before[-1].learnt == progress.learnt
        like = [
            one
            for one in before
            if likeness.alike(words := likeness.words_of(one.text), act.words)
            or (idle and one.learnt == progress.learnt and likeness.akin(words, act.words, 2))
            or (nature is Nature.SEND and likeness.is_courtesy(act.text) and likeness.is_courtesy(one.text))
            or slot
        ]
        if _makes(act):
            ids = _amounts(act)
            like = [
                one for one in like if likeness.words_of(one.text)[1] == act.words[1] != frozenset() and one.ids == ids
            ]
        if nature is Nature.SPAWN:
            like = [one for one in _same_outcome(like, act.key) if one.ids == _ids(act)]
        if not like:
            return None
        batches = {one.batch for one in like}
        if nature in (Nature.SEND, Nature.ASK) and all(one.key == act.key and not one.heard for one in like):
            return None  # nothing was reworded
        refused = self._refused.get(_to(act)) or 0
        return Finding(
            rule=RULES[nature],
            count=len(batches) + refused,
            fingerprint=act.address,
            first=like[0].call,
            last=like[-1].call,
            what="the same in other words",
            leash=_leash(act, like, progress) + _OF_NOTES * (nature is not act.nature),
        )

    def learn(self, act: Act, answer: Answer, progress: Progress) -> None:
        nature = _saying(act)
        if nature is None or (answer.failed and nature is _SEND):
            return
        spawns = nature is _SPAWN
        one = Said(
            act.key,
            act.text,
            answer.prose if spawns else "",
            answer.failed or (spawns and answer.fruitless),
            act.call,
            act.batch,
            progress.epoch,
            _ids(act) if spawns else _amounts(act) if _makes(act) else [],
            progress.learnt,
            asks=nature is Nature.ASK or "?" in act.text,
        )
        to = _to(act)
        self._said.put(to, [*(self._said.get(to) or [])[-_KEPT + 1 :], one])

    def still_same(self, act: Act, answer: Answer) -> bool:
        return False

    def refused(self, act: Act) -> None:
        if _saying(act) is not None and _to(act) in self._said:
            self._refused.put(_to(act), (self._refused.get(_to(act)) or 0) + 1)

    def person_spoke(self) -> None:
        for address in list(self._said):
            kept = [replace(one, heard=True) for one in self._said.get(address) or () if one.asks]
            if kept:
                self._said.put(address, kept)
            else:
                self._said.drop(address)
        self._refused.clear()

    def context_compressed(self) -> None:
        """A mail that has left has left."""

    def dump(self) -> list[Any]:
        return [[[key, [list(astuple(one)) for one in row]] for key, row in self._said.dump()], self._refused.dump()]

    def load(self, rows: list[Any]) -> None:
        self._said.load([(key, [Said(*one) for one in row]) for key, row in rows[0]])
        self._refused.load(rows[1])


def _saying(act: Act) -> Nature | None:
    """As what a call says something; a note to oneself reaches somebody later."""
    if act.nature in _SAYING:
        return act.nature
    if act.nature is not Nature.SET or not keeps(act.tool):
        return None
    return _SEND if not TEXTS.isdisjoint(act.pairs) or act.text.count(" ") > 1 else None


def _leash(act: Act, like: list[Said], progress: Progress) -> int:
    if act.nature is Nature.ASK:
        return min(progress.epoch - like[0].epoch, 2)
    # What came back well may be asked for again after work: a review, a check.
    return 4 * (progress.epoch > like[-1].epoch) if act.nature is Nature.SPAWN and not like[-1].failed else 0


def _ids(act: Act) -> list[str]:
    """What a sub-agent is given to work on, beside its brief: tickets, files. Its own name does not count."""
    given = {key: one for key, one in act.pairs.items() if key not in _NAMES and not is_volatile(key)}
    return sorted(one for one in tokens_of(given, None) if HAS_DIGIT(one))


def _amounts(act: Act) -> list[str]:
    """What of a call is no text: how many, how much, by which setting."""
    return [meaning({key: one for key, one in act.pairs.items() if not isinstance(one, str)})]


def _to(act: Act) -> str:
    """Under what name one keeps something for later tells nothing of what it is; what is made without a word is told
    apart by what it names."""
    if act.nature in _BY_TOOL or (act.nature is Nature.SET and keeps(act.tool)) or _makes(act):
        return act.tool
    return act.address


def _names_time(act: Act) -> bool:
    """Whether people or a room are taken for an hour: the same ones at the same hour are the same meeting, whatever it
    is called. Tasks that are due at one hour are not."""
    if _TAKEN.isdisjoint(act.pairs):
        return False
    return any(isinstance(one, str) and _HOUR.match(one) for key, one in act.pairs.items() if key in _BEGINS)


def _makes(act: Act) -> bool:
    """Whether a call makes something new, a booking or an order, and says nothing in words."""
    return makes_more(act) and TEXTS.isdisjoint(act.pairs)


def _same_outcome(like: list[Said], key: str) -> list[Said]:
    """Those with the very same brief or the same outcome as the latest: a series with results of its own is work."""
    if not like:
        return like
    last = like[-1]
    ended = likeness.words_of(last.outcome)
    return [
        one
        for one in like
        if one is last
        or one.key == key
        or (one.failed and last.failed)
        or likeness.alike(likeness.words_of(one.outcome), ended)
    ]
