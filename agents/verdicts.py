"""A judgement on a run: which detector spoke, on which rung of the ladder, on what evidence."""

from dataclasses import dataclass
from enum import StrEnum


class Rung(StrEnum):
    OBSERVE = "observe"
    STEER = "steer"
    BLOCK = "block"
    ESCALATE = "escalate"
    STOP = "stop"


class BlockMode(StrEnum):
    REFUSE = "refuse"
    STUB = "stub"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One judgement. `evidence` holds `seq`s of the run's own log; money is a decimal string or None when unknown.

    `advice` says what would help: to the model on a block, to people when the run trips.
    """

    detector: str
    rung: Rung
    rule: str
    fingerprint: str
    step: int
    count: int
    evidence: tuple[int, ...]
    explanation: str
    mode: BlockMode | None = None
    wasted_tokens: int = 0
    wasted_usd: str | None = None
    shadow: bool = False
    advice: str = ""
