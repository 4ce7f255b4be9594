"""What the page says of a verdict: a word and a shape for its rung, its sentence, and where its evidence stands."""

from collections.abc import Iterable
from typing import Any

from agents.kinds import RunTripped, VerdictIssued
from control.dashboard.folds.fold import RunFold

LINKS = 8
# rung -> word, shape
_RUNGS = {
    "observe": ("Observed", "eye"),
    "steer": ("Told the model", "note"),
    "block": ("Blocked", "blocked"),
    "escalate": ("Escalated", "up"),
    "stop": ("Stopped the run", "flash"),
}
_FUSES = {"observe": ("Near a fuse", "flash"), "stop": ("Fuse tripped", "flash")}
_SHADOW = {
    "steer": "Would tell the model",
    "block": "Would block",
    "escalate": "Would escalate",
    "stop": "Would stop the run",
}


def verdict_words(fold: RunFold, body: VerdictIssued) -> dict[str, Any]:
    """Values for the part of a verdict. A rung that this version does not know is named as it is."""
    of_fuse = body.detector == "fuses"
    word, shape = (_FUSES if of_fuse else _RUNGS).get(body.rung) or _RUNGS.get(body.rung, (body.rung, "question"))
    return {
        "rung": body.rung if body.rung in _RUNGS else "other",
        "word": _SHADOW.get(body.rung, word) if body.shadow else word,
        "shape": shape,
        # What a fuse counts is in its sentence.
        "counted": not of_fuse,
        "said": _sentence(body.rule, body.explanation),
        "links": links(fold, body.evidence),
    }


def tripped_words(fold: RunFold, body: RunTripped) -> dict[str, Any]:
    verdict = body.verdict if isinstance(body.verdict, dict) else {}
    return {
        "said": _sentence(str(verdict.get("rule") or ""), str(verdict.get("explanation") or "")),
        "links": links(fold, verdict.get("evidence") or ()),
    }


def links(fold: RunFold, evidence: Iterable[Any]) -> list[tuple[int, str]]:
    """Which element tells of each event."""
    seqs = [seq for seq in evidence if isinstance(seq, int)][:LINKS] if isinstance(evidence, list | tuple) else []
    return [(seq, fold.rows.get(seq, f"event-{seq}")) for seq in seqs]


def _sentence(rule: str, explanation: str) -> str:
    """The explanation without the rule's name in front, which stands in the head already."""
    return explanation.removeprefix(f"{rule}: ") if rule else explanation
