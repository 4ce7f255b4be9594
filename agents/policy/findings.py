"""What a detector has to say about a call: which rule, how often by now, on what evidence."""

from dataclasses import dataclass

from agents.verdicts import BlockMode


@dataclass(slots=True, kw_only=True)
class Finding:
    """`count`: how often it came to nothing before, refusals included. `leash`: how much more than the rule's own
    numbers it takes to block or stop (less than 0: it takes less). `first`, `last`: the calls that are the evidence.
    `mode`: the mildest way to block this call, None for the rule's. `said`: what the calls answered, in short.
    `since`: how much else was learnt since the first of them.
    """

    rule: str
    count: int
    fingerprint: str
    first: int
    last: int
    what: str
    said: str = ""
    leash: int = 0
    mode: BlockMode | None = None
    tokens: int = 0
    usd: float = 0.0
    since: int = 0
