"""What a call is about: its command, the thing it looks at or touches, whom it reaches, names that tie it to others."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeGuard

from agents.policy import shells
from agents.policy.canonical import TITLES, flat_key, is_volatile, meaning, plain_place
from agents.policy.natures import COMMAND_KEYS, SQL_KEYS, Nature, is_shell, nature_by_verb
from agents.policy.scrubbing import FROM_DIGIT, HAS_DIGIT
from agents.policy.vocabulary import Phrases, words

PATHS, URLS, RANGES = words("fields", "paths"), words("fields", "urls"), words("fields", "ranges")
QUERIES, TEXTS = words("fields", "queries"), words("fields", "texts")
_ACTIONS, _CONTAINERS = words("fields", "actions"), words("fields", "containers")
_METHODS = {"get": Nature.READ, "head": Nature.READ, "options": Nature.READ, "post": Nature.SEND, "put": Nature.SET}
_METHODS |= {"patch": Nature.SET, "delete": Nature.SET}
# Arguments that hold a command whatever the tool is called.
_COMMANDS = frozenset({"sql", "command", "cmd", "commandline"})
_VERBS = _ACTIONS | {"command"}
_PATCHES = ("patch", "diff", "input")
_WAIT = Nature.WAIT
_SHORT_PATH = 120
_CHOOSING = RANGES | QUERIES
_NAMES_ITS_VERB = frozenset({Nature.READ, Nature.SPAWN})
_WHERE = ("cwd", "workdir", "workingdirectory", "dir", "directory")
_TABLES = re.compile(r"(?i)\b(?:from|join|into|update|table|describe|desc)\s+[\"`]?([\w.]+)")
_BEFORE_TABLES = Phrases({"before": ("from", "join", "into", "update", "table", "desc")})
_TOKEN = re.compile(r"[^\W_]+(?:[._@#:-]+[^\W_]+)*")
_MARKUP = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_HUNK = re.compile(r"^(?:\*\*\* (?:Update|Add|Delete) File: |\+\+\+ (?:b/)?)(\S+)", re.M)


def command_of(tool: str, args: Any, pairs: Mapping[str, Any]) -> shells.Command | None:
    """The command in a call of a shell; SQL and code count as one."""
    if isinstance(args, str):
        return shells.read_command(args) if is_shell(tool) else None
    shell = is_shell(tool)
    if not shell and _COMMANDS.isdisjoint(pairs):
        return None
    for low, value in pairs.items():
        if low in SQL_KEYS and isinstance(value, str) and (shell or low == "sql"):
            kind = shells.read_sql(value)
            return shells.Command(value, kind, 0.0, sql=True)
        if low in COMMAND_KEYS and (shell or low in _COMMANDS):
            if isinstance(value, list) and all(isinstance(one, str) for one in value):
                value = f"{tool} {' '.join(value)}" if low in ("args", "argv") else " ".join(value)
            if isinstance(value, str) and low in ("args", "argv"):
                value = f"{tool} {value}"
            if isinstance(value, str) and (" " in value or shell):
                return shells.read_command(value)
    if shell and len(pairs) == 1:
        only = next(iter(pairs.values()))
        return shells.read_command(only) if isinstance(only, str) else None
    return None


def program_of(command: shells.Command | None) -> str:
    if command is not None and command.sql:
        return "sql"
    words = command.text.split(None, 2) if command is not None else ()
    return " ".join(words[:2]).casefold() if words else ""


def by_sub_command(pairs: Mapping[str, Any], nature: Nature | None) -> Nature | None:
    """A tool with many verbs names the one it uses in an argument."""
    if nature in _NAMES_ITS_VERB or _VERBS.isdisjoint(pairs):
        return nature
    for flat, verb in pairs.items():
        if not isinstance(verb, str) or len(verb) > 24:
            continue
        if flat == "command" and " " not in verb:
            low = verb.casefold()
            if low in ("str_replace", "insert", "create", "undo_edit"):
                return Nature.EDIT
            return Nature.READ if low == "view" else nature
        if flat in _ACTIONS:
            return _METHODS.get(verb.casefold()) or nature_by_verb(verb) or nature
    return nature


def meaning_of(args: Any, command: shells.Command | None) -> str:
    if command is not None and _is_object(args):
        rest = {
            key: one for key, one in args.items() if flat_key(key) not in COMMAND_KEYS and flat_key(key) not in TITLES
        }
        return f"{meaning(command.text)}\0{meaning(rest)}" if rest else meaning(command.text)
    return meaning(command.text if command is not None else args)


def place_of(tool: str, pairs: Mapping[str, Any], command: shells.Command | None) -> tuple[str, bool, str]:
    """(the thing if it is a place, whether other calls may be about the same thing, its path)."""
    if command is not None:
        return _place_of_command(tool, pairs, command)
    places = _paths_in(pairs)
    if places:
        inside = [str(pairs[key]).casefold()[:80] for key in _CONTAINERS.intersection(pairs) if pairs[key]]
        return "p:" + " ".join([*sorted(places), *sorted(inside)]), True, places[0]
    if not URLS.isdisjoint(pairs):
        url = next((one for key, one in pairs.items() if key in URLS and isinstance(one, str)), None)
        if url:
            return "u:" + _without_paging(plain_place(url.casefold())), True, ""
    among = len(pairs)
    return "", not pairs or any(_chooses(key, among) for key in pairs), ""


def _paths_in(pairs: Mapping[str, Any]) -> list[str]:
    """The paths that arguments name, or else those that a patch does."""
    if not PATHS.isdisjoint(pairs):
        places = [short_path(one) for key, one in pairs.items() if key in PATHS and isinstance(one, str) and one]
        if places:
            return places
    patch = next((pairs[key] for key in _PATCHES if key in pairs), None)
    return [short_path(one) for one in _HUNK.findall(patch[:8_000])[:4]] if isinstance(patch, str) else []


def about_rest(tool: str, pairs: Mapping[str, Any]) -> str:
    """What a call that names no place is about: its arguments without range and query, and tables that it names."""
    among = len(pairs)
    rest = {key: one for key, one in pairs.items() if not _chooses(key, among)}
    tables = {one.casefold() for text in pairs.values() if isinstance(text, str) for one in _tables(text)}
    return f"t:{tool.casefold()}\0{meaning(rest)}{' '.join(sorted(tables))}"


def _chooses(key: str, among: int) -> bool:
    """Whether an argument only chooses what to see of a thing."""
    return key in _CHOOSING or is_volatile(key) or (key in TITLES and among > 1)


def _tables(text: str) -> list[str]:
    text = text[:2_000]
    return _TABLES.findall(text) if " " in text and _BEFORE_TABLES.holds(text.casefold()) else []


def _place_of_command(tool: str, pairs: Mapping[str, Any], command: shells.Command) -> tuple[str, bool, str]:
    if command.kind not in (shells.READ, shells.ACT):
        return "", False, ""
    where = " ".join(
        one[:80].casefold()
        for key, one in pairs.items()
        if (key in _WHERE or key in _CONTAINERS) and isinstance(one, str)
    )
    if command.kind == shells.READ and command.paths:
        places = sorted({short_path(one) for one in command.paths})
        # Two places on one line are a search over both or a comparison: as good a name as any.
        return "p:" + " ".join([*places, where] if where else places), True, places[0]
    tables = _tables(command.text)
    if tables and not command.paths:
        return f"t:{tool}\0" + " ".join(sorted(one.casefold() for one in tables)) + where, True, ""
    return "", False, ""


def short_path(path: str) -> str:
    """The last two parts of a path: enough to tell files apart, whatever directory a tool starts from."""
    return _shortened(path) if len(path) < _SHORT_PATH else _shortened_anew(path)


def _shortened_anew(path: str) -> str:
    parts = [part for part in plain_place(path.strip().casefold()[:400]).split("/") if part and part != "."]
    return "/".join(parts[-2:])


# A call names the same path more than once, and a run the same few paths again and again.
_shortened = lru_cache(maxsize=2_048)(_shortened_anew)


def _without_paging(url: str) -> str:
    head, _, query = url.partition("?")
    kept = [one for one in query.split("&") if one and flat_key(one.split("=", 1)[0]) not in RANGES]
    return f"{head}?{'&'.join(sorted(kept))}" if kept else head


def address_of(args: Any) -> str:
    """Whom or what a message reaches: its arguments without what it says."""
    return meaning(_unsaid(args, 0)) if _is_object(args) else meaning(args)


def _unsaid(value: Mapping[Any, Any], depth: int) -> dict[Any, Any]:
    kept: dict[Any, Any] = {}
    for key, one in list(value.items())[:200]:
        if flat_key(key) in TEXTS or _is_prose(one):
            continue
        kept[key] = _unsaid(one, depth + 1) if depth < 5 and _is_object(one) else one
    return kept


def _is_object(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    """Arguments nearly always are plain dicts and texts, and to look for any other mapping takes long."""
    kind = type(value)
    return kind is dict or (kind is not str and isinstance(value, Mapping))


def _is_prose(value: Any) -> bool:
    return isinstance(value, str) and value.count(" ") > 2


def texts_of(args: Any) -> str:
    """What a message says."""
    if not _is_object(args):
        return args if isinstance(args, str) else meaning(args)
    found: list[str] = []
    _said(args, found, 0)
    text = "\n".join(found or [one for one in args.values() if isinstance(one, str)])
    return _MARKUP.sub("\n", text) if "</" in text else text


def _said(value: Mapping[Any, Any], found: list[str], depth: int) -> None:
    for key, one in list(value.items())[:200]:
        if isinstance(one, str):
            if flat_key(key) in TEXTS or _is_prose(one):
                found.append(one)
        elif depth < 6 and _is_object(one):
            _said(one, found, depth + 1)


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
        if isinstance(one, str):
            if command is None:
                found.update(dict.fromkeys(_names_in(key, one)))
        elif isinstance(one, (int, float)) and not isinstance(one, bool) and abs(one) > 9:
            found[f"{one:g}" if isinstance(one, float) else str(one)[:40]] = None
    return tuple([one for one in list(found)[:24] if len(one) > 1])


def _names_in(key: str, text: str) -> list[str]:
    """The names in one argument: a path or a short text is one as a whole."""
    if key in PATHS:
        return [short_path(text)]
    if key not in TEXTS and len(text) <= 60:
        return [text.strip().casefold()]
    return _numbered(text[:400])


def _numbered(text: str) -> list[str]:
    """The names in a text that have a number in them."""
    words = [text[text.rfind(" ", 0, at.start()) + 1 : at.end()] for at in FROM_DIGIT.finditer(text)]
    return [
        token.casefold()
        for word in words
        for token in _TOKEN.findall(word)
        if len(token) > 2 and HAS_DIGIT(token) and not token.isdigit()
    ]


def wait_of(nature: Nature | None, pairs: Mapping[str, Any], command: shells.Command | None) -> float:
    if command is not None:
        return command.wait_s
    if nature is not _WAIT:
        return 0.0
    for key, one in pairs.items():
        try:
            amount = float(one) if not isinstance(one, bool) else 0.0
        except (TypeError, ValueError, OverflowError):
            continue
        if amount > 0:
            return min(amount / 1000 if "ms" in key or "milli" in key else amount * 60 if "min" in key else amount, 1e6)
    return 1.0
