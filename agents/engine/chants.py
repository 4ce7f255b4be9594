"""A model that chants: the first time its draft is dropped and it is asked again, then the run trips."""

from typing import Any

from agents import kinds
from agents.engine.journal import Journal
from agents.engine.judgement import told
from agents.engine.ledger import Cost
from agents.errors import LoopIncident
from agents.policy.canonical import digest
from agents.verdicts import Rung, Verdict

RULE = "chanting"


def listens(journal: Journal) -> bool:
    """Whether the run's policy wants an answer cut off that says the same again and again."""
    policy = journal.transcript.guarded.policy
    return RULE in policy.rules and not policy.shadow and not policy.rules[RULE].shadow


def chanted(journal: Journal, chant: Any, times: int, cost: Cost | None, turn: int | None, call: str) -> None:
    """Tell that an answer was cut off, for the `times`th time in one call. Raises LoopIncident when it is enough."""
    stop = journal.transcript.guarded.policy.rules[RULE].stop
    stops = bool(stop) and times >= stop
    does = "the run is stopped" if stops else "cut off and asked again"
    verdict = Verdict(
        detector=RULE,
        rung=Rung.STOP if stops else Rung.OBSERVE,
        rule=RULE,
        fingerprint=digest(chant.block),
        step=journal.transcript.steps,
        count=times,
        evidence=(),
        explanation=f"{RULE}: the answer repeats {chant.block[:60]!r} {chant.copies} times in a row; {does}",
        wasted_tokens=sum((cost.usage or {}).values()) if cost else 0,
        wasted_usd=cost.cost_usd if cost else None,
        advice="Another model, a lower temperature or a shorter task may help; the draft was not kept.",
    )
    journal.write(kinds.VerdictIssued(**told(verdict, ())), turn=turn, call=call)
    if stops:
        raise LoopIncident(verdict, fuse=False)
