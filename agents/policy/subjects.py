"""What a call is about: its command, the thing it looks at or touches, whom it reaches, names that tie it to others."""

import re
from collections.abc import Mapping
from typing import Any

from agents.policy import shells
from agents.policy.canonical import TITLES, digest, flat_key, is_volatile, meaning, plain_place
from agents.policy.natures import COMMAND_KEYS, SQL_KEYS, Nature, is_shell, nature_by_verb
from agents.policy.vocabulary import words

PATHS, URLS, RANGES = words("fields", "paths"), words("fields", "urls"), words("fields", "ranges")
QUERIES, TEXTS = words("fields", "queries"), words("fields", "texts")
_ACTIONS, _CONTAINERS = words("fields", "actions"), words("fields", "containers")
_METHODS = {"get": Nature.READ, "head": Nature.READ, "options": Nature.READ, "post": Nature.SEND, "put": Nature.SET}
_METHODS |= {"patch": Nature.SET, "delete": Nature.SET}
_WHERE = ("cwd", "workdir", "workingdirectory", "dir", "directory")
_TABLES = re.compile(r"(?i)\b(?:from|join|into|update|table|describe|desc)\s+[\"`]?([\w.]+)")
_TOKEN = re.compile(r"[^\W_]+(?:[._@#:-]+[^\W_]+)*")
_HUNK = re.compile(r"^(?:\*\*\* (?:Update|Add|Delete) File: |\+\+\+ (?:b/)?)(\S+)", re.M)


def command_of(tool: str, args: Any) -> shells.Command | None:
    """The command in a call of a shell; SQL and code count as one."""
    if isinstance(args, str):
        return shells.read_command(args) if is_shell(tool) else None
    if not isinstance(args, Mapping):
        return None
    shell = is_shell(tool)
    for key, value in list(args.items())[:20]:
        low = flat_key(key)
        if low in SQL_KEYS and isinstance(value, str) and (shell or low == "sql"):
            kind = shells.read_sql(value)
            return shells.Command(value, kind, 0.0, (), (), sql=True)
        if low in COMMAND_KEYS and (shell or low in ("command", "cmd", "commandline")):
            if isinstance(value, list) and all(isinstance(one, str) for one in value):
                value = f"{tool} {' '.join(value)}" if low in ("args", "argv") else " ".join(value)
            if isinstance(value, str) and (" " in value or shell):
                return shells.read_command(value)
    return None


def program_of(command: shells.Command | None) -> str:
    if command is not None and command.sql:
        return "sql"
    words = command.text.split(None, 2) if command is not None else ()
    return " ".join(words[:2]).casefold() if words else ""


def by_sub_command(args: Mapping[Any, Any], nature: Nature | None) -> Nature | None:
    """A tool with many verbs names the one it uses in an argument."""
    if nature in (Nature.READ, Nature.SPAWN):
        return nature
    for key, verb in list(args.items())[:12]:
        if not isinstance(verb, str) or len(verb) > 24:
            continue
        flat = flat_key(key)
        if flat == "command" and " " not in verb:
            low = verb.casefold()
            if low in ("str_replace", "insert", "create", "undo_edit"):
                return Nature.EDIT
            return Nature.READ if low == "view" else nature
        if flat in _ACTIONS:
            return _METHODS.get(verb.casefold()) or nature_by_verb(verb) or nature
    return nature


def meaning_of(args: Any, command: shells.Command | None) -> str:
    if command is not None and isinstance(args, Mapping):
        rest = {
            key: one for key, one in args.items() if flat_key(key) not in COMMAND_KEYS and flat_key(key) not in TITLES
        }
        return f"{meaning(command.text)}\0{meaning(rest)}" if rest else meaning(command.text)
    return meaning(command.text if command is not None else args)


def about_of(
    tool: str, args: Any, pairs: Mapping[str, Any], command: shells.Command | None, meant: str
) -> tuple[str, bool, str]:
    """(the thing, whether other calls may be about the same thing, its path)."""
    if command is not None:
        return _about_command(tool, pairs, command, meant)
    places = [short_path(one) for key, one in pairs.items() if key in PATHS and isinstance(one, str) and one]
    if not places and isinstance(patch := pairs.get("patch", pairs.get("diff", pairs.get("input"))), str):
        places = [short_path(one) for one in _HUNK.findall(patch[:8_000])[:4]]
    if places:
        inside = sorted(str(one).casefold()[:80] for key, one in pairs.items() if key in _CONTAINERS and one)
        return "p:" + " ".join([*sorted(places), *inside]), True, places[0]
    url = next((one for key, one in pairs.items() if key in URLS and isinstance(one, str)), None)
    if url:
        return "u:" + _without_paging(plain_place(url.casefold())), True, ""
    rest = {
        key: one
        for key, one in pairs.items()
        if key not in RANGES and key not in QUERIES and not is_volatile(key) and not (key in TITLES and len(pairs) > 1)
    }
    tables = " ".join(
        sorted(
            {
                one.casefold()
                for text in pairs.values()
                if isinstance(text, str)
                for one in _TABLES.findall(text[:2_000])
            }
        )
    )
    return f"t:{tool.casefold()}\0{meaning(rest)}{tables}", len(rest) < len(pairs) or not pairs, ""


def _about_command(tool: str, pairs: Mapping[str, Any], command: shells.Command, meant: str) -> tuple[str, bool, str]:
    where = next(
        (
            one
            for key, one in pairs.items()
            if key in ("cwd", "workdir", "workingdirectory", "dir", "directory") and isinstance(one, str)
        ),
        "",
    )
    tables = (
        _TABLES.findall(command.text[:2_000]) if command.kind in (shells.READ, shells.ACT) and not command.paths else ()
    )
    if command.paths and command.kind == shells.READ:
        places = sorted({short_path(one) for one in command.paths})
        # Two places on one line are a search over both or a comparison: as good a name as any.
        return "p:" + " ".join(places), True, places[0]
    if tables:
        return f"t:{tool}\0" + " ".join(sorted(one.casefold() for one in tables)) + where, True, ""
    return f"c:{tool}\0{digest(meant)}", False, ""


def short_path(path: str) -> str:
    """The last two parts of a path: enough to tell files apart, whatever directory a tool starts from."""
    parts = [part for part in plain_place(path.strip().casefold()[:400]).split("/") if part and part != "."]
    return "/".join(parts[-2:])


def _without_paging(url: str) -> str:
    head, _, query = url.partition("?")
    kept = [one for one in query.split("&") if one and flat_key(one.split("=", 1)[0]) not in RANGES]
    return f"{head}?{'&'.join(sorted(kept))}" if kept else head


def address_of(args: Any) -> str:
    if not isinstance(args, Mapping):
        return meaning(args)
    return meaning({key: one for key, one in args.items() if flat_key(key) not in TEXTS})


def texts_of(args: Any) -> str:
    if not isinstance(args, Mapping):
        return args if isinstance(args, str) else meaning(args)
    found = [one for key, one in args.items() if flat_key(key) in TEXTS and isinstance(one, str)]
    return "\n".join(found) if found else "\n".join(one for one in args.values() if isinstance(one, str))


def tokens_of(pairs: Mapping[str, Any], command: shells.Command | None) -> tuple[str, ...]:
    """Names that tie this call to others: paths, ids, hosts. Words that everything has in common are left out."""
    found: dict[str, None] = {}
    if command is not None:
        for path in command.paths:
            found[short_path(path)] = None
        for word in command.words[:16]:
            if any(c.isdigit() for c in word) or "/" in word or "_" in word or "-" in word:
                found[word] = None
    for key, one in list(pairs.items())[:24]:
        if isinstance(one, (int, float)) and not isinstance(one, bool) and abs(one) > 9:
            found[f"{one:g}" if isinstance(one, float) else str(one)[:40]] = None
        elif isinstance(one, str) and command is None:
            if key in PATHS:
                found[short_path(one)] = None
            elif key not in TEXTS and len(one) <= 60:
                found[one.strip().casefold()] = None
            else:
                for token in _TOKEN.findall(one[:400])[:40]:
                    if (
                        len(token) > 2
                        and any(c.isdigit() for c in token)
                        and any(c in "-_.#:@" or c.isalpha() for c in token)
                    ):
                        found[token.casefold()] = None
    return tuple(one for one in list(found)[:24] if len(one) > 1)


def wait_of(nature: Nature | None, pairs: Mapping[str, Any], command: shells.Command | None) -> float:
    if command is not None:
        return command.wait_s
    if nature is not Nature.WAIT:
        return 0.0
    for key, one in pairs.items():
        try:
            amount = float(one) if not isinstance(one, bool) else 0.0
        except (TypeError, ValueError, OverflowError):
            continue
        if amount > 0:
            return min(amount / 1000 if "ms" in key or "milli" in key else amount * 60 if "min" in key else amount, 1e6)
    return 1.0
