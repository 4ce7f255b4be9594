"""Reading a shell command: what it waits for, what it touches, and whether it looks, checks or changes something."""

import re
from dataclasses import dataclass
from functools import lru_cache

from agents.policy.lazily import lazy
from agents.policy.vocabulary import words

READ, CHECK, ACT, OUT, RUN, WAIT = "read", "check", "act", "out", "run", "wait"
_ORDER = (OUT, ACT, CHECK, RUN, READ, WAIT)


@dataclass(frozen=True)
class Command:
    """`text` is the command without its waits, comments and plumbing, `tokens` the words of each of its parts; `paths`
    what it names, `words` the rest."""

    text: str
    kind: str
    wait_s: float
    tokens: tuple[list[str], ...] = ()
    sql: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        return self._named[0]

    @property
    def words(self) -> tuple[str, ...]:
        return self._named[1]

    @lazy
    def _named(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        paths: list[str] = []
        words: list[str] = []
        for tokens in self.tokens:
            _sort_out(tokens, paths, words)
        return tuple(paths[:8]), tuple(words[:24])


# Only within reach: a longer command is a script, and its head tells what it is.
_LONGEST = 4_000
_SHORT_TOKEN = 60
_SLEEP = re.compile(
    r"(?:^|[;&\n]\s*|&&\s*)(?:sleep|Start-Sleep(?:\s+-s\w*)?|timeout /t)\s+(\d+(?:\.\d+)?)([smh]?)\s*(?:;|&&|\n|$)"
)
_NOISE = re.compile(
    r"\s*2>&1|\s*2>\s*/dev/null|\s*\|\|\s*(?:true|:)\s*$|(?:^|\s)#[^\n]*|;\s*$|;\s*echo [\"']?[\w =$?:.-]*[\"']?\s*$"
)
# `&&`, `||`, `;`, `|`, a new line; begins with their first characters, which are found at once.
_SPLIT = re.compile(r"[;\n|&](?:(?<=&)&|(?<=\|)\|?|(?<=[;\n]))")
_WORD = re.compile(r"\"[^\"]*\"|'[^']*'|[^\s\"'<>]+")
_REDIRECT = re.compile(r"(?<![0-9&>=-])>>?\s*(?!/dev/null|&)[\w./~$\"'-]")
_PATHLIKE = re.compile(
    r"^(?:\.{0,2}/|~/)?[\w@.+-]+(?:/[\w@.*+-]+)+/?$|^[\w@+-]+(?:\.[\w-]+)*\.[a-zA-Z][a-zA-Z0-9]{0,5}$"
)
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}

_READERS = words("shell", "readers")
_CHECKERS = words("shell", "checkers")
_ACTORS = words("shell", "actors")
_SENDERS = words("shell", "senders")
# Programs with both sides: the word that follows tells.
_LOOKING = words("shell", "looking")
_CHECKING = words("shell", "checking")
_PUBLISH = re.compile(
    r"\b(?:issue|pr|release|discussion)\s+(?:create|comment|close)\b|\bsend-email\b|\bses send|\bsns publish"
    r"|\bpublish\b"
)
_SQL_READ = re.compile(r"(?i)^\W*(?:select|show|explain|describe|desc|with|pragma|values|table|\\d)")
_CURL_ACT = re.compile(
    r"(?i)-X\s*['\"]?(?:POST|PUT|PATCH|DELETE)|--request[= ]\s*(?:POST|PUT|PATCH|DELETE)"
    r"|\s(?:-d|--data\S*|-F|--form|-T|--json)[\s=]"
)


# Where a program works, and the words that choose another place.
_PLACES = frozenset({"config", "context", "workspace", "account", "profile"})
_CHOOSE = ("use", "set", "select", "switch", "activate")


def read_command(text: str) -> Command:
    """Never raises; about ten microseconds for a line."""
    text = text[:_LONGEST]
    wait_s = 0.0
    if "leep" in text or "timeout" in text:
        for amount, unit in _SLEEP.findall(text):
            wait_s += float(amount) * _UNITS[unit]
        text = _SLEEP.sub(" ; ", text) if wait_s else text
    if "2>" in text or "||" in text or "#" in text or ";" in text:
        text = _NOISE.sub(" ", text)
    text = text.strip(" ;&\n\t")
    if not text:
        return Command("", WAIT if wait_s else READ, wait_s)
    quoted = "'" in text or '"' in text or "<" in text or ">" in text
    kinds: set[str] = set()
    found: list[list[str]] = []
    for part in _SPLIT.split(text)[:12]:
        tokens = (_WORD.findall(part) if quoted else part.split())[:40]
        if tokens:
            kinds.add(_kind(tokens, part))
            found.append(tokens)
    if ">" in text and _REDIRECT.search(text):
        kinds.add(ACT)
    kind = next((one for one in _ORDER if one in kinds), READ)
    return Command(text, kind, wait_s, tuple(found))


def read_sql(text: str) -> str:
    """Whether a statement looks or acts."""
    return READ if _SQL_READ.match(text[:200]) else ACT


def looks_like_path(text: str) -> bool:
    return len(text) < 300 and _PATHLIKE.match(text) is not None


def _kind(tokens: list[str], part: str) -> str:
    at = 0
    while at < len(tokens) - 1 and (
        tokens[at] in ("sudo", "time", "nohup", "npx", "env", "xargs", "exec", "command", "bunx", "then", "do")
        or "=" in tokens[at]
    ):
        at += 1
    if tokens[at] == "timeout" and len(tokens) > at + 2:
        at += 2
    program = tokens[at].rsplit("/", 1)[-1].casefold()
    rest = [token for token in tokens[at + 1 : at + 12] if not token.startswith("-")]
    if program in (
        "python",
        "python3",
        "poetry",
        "uv",
        "pipenv",
        "bundle",
        "pnpm",
        "npm",
        "yarn",
        "bun",
        "rye",
        "hatch",
        "py",
    ):
        return _runner(program, rest, part)
    if program in ("uvx", "pipx") and rest:
        return CHECK if rest[0] in _CHECKERS else RUN
    if program in _SENDERS or (program in ("gh", "glab", "aws", "git") and _PUBLISH.search(part)):
        return OUT
    if program in _CHECKERS:
        return CHECK
    if program in ("curl", "http", "wget"):
        return OUT if _CURL_ACT.search(part) else READ
    if program == "sed":
        return ACT if re.search(r"\s-\w*i", part) else READ
    if program == "tee":
        return ACT
    if program in _READERS:
        return READ
    if program in ("psql", "mysql", "sqlite3", "mongosh", "clickhouse-client", "duckdb"):
        quoted = next((token.strip("\"'") for token in tokens if token[:1] in "\"'"), "")
        return read_sql(quoted) if quoted else RUN
    if program in _ACTORS:
        return _two_sided(rest)
    return RUN


def _runner(program: str, rest: list[str], part: str) -> str:
    if any(word.split(":")[0] in _CHECKERS or word.split(":")[0] in _CHECKING for word in rest[:4]):
        return CHECK
    if (
        program in ("npm", "pnpm", "yarn", "poetry", "uv", "pipenv", "bundle")
        and rest
        and rest[0] not in ("run", "exec")
    ):
        return READ if rest[0] in _LOOKING else ACT
    return RUN


def _two_sided(rest: list[str]) -> str:
    for at, word in enumerate(rest[:4]):
        low = word.casefold().strip("\"'")
        if low in _PLACES and at + 1 < len(rest) and rest[at + 1].startswith(_CHOOSE):
            return ACT  # what follows happens elsewhere: `kubectl config use-context prod`
        if low in _LOOKING or low.startswith(("describe-", "list-", "get-", "head-")):
            return READ
        if low in _CHECKING:
            return CHECK
    return ACT


def _sort_out(tokens: list[str], paths: list[str], words: list[str]) -> None:
    for token in tokens:
        path, word = _read_token(token) if len(token) < _SHORT_TOKEN else _read_token_anew(token)
        if path:
            paths.append(path)
        elif word:
            words.append(word)


def _read_token_anew(token: str) -> tuple[str, str]:
    """A token as (a path, a word); both empty for an option or a number."""
    bare = token.strip("\"'(){}$`,")
    if not bare or bare.startswith("-") or (bare[0].isdigit() and not looks_like_path(bare)):
        return "", bare.casefold() if bare.startswith("--") and "=" in bare else ""
    if token[0] not in "\"'" and ("/" in bare or "." in bare) and _PATHLIKE.match(bare):
        return bare, ""
    return "", "" if " " in bare else bare.casefold()


_read_token = lru_cache(maxsize=4_096)(_read_token_anew)
