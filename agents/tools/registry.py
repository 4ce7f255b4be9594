"""Which tools there are, and how the argument text of a call becomes checked arguments."""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NoReturn

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from referencing import Registry as Resources
from referencing.exceptions import Unresolvable

from agents.errors import ToolError
from agents.ports import Tool, ToolSpec
from agents.tools.plain_schema import plainly_fits


class Registry:
    """Tools by name, in the order in which the model sees them."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec for tool in self._tools.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def extended(self, more: Iterable[Tool]) -> "Registry":
        """These and further ones behind them; a name that is taken stays with the tool that has it."""
        found = dict(self._tools)
        for tool in more:
            found.setdefault(tool.spec.name, tool)
        return Registry(found.values())

    def only(self, names: Iterable[str]) -> "Registry":
        """The tools of these names, in that order; names without a tool are left out."""
        return Registry(self._tools[name] for name in names if name in self._tools)


def default_tools(*, web: bool = False) -> tuple[Tool, ...]:
    """The tools of the agent `default`; `web_fetch` only where someone has allowed the network."""
    from agents.tools.clarify import Clarify
    from agents.tools.delegate import Delegate
    from agents.tools.files import EditFile, ListFiles, ReadFile, WriteFile
    from agents.tools.patch import ApplyPatch
    from agents.tools.search import SearchFiles
    from agents.tools.shell import RunCommand
    from agents.tools.web import WebFetch

    tools: tuple[Tool, ...] = (
        ListFiles(),
        ReadFile(),
        SearchFiles(),
        WriteFile(),
        EditFile(),
        ApplyPatch(),
        RunCommand(),
        Clarify(),
        Delegate(),
    )
    return (*tools, WebFetch()) if web else tools


def parse_args(spec: ToolSpec, raw: str) -> dict[str, Any]:
    """The arguments as given. Nothing is repaired or guessed.

    Blank text means no arguments, and only for a tool that requires none. Raises ToolError (kind `bad_args`) with the
    position of the fault and the schema.
    """
    if not raw.strip():
        if spec.parameters.get("required"):
            _refuse(spec, "The arguments are empty")
        return _checked(spec, {})
    try:
        value = json.loads(raw, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        _refuse(
            spec,
            f"The arguments are no valid JSON: {error.msg} at line {error.lineno} column {error.colno}"
            f" (char {error.pos})",
        )
    except (ValueError, RecursionError) as error:
        _refuse(spec, f"The arguments are no valid JSON: {error}")
    if not isinstance(value, dict):
        _refuse(spec, f"The arguments must be a JSON object, not {_kind(value)} (char 0)")
    return _checked(spec, value)


def _checked(spec: ToolSpec, value: dict[str, Any]) -> dict[str, Any]:
    if plainly_fits(spec.parameters, value):
        return value
    validator = _validator(spec.name, json.dumps(spec.parameters, sort_keys=True))
    try:
        error = best_match(validator.iter_errors(value))
    except (RecursionError, Unresolvable):
        _refuse(spec, "The arguments cannot be checked: the schema goes in circles or refers to what is not there")
    if error is not None:
        _refuse(spec, f"The arguments do not fit: {_where(error)}{_short(error.message)}")
    return value


@lru_cache(maxsize=256)
def _validator(name: str, schema: str) -> Draft202012Validator:
    # A registry of its own: nothing is ever fetched to check a call.
    return Draft202012Validator(json.loads(schema), registry=Resources())


def _refuse(spec: ToolSpec, what: str) -> NoReturn:
    schema = json.dumps(spec.parameters, separators=(",", ":"), ensure_ascii=False)
    raise ToolError(
        f"{what}. {spec.name} was not run. Call it again with one JSON object that fits this schema: {schema}",
        kind="bad_args",
    )


def _where(error: ValidationError) -> str:
    path = ".".join(map(str, error.absolute_path))
    return f"{path}: " if path else ""


def _short(message: str) -> str:
    return message if len(message) <= 300 else message[:200] + " ... " + message[-80:]


def _kind(value: object) -> str:
    names: Mapping[type, str] = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")
