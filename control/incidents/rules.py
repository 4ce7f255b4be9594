"""What the desk looks out for: every rule with its severity, what it means, the next step and where its runbook is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from django.conf import settings

from control.incidents.models import Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`lasting`: its condition may pass by itself, and then, or when the run ends, the incident resolves; others are
    resolved by people alone."""

    name: str
    word: str
    severity: Severity
    means: str
    next_step: str
    checks: tuple[str, ...]
    lasting: bool = False


_RULES: Final = (
    Rule(
        name="tripped",
        word="Tripped",
        severity=Severity.ERROR,
        means="A fuse or the last rung of the ladder ended the run. It is stopped and spends nothing more.",
        next_step="Read the verdict on the run, then decide whether the work starts again and under which limits.",
        checks=(
            "Which call repeated, or which limit was used up? The verdict names it with its evidence.",
            "Has it left something half done? Its last edits and commands are at the end of the transcript.",
            "Did others of this agent trip too? Filter the fleet by the agent; if so, hold new starts.",
        ),
    ),
    Rule(
        name="lost",
        word="Lost",
        severity=Severity.ERROR,
        means="The worker of the run died and nobody could go on with it. What its last call did is not known.",
        next_step="Look at the workers, then check what the last call that had begun has really done.",
        checks=(
            "Is the worker back? The page of workers shows machine, load and last sign.",
            "Calls marked “effect unknown” may have happened: look at the target itself.",
            "Start the run again, or fork it at its last complete turn.",
        ),
    ),
    Rule(
        name="failed",
        word="Failed",
        severity=Severity.ERROR,
        means="The run ended with an error that no recovery covers; the reason is in the title.",
        next_step="Read the reason: auth and billing want a person at the provider, others a look at the last request.",
        checks=(
            "auth, billing, permission: mend the credential; all runs with it are affected.",
            "model_not_found, format_error: mend the agent; every start of it fails in this way.",
            "overloaded, server_error, timeout, connection: look at the provider; then start the run again.",
        ),
    ),
    Rule(
        name="budget",
        word="Budget at 80 %",
        severity=Severity.WARNING,
        means="Four fifths of a limit are used, and the run goes on. At the limit it will be stopped.",
        next_step="Look whether the run makes progress: raise the limit if it does, stop it if it does not.",
        checks=(
            "Tokens per turn: a growing history that is sent again and again uses a budget up by itself.",
            "Raise is on the page of the run and asks for a reason; Interrupt ends it with a summary of what stopped.",
        ),
        lasting=True,
    ),
    Rule(
        name="repeats",
        word="Repeated calls",
        severity=Severity.ERROR,
        means="The run asks for the same call again and again, even where the guard blocks it, and learns nothing.",
        next_step="Interrupt the run, or steer it with a note that says what it is to do instead.",
        checks=(
            "What does the call answer? An error that never changes wants another way, not another try.",
            "If the guard does not stop it: its policy is looser than this rule. Compare it with `strict`.",
        ),
        lasting=True,
    ),
    Rule(
        name="waiting",
        word="Waits too long",
        severity=Severity.WARNING,
        means="The run waits for a person's word, or for quota, and nobody has come.",
        next_step="Answer it from the inbox, or interrupt it if the question is no longer worth an answer.",
        checks=(
            "A question or an approval: the inbox has it with its deadline.",
            "Quota: the credentials page shows which key rests and until when.",
        ),
        lasting=True,
    ),
    Rule(
        name="unverified",
        word="Stop not verified",
        severity=Severity.CRITICAL,
        means="The run was told to stop and counts as ended, but nobody has seen its processes and sockets gone.",
        next_step="Go to the machine named here and look for processes of the run; end what is left.",
        checks=(
            "Is the host reachable? A machine without network may still work on.",
            "Every tool process carries its worker's mark in its environment (AGENT_WORKER).",
            "A sweeper on that machine cleans up when it comes back; the page of workers shows when.",
        ),
    ),
    Rule(
        name="day_limit",
        word="Day limit reached",
        severity=Severity.ERROR,
        means="What one agent, or the whole fleet, may spend in a day (UTC) is spent: its runs are stopped one by one.",
        next_step="Decide whether today's work is worth more: raise the limit, or wait for midnight UTC.",
        checks=(
            "Which runs spent it? Sort the fleet by cost; a run that went in circles may have taken most of it.",
            "The limit of an agent is on its page, that of all agents and of the fleet in the environment.",
            "Runs that it stopped are tripped; start them again, or fork them, once there is room.",
        ),
    ),
    Rule(
        name="errors",
        word="Provider errors",
        severity=Severity.ERROR,
        means="Half or more of the attempts at a provider fail.",
        next_step="Look at the provider's status page; rest its credentials or let agents fall back to another model.",
        checks=(
            "rate_limit: too many runs share one key; hold new starts or add keys.",
            "auth, billing: the key, not the provider.",
            "Runs wait and try again by themselves; stop nothing that only waits.",
        ),
        lasting=True,
    ),
    Rule(
        name="spend",
        word="Spend climbs",
        severity=Severity.CRITICAL,
        means="The fleet spends several times what it spent on average over the day before.",
        next_step="Sort the fleet by cost, stop what burns, and hold new starts until the cause is known.",
        checks=(
            "One run or many? One: interrupt it. Many of one agent: stop them by filter and block new starts.",
            "A legitimate batch? Acknowledge, and set a day limit for the agent.",
        ),
        lasting=True,
    ),
)
RULES: Final[Mapping[str, Rule]] = {rule.name: rule for rule in _RULES}


def rule_of(name: str) -> Rule:
    """The rule of a name; one that an older release knew is told as it is."""
    known = RULES.get(name)
    return known or Rule(
        name=name, word=name, severity=Severity.INFO, means="A rule of another release.", next_step="", checks=()
    )


def runbook(name: str) -> str:
    """Where to read on: a page of RUNBOOK_URL if there is one, else our own."""
    if settings.RUNBOOK_URL:
        return f"{settings.RUNBOOK_URL.rstrip('/')}/{quote(name)}"
    return f"{settings.CONSOLE_URL}/incidents/rules/#{quote(name)}"
