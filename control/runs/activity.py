"""What a run does now, in a few words for the fleet's rows: `run_command pytest -q`, `429: waits 12 s`."""

from collections.abc import Mapping
from typing import Any

import orjson

LONGEST = 300
# The argument that tells most about a call, by habit of the tools that ship.
_TELLING = ("command", "path", "pattern", "query", "url", "question", "task", "name")


def short(text: str, limit: int = LONGEST) -> str:
    """One line within `limit` characters; what a database column cannot hold is left out."""
    if len(text) <= limit and text.isprintable() and "  " not in text and text.strip(" ") == text:
        return text  # it is one already; this stands in the way of every append
    line = " ".join(text.split()) if len(text) < 2000 else " ".join(text[:2000].split())
    line = line.replace("\x00", "")
    return line if len(line) <= limit else line[: limit - 1] + "…"


def of_tool(name: str, args: str | None) -> str:
    telling = _telling(args)
    return short(f"{name} {telling}" if telling else name)


def _telling(args: str | None) -> str:
    if not args or args[:1] != "{":
        return ""
    try:
        given = orjson.loads(args)
    except orjson.JSONDecodeError:
        return ""
    for key in _TELLING:
        value = given.get(key)
        if isinstance(value, str) and value:
            return value
    return next((value for value in given.values() if isinstance(value, str) and value), "")


def of_call(operation: str, name: str, model: str | None, args: str | None) -> str:
    if operation == "execute_tool":
        return of_tool(name, args)
    if operation == "chat":
        told = model or name
        return short(f"chat {told}" if name in ("", "chat", told) else f"chat {told} ({name})")
    return short(f"agent {name}")


def of_retry(error: Mapping[str, Any], wait_s: float) -> str:
    return short(f"{error.get('status') or error.get('reason') or 'error'}: waits {wait_s:.0f} s")


def of_wait(reason: str, text: str | None, until: str | None) -> str:
    match reason:
        case "question":
            return short(f"asks: {text or ''}")
        case "approval":
            return short(f"asks to approve: {text or ''}")
        case "pause":
            return "paused"
        case "quota":
            return short(f"waits for quota until {until}" if until else "waits for quota")
        case _:
            return short(f"waits for {reason}")


def of_stop(stopped: Mapping[str, Any]) -> str:
    """Only what was verified is called so."""
    seconds = stopped.get("seconds")
    took = f"stopped in {seconds:.2f} s" if isinstance(seconds, int | float) else "stopped"
    return short(f"{took} · {'verified' if stopped.get('verified') else 'unverified'}")
