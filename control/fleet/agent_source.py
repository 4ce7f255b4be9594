"""An agent as TOML: read strictly, with the place named that is wrong; written out readably where nobody typed it."""

import tomllib
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import tomli_w

from agents.errors import ConfigError
from agents.policy.limits import limits_from
from agents.spec import LIMIT_NAMES
from control.fleet import day_limits
from control.fleet.models import Agent

FIELDS = (
    "prompt",
    "tools",
    "model",
    "base_url",
    "credential",
    "policy",
    "limits",
    "delegates_to",
    "fallbacks",
    "mcp_servers",
)
# What an agent is that says nothing of it.
DEFAULTS: dict[str, Any] = {
    "tools": [],
    "model": "",
    "base_url": "",
    "credential": "",
    "policy": "default",
    "limits": {},
    "delegates_to": [],
    "fallbacks": [],
    "mcp_servers": [],
}
_LENGTHS = {"model": 200, "base_url": 500, "credential": 100, "policy": 100}
_FALLBACK = {"model": 200, "base_url": 500, "credential": 100, "provider": 50}
_MANY = {"tools": 100, "delegates_to": 100, "fallbacks": 10, "mcp_servers": 16}
LONGEST_PROMPT = 200_000


def body_of(row: Agent) -> dict[str, Any]:
    """What makes the agent, as data."""
    return {name: getattr(row, name) for name in FIELDS}


def source_of(row: Agent) -> str:
    """The TOML of a version: as it was typed, or written from its data."""
    return row.source or written(body_of(row))


def written(body: Mapping[str, Any]) -> str:
    """Data as TOML: what is as in every agent is left out, numbers are numbers, the prompt stands over many lines."""
    said = {name: value for name, value in body.items() if value not in (DEFAULTS.get(name), None)}
    said["limits"] = {name: _number(value) for name, value in (body.get("limits") or {}).items()}
    order = [name for name in FIELDS if said.get(name) not in (None, {}, [])]
    return tomli_w.dumps({name: said[name] for name in order}, multiline_strings=True)


def read(text: str) -> dict[str, Any]:
    """The data of an agent's TOML, every field there. Raises ConfigError `bad_agent`, whose message begins with the
    place, or names the line."""
    try:
        raw = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError("bad_agent", f"This is no valid TOML: {error}.") from None
    if unknown := next((name for name in raw if name not in FIELDS), None):
        raise ConfigError("bad_agent", f"the agent knows no {unknown!r:.60}; it knows {', '.join(FIELDS)}.")
    body = {**DEFAULTS, **raw}
    prompt = body.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        raise ConfigError("bad_agent", "prompt is missing: it tells the agent who it is and how it works.")
    if len(prompt) > LONGEST_PROMPT:
        raise ConfigError("bad_agent", f"prompt has {len(prompt):,} characters; at most {LONGEST_PROMPT:,} are taken.")
    for name, longest in _LENGTHS.items():
        _text(name, body[name], longest)
    for name in ("tools", "delegates_to"):
        _names(name, body[name])
    body["limits"] = _limits(body["limits"])
    body["fallbacks"] = [
        _fallback(number, one) for number, one in enumerate(_tables("fallbacks", body["fallbacks"]), 1)
    ]
    _tables("mcp_servers", body["mcp_servers"])
    _storable(body)
    return {name: body[name] for name in FIELDS}


def _text(place: str, value: Any, longest: int) -> str:
    if not isinstance(value, str) or len(value) > longest or (value and not value.isprintable()):
        raise ConfigError("bad_agent", f"{place} is a text of at most {longest} characters in one line.")
    return value


def _names(place: str, value: Any) -> None:
    if not isinstance(value, list) or len(value) > _MANY[place]:
        raise ConfigError("bad_agent", f'{place} is a list of at most {_MANY[place]} names, like ["one", "two"].')
    for one in value:
        if not isinstance(one, str) or not 0 < len(one) <= 100:
            raise ConfigError("bad_agent", f"{place} holds {one!r:.60}, which is no name.")
    if twice := next((one for one in value if value.count(one) > 1), None):
        raise ConfigError("bad_agent", f"{place} holds {twice!r:.60} twice.")


def _tables(place: str, value: Any) -> list[Any]:
    if not isinstance(value, list) or len(value) > _MANY[place] or not all(isinstance(one, dict) for one in value):
        raise ConfigError("bad_agent", f"{place} is written as [[{place}]], at most {_MANY[place]} of them.")
    return value


def _fallback(number: int, one: Mapping[str, Any]) -> dict[str, str]:
    if unknown := next((name for name in one if name not in _FALLBACK), None):
        known = ", ".join(_FALLBACK)
        raise ConfigError("bad_agent", f"fallbacks.{unknown} is unknown in number {number}; known are {known}.")
    if not one.get("model"):
        raise ConfigError("bad_agent", f"fallbacks number {number} names no model.")
    return {name: _text(f"fallbacks.{name}", value, _FALLBACK[name]) for name, value in one.items() if value}


def _limits(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ConfigError("bad_agent", "limits is a table: [limits] and under it e.g. max_turns = 50.")
    known = (*LIMIT_NAMES, *day_limits.DAY_LIMITS, "max_running")
    if unknown := next((name for name in value if name not in known), None):
        raise ConfigError("bad_agent", f"limits knows no {unknown!r:.60}; it knows {', '.join(known)}.")
    for name, given in value.items():
        try:
            if name in LIMIT_NAMES:
                limits_from({name: given}, "agent")
            elif name in day_limits.DAY_LIMITS:
                day_limits.read({name: given}, "agent")
            elif not isinstance(given, int) or isinstance(given, bool) or not 0 < given <= 1_000_000:
                raise ConfigError("bad_agent", f"{name} is a whole number above 0.")
        except (ConfigError, day_limits.BadDayLimit) as error:
            raise ConfigError("bad_agent", f"limits.{name} cannot be so: {error}") from None
    return {name: format(Decimal(str(given)), "f") for name, given in value.items()}


def _number(value: Any) -> int | float:
    number = Decimal(str(value))
    return int(number) if number == number.to_integral_value() else float(number)


def _storable(value: Any) -> None:
    """TOML takes a NUL as an escape; no database does. It knows times, which no agent has."""
    if isinstance(value, str) and "\x00" in value:
        raise ConfigError("bad_agent", "The text holds a NUL; leave it out.")
    if isinstance(value, Mapping):
        for name, item in value.items():
            _storable(name)
            _storable(item)
    elif isinstance(value, list):
        for item in value:
            _storable(item)
    elif not isinstance(value, str | int | float):
        raise ConfigError("bad_agent", f"{value!s:.40} is neither text, number, list nor table.")
