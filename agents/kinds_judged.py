"""Event kinds of judgement: what the guard found, what it told the model, and fuses that people raised."""

from agents.bodies import JSON, Body, event


@event("hint.injected")
class HintInjected(Body):
    verdict: JSON
    text: str


@event("fuse.raised")
class FuseRaised(Body):
    limits: JSON
    by: str
    reason: str


@event("verdict.issued", nullable=("wasted_usd",))
class VerdictIssued(Body):
    detector: str
    rung: str
    rule: str
    fingerprint: str
    step: int
    count: int
    evidence: list[int]
    wasted_tokens: int
    explanation: str
    shadow: bool
    wasted_usd: str | None = None
    mode: str | None = None
    advice: str | None = None
