"""A policy laid out for reading: its fuses, its rungs, its rules by kind, and everything it says of single tools."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from agents.errors import ConfigError
from agents.policy import approvals
from agents.policy.policies import Fuses, Numbers, Policy, policy_from
from control.dashboard import policy_words as words
from control.dashboard.templatetags.pilothouse import count, duration, money, short

LADDER = ("observe", "steer", "block", "escalate", "stop")


@dataclass(frozen=True, slots=True, kw_only=True)
class FuseRow:
    """`value` and `brief` are written with their unit; `table` is where the policy has it."""

    name: str
    title: str
    value: str
    brief: str
    table: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RungRow:
    """One rung: from which count on it is taken (0 = never), or by how many rules."""

    name: str
    says: str
    count: int = 0
    rules: int = 0

    @property
    def on(self) -> bool:
        return bool(self.count or self.rules)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    name: str
    title: str
    says: str
    numbers: Numbers

    @property
    def mode(self) -> str:
        """What a block does; nothing where nothing is blocked."""
        if self.numbers.mode == "observe" or self.numbers.block:
            return words.MODES[self.numbers.mode]
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """All of one policy. `problem` says why it could not be read; then only its source tells what it holds."""

    problem: str = ""
    note: str = ""
    shadow: bool = False
    shadowed: int = 0
    fuses: list[FuseRow] = field(default_factory=list)
    rungs: list[RungRow] = field(default_factory=list)
    by_arguments: bool = False
    rules: list[tuple[str, list[RuleRow]]] = field(default_factory=list)
    rules_count: int = 0
    identity: list[tuple[str, str]] = field(default_factory=list)
    tools: list[tuple[str, str]] = field(default_factory=list)
    escalate: str = ""
    approvals: list[tuple[str, str, str]] = field(default_factory=list)
    switches: list[tuple[str, str]] = field(default_factory=list)

    @property
    def briefs(self) -> list[str]:
        """The fuses in few words each; a warning is none."""
        return [fuse.brief for fuse in self.fuses if not fuse.name.startswith("warn_")]

    @property
    def guards(self) -> bool:
        return bool(self.rungs)


def sheet_of(body: Mapping[str, Any], name: str = "") -> Sheet:
    """Lay a policy out. Never raises: what an older version saved may be no policy any more."""
    try:
        policy = policy_from({key: value for key, value in body.items() if key != "name"}, name)
        asked = approvals.rules_of(body)
    except ConfigError as error:
        return Sheet(problem=error.message)
    return Sheet(
        note=policy.note,
        shadow=policy.shadow,
        shadowed=sum(numbers.shadow for numbers in policy.rules.values()),
        fuses=_fuses(policy.fuses, body),
        rungs=_rungs(policy),
        by_arguments=policy.ladder is not None,
        rules=_rules(policy),
        rules_count=len(policy.rules),
        identity=[(tool, _identity(rule)) for tool, rule in policy.identity.items()],
        tools=[(tool, _tool(rule)) for tool, rule in policy.tools.items()],
        escalate=_escalate(policy),
        approvals=[(rule.tool, _when(rule), rule.why) for rule in asked],
        switches=_switches(body),
    )


def written(name: str, value: float) -> str:
    """The value of a fuse with its unit: `2 h 00 m`, `$2.00`, `80,000`."""
    if name == "max_cost":
        return money(value)
    return duration(value) if name.endswith("seconds") else count(value)


def _fuses(fuses: Fuses, body: Mapping[str, Any]) -> list[FuseRow]:
    rows = []
    for name in (one.name for one in fields(Fuses)):
        value = getattr(fuses, name)
        if value is None:
            continue
        table = next((table for table in ("stop_when", "fuses") if name in (body.get(table) or {})), "fuses")
        brief = f"{short(value) if name == 'max_tokens' else written(name, value)} {words.UNITS.get(name, '')}".strip()
        rows.append(FuseRow(name=name, title=words.FUSES[name], value=written(name, value), brief=brief, table=table))
    order = list(words.FUSES)
    return sorted(rows, key=lambda row: order.index(row.name))


def _rungs(policy: Policy) -> list[RungRow]:
    if policy.ladder is not None:
        return [RungRow(name=name, says=words.RUNGS[name], count=getattr(policy.ladder, name)) for name in LADDER]
    if not policy.rules:
        return []
    blocks = sum(numbers.block > 0 and numbers.mode != "observe" for numbers in policy.rules.values())
    taken = {
        name: sum(getattr(numbers, name) > 0 for numbers in policy.rules.values())
        for name in ("observe", "steer", "stop")
    } | {"block": blocks, "escalate": blocks if policy.escalate_to else 0}
    return [RungRow(name=name, says=words.RUNGS[name], rules=taken[name]) for name in LADDER]


def _rules(policy: Policy) -> list[tuple[str, list[RuleRow]]]:
    """By kind, in the order of our words; rules that have no words yet come last."""
    known = {name for rules in words.RULES.values() for name in rules}
    kinds = {**words.RULES, "Others": {name: "" for name in policy.rules if name not in known}}
    found = [
        (
            kind,
            [
                RuleRow(name=name, title=words.title(name), says=says, numbers=policy.rules[name])
                for name, says in rules.items()
                if name in policy.rules
            ],
        )
        for kind, rules in kinds.items()
    ]
    return [(kind, rows) for kind, rows in found if rows]


def _identity(rule: Any) -> str:
    if rule is False:
        return "exempt: never counted as a repeat"
    return f"expression {rule}" if isinstance(rule, str) else f"only {', '.join(rule)}"


def _tool(rule: Any) -> str:
    said = ["polls: a longer leash"] if rule.poll else []
    if rule.read_only is not None:
        said.append("changes nothing" if rule.read_only else "may change something")
    return ", ".join(said) or "as any other"


def _escalate(policy: Policy) -> str:
    if policy.escalate_to is None:
        return ""
    times = "once" if policy.escalate_at_most == 1 else f"at most {policy.escalate_at_most} times"
    return f"{policy.escalate_to} takes the turn after a refused call, {times}"


def _when(rule: approvals.Rule) -> str:
    told = [f"{name} {'~' if pattern.is_regex else 'like'} {pattern.text}" for name, pattern in rule.when.items()]
    return " and ".join(told) or "every call"


def _switches(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    found = [(name, says[body[name]]) for name, says in words.SWITCHES.items() if body.get(name) in says]
    if model := body.get("compression_model"):
        found.append(("compression_model", f"Summaries are written by {model}"))
    if last := body.get("last_word"):
        found.append(("last_word", last if isinstance(last, str) else "A tripped run explains itself in one last call"))
    return found
