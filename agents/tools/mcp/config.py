"""Which MCP servers an agent uses, as it is configured: a program on this machine, or an address.

`[{name = "git", command = "uvx", args = ["mcp-server-git"], env = ["GIT_TOKEN"], timeout = 60, tools = ["log"]}]` or
`[{name = "issues", url = "https://.../mcp", headers_env = {Authorization = "ISSUES_AUTH"}}]`. Values of secrets stay in
the worker's environment; here are only their names.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from agents.errors import ConfigError

MAX_SERVERS = 16
TIMEOUT_S, LONGEST_TIMEOUT_S = 60.0, 3600.0
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,24}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_KEYS = frozenset({"name", "command", "args", "env", "url", "headers_env", "timeout", "tools"})
# What this house needs for itself is for no server.
_OWN = frozenset({"SECRET_KEY", "DATABASE_URL", "REDIS_URL", "CREDENTIALS_FILE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """Either `command` or `url` is set. `tools` None: all that it offers."""

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    url: str | None = None
    headers_env: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = TIMEOUT_S
    tools: frozenset[str] | None = None


def servers_of(raw: Iterable[Mapping[str, Any]]) -> tuple[McpServer, ...]:
    """The servers as configured. Raises ConfigError `bad_mcp_servers`."""
    found = tuple(_server(number, one) for number, one in enumerate(raw, 1))
    if len(found) > MAX_SERVERS:
        raise _bad(f"there are {len(found)} servers; at most {MAX_SERVERS} are taken")
    names = [one.name.lower() for one in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise _bad(f"two servers are named {min(twice)!r}")
    return found


def _server(number: int, raw: Any) -> McpServer:
    if not isinstance(raw, Mapping) or not _is(raw.get("name"), _NAME):
        raise _bad(f"server {number} needs a `name` of at most 24 letters, digits, dashes or underscores")
    name = str(raw["name"])
    if unknown := set(raw) - _KEYS:
        raise _bad(f"server {name} has {min(map(str, unknown))!r}; known are {', '.join(sorted(_KEYS))}")
    command, url = raw.get("command") or None, raw.get("url") or None
    if (command is None) == (url is None):
        raise _bad(f"server {name} needs either a `command` or a `url`")
    if command is not None and not _plain(command):
        raise _bad(f"server {name}: `command` is the name or path of a program")
    if url is not None:
        _check_url(name, url)
    headers = raw.get("headers_env") or {}
    if not isinstance(headers, Mapping) or not all(_is(key, _HEADER) for key in headers):
        raise _bad(f"server {name}: `headers_env` maps names of headers to names of environment variables")
    return McpServer(
        name=name,
        command=command,
        args=_texts(name, "args", raw),
        env=_variables(name, _texts(name, "env", raw)),
        url=url,
        headers_env=dict(zip(headers, _variables(name, tuple(headers.values())), strict=True)),
        timeout_s=_timeout(name, raw.get("timeout")),
        tools=None if raw.get("tools") is None else frozenset(_texts(name, "tools", raw)),
    )


def _check_url(name: str, url: Any) -> None:
    try:
        parts = urlsplit(url) if _plain(url) else None
        good = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.username
    except ValueError:
        good = False
    if not good:
        raise _bad(f"server {name}: `url` is an http or https address without user name and password")


def _texts(name: str, key: str, raw: Mapping[str, Any]) -> tuple[str, ...]:
    given = raw.get(key) or []
    if not isinstance(given, list | tuple) or not all(_plain(one) for one in given) or len(given) > 200:
        raise _bad(f"server {name}: `{key}` is a list of texts")
    return tuple(given)


def _variables(name: str, given: tuple[Any, ...]) -> tuple[str, ...]:
    for variable in given:
        if not _is(variable, _VARIABLE):
            raise _bad(f"server {name}: name the environment variables only; their values stay with the worker")
        if variable in _OWN:
            raise _bad(f"server {name}: {variable} is for this console alone")
    return given


def _timeout(name: str, raw: Any) -> float:
    if raw is None:
        return TIMEOUT_S
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not 0 < raw <= LONGEST_TIMEOUT_S:
        raise _bad(f"server {name}: `timeout` is a number of seconds, at most {LONGEST_TIMEOUT_S:.0f}")
    return float(raw)


def _is(value: Any, form: re.Pattern[str]) -> bool:
    return isinstance(value, str) and form.fullmatch(value) is not None


def _plain(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and len(value) <= 4000 and "\x00" not in value


def _bad(what: str) -> ConfigError:
    return ConfigError("bad_mcp_servers", f"The MCP servers cannot be used: {what}.")
