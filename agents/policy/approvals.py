"""Which calls a person must allow first: rules of a policy, matched against a tool's name and its arguments.

A policy says `approvals = [{tool = "run_command", when = {command = "git push*"}, why = "..."}]`. `tool` is a name or a
glob; each pattern of `when` must match the argument of its name: a text is a glob, `{regex = "..."}` is searched for.
A rule without `when` covers every call of its tools. Where it is doubtful whether a rule matches, it does.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from typing import Any

from agents.errors import ConfigError

MAX_RULES = 200
# A regex is given no longer text than this: one that is longer needs a person anyway.
LONGEST_TEXT = 20_000
# What begins another command in a shell's line. A pattern is a seat belt, not a cage: a shell has more ways than these.
_NEXT_COMMAND = re.compile(r"[;&|\n(){}`]|\$\(")
# Arguments that hold such a line.
_COMMANDS = frozenset({"command", "cmd", "script"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    text: str
    compiled: re.Pattern[str]
    is_regex: bool

    def matches(self, name: str, value: Any) -> bool:
        return any(self._fits(text) for text in _texts(name, value))

    def _fits(self, text: str) -> bool:
        if not self.is_regex:
            return self.compiled.match(text) is not None
        return len(text) > LONGEST_TEXT or self.compiled.search(text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`why` is for the person who is asked."""

    tool: str
    name: re.Pattern[str]
    when: Mapping[str, Pattern] = field(default_factory=dict)
    why: str = ""

    def covers(self, tool: str, args: Mapping[str, Any]) -> bool:
        if self.name.match(tool) is None:
            return False
        return all(name in args and pattern.matches(name, args[name]) for name, pattern in self.when.items())

    def told(self) -> str:
        """The rule in words, for whoever is asked."""
        if self.why:
            return self.why
        parts = [f"{name} like {pattern.text}" for name, pattern in self.when.items()]
        return f"{self.tool} with {', '.join(parts)}" if parts else f"every call of {self.tool}"


def needed(rules: Sequence[Rule], tool: str, args: Mapping[str, Any]) -> Rule | None:
    """The first rule that asks for a person's consent to this call; None if none does."""
    return next((rule for rule in rules if rule.covers(tool, args)), None)


def rules_of(policy: Mapping[str, Any]) -> tuple[Rule, ...]:
    """The rules of a policy's data. Raises ConfigError `bad_approvals`: a rule not understood would guard nothing."""
    given = policy.get("approvals") or []
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise _bad('`approvals` is a list of tables, e.g. [{tool = "run_command", when = {command = "git push*"}}]')
    if len(given) > MAX_RULES:
        raise _bad(f"there are {len(given)} rules; at most {MAX_RULES} are taken")
    return tuple(_rule(number, raw) for number, raw in enumerate(given, 1))


def _rule(number: int, raw: Any) -> Rule:
    if not isinstance(raw, Mapping) or not isinstance(raw.get("tool"), str) or not raw["tool"]:
        raise _bad(f"rule {number} names no `tool`; give a name or a glob such as mcp__*")
    if unknown := set(raw) - {"tool", "when", "why"}:
        raise _bad(f"rule {number} has {sorted(unknown)[0]!r}; a rule has `tool`, `when` and `why`")
    when, why = raw.get("when") or {}, raw.get("why") or ""
    if not isinstance(when, Mapping) or not isinstance(why, str):
        raise _bad(f"rule {number}: `when` maps names of arguments to patterns, `why` is a text")
    patterns = {str(name): _pattern(number, name, value) for name, value in when.items()}
    return Rule(tool=raw["tool"], name=_glob(raw["tool"]), when=patterns, why=why)


def _pattern(number: int, name: object, raw: Any) -> Pattern:
    if isinstance(raw, str):
        return Pattern(text=raw, compiled=_glob(raw), is_regex=False)
    wanted = raw.get("regex") if isinstance(raw, Mapping) and set(raw) == {"regex"} else None
    if not isinstance(wanted, str):
        raise _bad(f'rule {number}: the pattern of {name!r} is a glob, e.g. "git push*", or {{regex = "..."}}')
    try:
        return Pattern(text=wanted, compiled=re.compile(wanted, re.DOTALL), is_regex=True)
    except re.error as error:
        raise _bad(f"rule {number}: the regex of {name!r} is none: {error}") from error


def _glob(text: str) -> re.Pattern[str]:
    return re.compile(translate(text))


def _texts(name: str, value: Any) -> Iterator[str]:
    """The forms in which a value is looked at: as it is, and for a command line also each command in it."""
    if not isinstance(value, str):
        yield json.dumps(value, ensure_ascii=False)
        if isinstance(value, list):
            for item in value:
                yield from _texts(name, item)
        return
    yield value
    yield value.strip()
    if name in _COMMANDS:
        yield " ".join(value.split())
        for part in _NEXT_COMMAND.split(value):
            yield " ".join(part.split())


def _bad(what: str) -> ConfigError:
    return ConfigError("bad_approvals", f"The policy's approvals cannot be used: {what}.")
