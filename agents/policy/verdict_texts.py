"""What a verdict says to people, and what a blocked call answers to the model."""

import re

from agents.policy.findings import Finding
from agents.verdicts import BlockMode, Rung, Verdict

_WAYS_OUT = {
    "pending": "Wait longer before the next look, or do something else meanwhile.",
    "repeat_effect": "It has been done already; doing it again would do it twice.",
    "reworded_effect": "It has been said already; saying it again in other words would say it twice.",
    "respawned": "Another sub-agent with the same brief will meet the same wall: change the brief or do it yourself.",
    "edit_oscillation": "Both contents have been tried. Find out what makes them fail before the next change.",
    "edit_without_change": "The file already holds this content.",
    "nothing_new": "All of it has been read. Use what is known.",
    "failure_unknown_tool": "Use only tools that exist.",
    "bookkeeping_only": "Do the next item instead of writing down the plan again.",
}
_ANY_WAY = "Something else must change first: other arguments that mean something else, another tool, or the cause."
# Rules that do not compare answers to the letter; how much of an answer is told then, in characters.
_WEIGHED, _TOLD = frozenset({"stagnation"}), 400
_DOES = {
    Rung.OBSERVE: "noted",
    Rung.STEER: "the model is told",
    Rung.BLOCK: "not run",
    Rung.ESCALATE: "not run; a stronger model takes the next turn",
    Rung.STOP: "the run is stopped",
}


# Rules that programs draw across their answers say nothing in an excerpt.
_DRAWN, _MAY_BE_DRAWN = re.compile(r"([=_*#~.-])\1{3,}"), re.compile(r"[=_*#~.-]{4}")


def way_out(rule: str) -> str:
    """What would count as new."""
    return _WAYS_OUT.get(rule, _ANY_WAY)


def explained(found: Finding, rung: Rung, mode: BlockMode | None) -> str:
    """One line for the page."""
    does = "run and answered as unchanged" if mode is BlockMode.STUB else _DOES[rung]
    span = f"call {found.first}" if found.first == found.last else f"calls {found.first} to {found.last}"
    said = found.said
    if _MAY_BE_DRAWN.search(said):
        said = _DRAWN.sub(r"\1\1\1", said)
    said = " ".join(said.split())
    heard = f": {said!r}" if said else ""
    return f"{found.rule}: {_counted(found.count, found.what)} ({span}{heard}); {does}"


def _counted(number: int, what: str) -> str:
    """`3 times the same call`, `5 ways back to an old content`, `1 write that changed nothing`."""
    if what.startswith("the same"):
        return f"{number} time{'' if number == 1 else 's'} {what}"
    first, _, rest = what.partition(" ")
    return f"{number} {first.removesuffix('s') if number == 1 else first} {rest}".rstrip()


def refusal(verdict: Verdict) -> str:
    """The error result of a call that was not run."""
    return f"Not run. {verdict.explanation.split(';')[0]}. Trying the same again cannot help. {way_out(verdict.rule)}"


def stub(verdict: Verdict, answer: str) -> str:
    """The result of a call that was run and answered what is known. What was only weighed may not be the same to the
    letter: then the beginning of the answer is told, so that nothing is lost."""
    if verdict.rule in _WEIGHED:
        # The evidence is how the run went, no single call: the latest of it is this one.
        said = " ".join(answer[:_TOLD].split())
        more = "…" if len(answer) > _TOLD else ""
        return f"Unchanged but for details: it was run and answered: {said}{more}\n{way_out(verdict.rule)}"
    since = f"Unchanged since call {verdict.evidence[-1]}: it was run again and answered the same."
    return f"{since} {way_out(verdict.rule)}"


def hint(verdict: Verdict) -> str:
    """What the model is told on the rung `steer`."""
    return f"[Guard: {verdict.explanation.split(';')[0]}. {way_out(verdict.rule)}]"
