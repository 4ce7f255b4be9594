"""A policy as data: fuses, ladder, rules and identity, checked when it is read, and the four that ship."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import resources
from typing import Any

from agents.errors import ConfigError
from agents.policy.identity_rules import Rule, check_expression
from agents.policy.vocabulary import words

NAMES = ("strict", "ladder", "default", "off")
_OWN = ("note", "fuses", "stop_when", "ladder", "rules", "identity", "tools", "escalate", "shadow")
# What other rooms read out of a policy, and check themselves.
_OF_OTHERS = ("approvals", "compression_model", "credentials", "on_quota", "unpriced", "last_word")
MODES = ("refuse", "stub", "observe")
RULES = words("rules", "names")
_MOST = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """From which count on a rule observes, steers, blocks, stops; 0 = never. In `shadow` it speaks and does not act."""

    observe: int = 0
    steer: int = 0
    block: int = 0
    stop: int = 0
    mode: str = "refuse"
    shadow: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Rungs on the streak of one call of one tool, counted with the call itself; 0 = off."""

    observe: int = 0
    steer: int = 0
    block: int = 0
    escalate: int = 0
    stop: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fuses:
    """Hard limits of a run; None = none. Dollars are floats here: the fuse that holds money is the ledger."""

    max_turns: int | None = None
    max_steps: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    max_seconds: float | None = None
    max_working_seconds: float | None = None
    max_model_calls: int | None = None
    warn_model_calls: int | None = None
    max_children: int | None = None
    max_depth: int | None = None
    max_identical_calls: int | None = None
    max_oscillations: int | None = None
    max_failures_in_a_row: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRule:
    poll: bool = False
    read_only: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    name: str
    note: str = ""
    fuses: Fuses = field(default_factory=Fuses)
    ladder: Ladder | None = None
    rules: Mapping[str, Numbers] = field(default_factory=dict)
    identity: Mapping[str, Rule] = field(default_factory=dict)
    tools: Mapping[str, ToolRule] = field(default_factory=dict)
    escalate_to: str | None = None
    escalate_at_most: int = 2
    shadow: bool = False


UNGUARDED = Policy(name="off")


def shipped(name: str) -> dict[str, Any]:
    """A shipped policy as data. Raises FileNotFoundError for another name."""
    return tomllib.loads(shipped_text(name))


def shipped_text(name: str) -> str:
    """A shipped policy as its TOML file has it, remarks included. Raises FileNotFoundError for another name."""
    if name not in NAMES:
        raise FileNotFoundError(name)
    return resources.files(__package__).joinpath(f"shipped/{name}.toml").read_text(encoding="utf-8")


def read_policy(content: bytes, *, is_json: bool = False) -> dict[str, Any]:
    """A policy's data from a file. Raises ConfigError `bad_policy` for what is no TOML or JSON."""
    try:
        text = content.decode("utf-8")
        body = json.loads(text) if is_json else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError("bad_policy", f"The policy is no {'JSON' if is_json else 'TOML'}: {error}.") from None
    if not isinstance(body, dict):
        raise ConfigError("bad_policy", "A policy is a table (an object).")
    return body


def policy_from(body: Mapping[str, Any], name: str) -> Policy:
    """Check a policy's data. Raises ConfigError `bad_policy`, whose message names the place and what is right there."""
    _only(body, (*_OWN, *_OF_OTHERS), "the policy")
    fuses = _fuses(body, "fuses")
    for fuse, value in _fuses(body, "stop_when").items():
        fuses[fuse] = min(value, fuses.get(fuse, value))
    ladder, identity = _ladder(body)
    rules = {rule: _numbers(rule, given) for rule, given in _table(body, "rules").items()}
    escalate = _table(body, "escalate")
    _only(escalate, ("model", "at_most"), "escalate")
    return Policy(
        name=name,
        note=_typed(body.get("note", ""), str, "note"),
        fuses=Fuses(**fuses),
        ladder=ladder,
        rules=rules,
        identity={**identity, **_identity(_table(body, "identity"), "identity")},
        tools={tool: _tool(tool, given) for tool, given in _table(body, "tools").items()},
        escalate_to=_typed(escalate["model"], str, "escalate.model") if "model" in escalate else None,
        escalate_at_most=_count(escalate.get("at_most", 2), "escalate.at_most"),
        shadow=_typed(body.get("shadow", False), bool, "shadow"),
    )


def _fuses(body: Mapping[str, Any], table: str) -> dict[str, Any]:
    names = {one.name: one.type for one in fields(Fuses)}
    given = _table(body, table)
    _only(given, tuple(names), table)
    found: dict[str, Any] = {}
    for name, value in given.items():
        where = f"{table}.{name}"
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < _MOST:
            raise _bad(where, f"must be a number above 0, not {_shown(value)}")
        if "float" not in str(names[name]) and value != int(value):
            raise _bad(where, f"must be a whole number, not {_shown(value)}")
        found[name] = float(value) if "float" in str(names[name]) else int(value)
    return found


def _ladder(body: Mapping[str, Any]) -> tuple[Ladder | None, dict[str, Rule]]:
    if "ladder" not in body:
        return None, {}
    given = dict(_table(body, "ladder"))
    identity = given.pop("identity", {})
    if not isinstance(identity, Mapping):
        raise _bad("ladder.identity", "must be a table of tools")
    fingerprint = given.pop("fingerprint", "arguments")
    if fingerprint != "arguments":
        raise _bad("ladder.fingerprint", f"is always 'arguments', not {_shown(fingerprint)}")
    _only(given, ("observe", "steer", "block", "escalate", "stop"), "ladder")
    rungs = {name: _count(value, f"ladder.{name}") for name, value in given.items()}
    _rising(rungs, ("observe", "steer", "block", "escalate", "stop"), "ladder")
    return Ladder(**rungs), _identity(identity, "ladder.identity")


def _numbers(rule: str, given: Any) -> Numbers:
    where = f"rules.{rule}"
    if rule not in RULES:
        raise _bad(where, f"is no rule; there are {', '.join(sorted(RULES))}")
    if not isinstance(given, Mapping):
        raise _bad(where, "must be a table such as { observe = 1, block = 3, stop = 6 }")
    _only(given, ("observe", "steer", "block", "stop", "mode", "shadow"), where)
    rungs = {
        name: _count(given[name], f"{where}.{name}") for name in ("observe", "steer", "block", "stop") if name in given
    }
    _rising(rungs, ("observe", "steer", "block", "stop"), where)
    mode = given.get("mode", "refuse")
    if mode not in MODES:
        raise _bad(f"{where}.mode", f"is one of {', '.join(MODES)}, not {_shown(mode)}")
    return Numbers(**rungs, mode=mode, shadow=_typed(given.get("shadow", False), bool, f"{where}.shadow"))


def _identity(given: Mapping[str, Any], where: str) -> dict[str, Rule]:
    found: dict[str, Rule] = {}
    for tool, rule in given.items():
        place = f"{where}.{tool}"
        if rule is False:
            found[tool] = False
        elif isinstance(rule, str):
            if wrong := check_expression(rule):
                raise _bad(place, wrong)
            found[tool] = rule
        elif isinstance(rule, list) and rule and all(isinstance(one, str) for one in rule):
            found[tool] = tuple(rule)
        else:
            raise _bad(place, "is a list of fields, an expression, or false")
    return found


def _tool(tool: str, given: Any) -> ToolRule:
    if not isinstance(given, Mapping):
        raise _bad(f"tools.{tool}", "must be a table such as { poll = true }")
    _only(given, ("poll", "read_only"), f"tools.{tool}")
    return ToolRule(**{name: _typed(value, bool, f"tools.{tool}.{name}") for name, value in given.items()})


def _table(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    given = body.get(name, {})
    if not isinstance(given, Mapping):
        raise _bad(name, "must be a table")
    return given


def _only(given: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for name in given:
        if name not in known:
            raise _bad(where, f"knows no {name!r}; there are {', '.join(known)}")


def _rising(rungs: Mapping[str, int], order: tuple[str, ...], where: str) -> None:
    last_name, last = "", 0
    for name in order:
        value = rungs.get(name, 0)
        if value and value < last:
            raise _bad(f"{where}.{name}", f"is {value}, below {last_name} = {last}: a later rung cannot come earlier")
        if value:
            last_name, last = name, value


def _count(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 100_000:
        raise _bad(where, f"must be a whole number from 0, not {_shown(value)}")
    return value


def _typed(value: Any, kind: type, where: str) -> Any:
    if not isinstance(value, kind):
        raise _bad(where, f"must be {'true or false' if kind is bool else 'text'}, not {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    try:
        return f"{value!r:.100}"
    except (ValueError, RecursionError):
        return "what is too large to show"


def _bad(where: str, what: str) -> ConfigError:
    return ConfigError("bad_policy", f"{where} {what}.")
