"""A policy as TOML: what people typed is kept with its remarks, what came as JSON is written out readably."""

import re
import tomllib
from collections.abc import Mapping
from typing import Any

import tomli_w

from agents.errors import ConfigError
from agents.policy.policies import NAMES, read_policy, shipped, shipped_text
from control.fleet.models import Policy

_LINE = re.compile(r"at line (\d+)")
_HEADER = re.compile(r"\s*\[{1,2}([^\[\]]+)\]{1,2}\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")
_UNKNOWN = re.compile(r"^(the \w+|\S+) knows no '([^']*)'")


def read(text: str) -> dict[str, Any]:
    """The data of a policy's TOML. Raises ConfigError `bad_policy`, with line and column."""
    return read_policy(text.encode("utf-8", "surrogatepass"))


def source_of(row: Policy) -> str:
    """The TOML of a version: as it was typed, as it ships, or written from its data."""
    if row.source:
        return row.source
    if row.name in NAMES and row.body == shipped(row.name):
        return shipped_text(row.name)
    return written(row.body)


def written(body: Mapping[str, Any]) -> str:
    """Data as TOML: single values first, then a section per table; small tables in it stay on one line."""
    body = _without_none(body)
    tables = {name: value for name, value in body.items() if isinstance(value, dict)}
    head = tomli_w.dumps({name: value for name, value in body.items() if name not in tables})
    return "\n".join(part for part in (head, *(_section(name, table) for name, table in tables.items())) if part)


def _section(name: str, table: dict[str, Any]) -> str:
    if any(map(_holds_tables, table.values())):
        return tomli_w.dumps({name: table})
    lines = [
        _small(key, value) if isinstance(value, dict) else tomli_w.dumps({key: value}) for key, value in table.items()
    ]
    return f"[{_key(name)}]\n{''.join(lines)}"


def _holds_tables(value: Any) -> bool:
    """Whether the library writes it under headers of its own, which must name the section too."""
    if isinstance(value, list):
        return any(isinstance(item, dict) for item in value)
    return isinstance(value, dict) and any(isinstance(item, dict | list) for item in value.values())


def _small(key: str, table: dict[str, Any]) -> str:
    """`repeat_read = { observe = 2, block = 3 }`, each value as the library writes it."""
    inside = ", ".join(tomli_w.dumps({name: value}).strip() for name, value in table.items())
    return f"{_key(key)} = {{ {inside} }}\n" if inside else f"{_key(key)} = {{}}\n"


def _key(name: str) -> str:
    return tomli_w.dumps({name: 0}).rsplit(" = ", 1)[0]


def _without_none(value: Any) -> Any:
    """TOML knows no null; where a policy has one it means the same as nothing."""
    if isinstance(value, Mapping):
        return {str(name): _without_none(item) for name, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_without_none(item) for item in value if item is not None]
    return value


def line_of(text: str, error: ConfigError) -> int | None:
    """The line of a text that an error is about, counted from 1, as far as the message tells."""
    if found := _LINE.search(error.message):
        return int(found[1])
    if found := _UNKNOWN.match(error.message):
        place = (() if found[1].startswith("the ") else _parts(found[1])) + (found[2],)
    else:
        place = _parts(error.message.split(" ", 1)[0])
    best, line = 0, None
    for number, path in _paths(text):
        if len(path) > best and place[: len(path)] == path:
            best, line = len(path), number
    return line


def _paths(text: str) -> list[tuple[int, tuple[str, ...]]]:
    """Which key each line begins. Lines inside long texts may look like keys; then a wrong line is named, no harm."""
    found: list[tuple[int, tuple[str, ...]]] = []
    header: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if match := _HEADER.match(line):
            header = _parts(match[1])
            found.append((number, header))
        elif match := _KEY.match(line):
            found.append((number, header + _parts(match[1])))
    return found


def _parts(dotted: str) -> tuple[str, ...]:
    try:
        value: Any = tomllib.loads(f"{dotted} = 0")
    except tomllib.TOMLDecodeError:
        return tuple(dotted.split("."))
    parts = []
    while isinstance(value, dict):
        ((name, value),) = value.items()
        parts.append(name)
    return tuple(parts)
