"""What the text of a failure says: its wordings by family, once without its adverts and once whole.

Adverts are no diagnoses ("add a payment method to raise your limit"): the whole text is heard only when nothing else
speaks.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from agents.policy.fault_words import Wordings, words
from agents.policy.wordings import TABLES


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A reason, a finer kind of it (see `fault_actions`) and what it rests on."""

    reason: str
    evidence: str
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """All that the rules look at: `raw` is the text as it came, `text` its words, `families` what they say."""

    raw: str
    provider: str
    status: int
    text: str = ""
    families: Mapping[str, str] = field(default_factory=dict)
    codes: frozenset[str] = frozenset()
    params: tuple[str, ...] = ()
    quotas: tuple[str, ...] = ()
    has_wait: bool = False
    context: Mapping[str, Any] = field(default_factory=dict)

    def has(self, *names: str) -> bool:
        return any(name in self.families for name in names)

    def says(self, family: str, reason: str, kind: str = "") -> Found:
        return Found(reason=reason, kind=kind, evidence=f'the text says "{self.families[family][:80]}"')


def hearings(heard: Heard) -> Iterator[Heard]:
    """First the diagnosis, then, if that was shorter, the whole text."""
    core = diagnosis(heard.raw)
    yield _hear(heard, core)
    if len(core) < len(heard.raw) - 20:
        yield _hear(heard, heard.raw)


def _hear(heard: Heard, text: str) -> Heard:
    normal = words(text)
    return replace(heard, text=normal, families=wordings().find(normal))


@cache
def wordings() -> Wordings:
    """Built at the first use, which takes some tens of milliseconds."""
    return Wordings(*TABLES)


_ADVERT = re.compile(
    r"upgrad|payment method|contact (?:us|sales|support|our|your|azure|customer)|learn more|read the docs|visit |"
    r"increase (?:your|the|my) (?:rate|quota|limit|usage)|increase the default|higher (?:rate )?limits?|go here|"
    r"for more (?:information|details)|for details|please refer|unlock|"
    r"you can find|to monitor|need more|to increase|"
    r"see (?:https?|the doc|our|docs)|quota increase|request (?:an? )?increase|https?://|documentation|subscribe|"
    r"help center|support team|if (?:the|this) (?:problem|issue|error)|manage (?:it|your)|dashboard|"
    r"if you (?:believe|think|continue)|联系客服|升级|查看文档|详见|参考文档",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z*(\"'])|[\n。！？；|]+")


def diagnosis(text: str) -> str:
    """The text without sentences that only advertise or refer; all of it when nothing would be left."""
    sentences = [one for one in _SENTENCE_END.split(text[:6000]) if one and one.strip()]
    kept = [one for number, one in enumerate(sentences) if number == 0 or not _ADVERT.search(one)]
    return " . ".join(kept) if kept else text
