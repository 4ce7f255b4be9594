"""What kind of act a call is: looking, checking, acting, sending, waiting, thinking, delegating."""

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Any

from agents.policy import shells, verbs
from agents.policy.asked import Hints
from agents.policy.vocabulary import words


class Nature(StrEnum):
    """`SEND` reaches somebody or makes something new; `SET` puts a state; `OPERATE` does a thing again: a restart.

    `CHECK` asks the world for its verdict (tests, builds); `RUN` is a program that nobody can read; `STEP` is one move
    on a screen or in a stream, where the same move again is another move.
    """

    READ = "read"
    CHECK = "check"
    RUN = "run"
    OPERATE = "operate"
    SET = "set"
    EDIT = "edit"
    SEND = "send"
    STEP = "step"
    SCREEN = "screen"
    WAIT = "wait"
    THINK = "think"
    PLAN = "plan"
    ASK = "ask"
    SPAWN = "spawn"
    TEXT = "text"


LOOKS = frozenset({Nature.READ, Nature.CHECK, Nature.RUN})
ACTS = frozenset({Nature.OPERATE, Nature.SET, Nature.EDIT, Nature.SEND})
IDLES = frozenset({Nature.THINK, Nature.PLAN, Nature.WAIT})
# The same call from a shell or a program may depend on anything in the world.
OF_COMMAND = {
    shells.READ: Nature.READ,
    shells.CHECK: Nature.CHECK,
    shells.RUN: Nature.RUN,
    shells.ACT: Nature.OPERATE,
    shells.OUT: Nature.SEND,
    shells.WAIT: Nature.WAIT,
}

COMMAND_KEYS = (
    "command",
    "cmd",
    "script",
    "commandline",
    "shell",
    "bash",
    "code",
    "input",
    "line",
    "chars",
    "args",
    "argv",
    "source",
)
SQL_KEYS = ("sql", "statement", "query")
_EDIT_WORDS = frozenset(
    {
        "edit",
        "write",
        "replace",
        "patch",
        "str",
        "apply",
        "insert",
        "notebookedit",
        "multiedit",
        "editor",
        "rewrite",
        "append",
    }
)
_FILE_KEYS = frozenset({"path", "filepath", "file", "filename", "patch", "diff", "notebookpath", "targetfile"})
_RECIPIENTS = words("fields", "recipients")
_MESSAGES = frozenset({"body", "message", "text", "content", "html", "msg", "nachricht", "mensaje", "melding"})
_INCREMENTS = words("arguments", "increments")


@lru_cache(maxsize=1024)
def _by_name(tool: str) -> tuple[Nature | None, bool]:
    """The nature that a name tells, and whether it names a shell or a program to run things in."""
    words = verbs.segments(tool)
    known = frozenset(words)
    first = words[0] if words else ""
    if known & verbs.EXEC and not (first in verbs.READ or first in verbs.SURE_OUT):
        return None, True
    if known & verbs.KEYS:
        return Nature.STEP, False
    if known & verbs.WAIT:
        return Nature.WAIT, False
    if known & verbs.THINK:
        return Nature.THINK, False
    if known & verbs.PLAN and not known & {"get", "read"}:
        return Nature.PLAN, False
    if known & verbs.ASK and (len(words) == 1 or known & verbs.PERSON):
        return Nature.ASK, False
    if _spawns(words, known):
        return Nature.SPAWN, False
    return _by_verb(words), False


def _spawns(words: tuple[str, ...], known: frozenset[str]) -> bool:
    if known & {"delegate", "spawn", "subagent", "subagents", "subtask", "handoff"} or words in (("task",), ("agent",)):
        return True
    if words[:2] == ("transfer", "to") or words[:2] == ("hand", "off"):
        return True
    return bool(known & {"agent", "agents", "worker"}) and bool(
        known & {"run", "start", "launch", "call", "create", "dispatch", "invoke", "new", "assign", "ask"}
    )


def _by_verb(words: tuple[str, ...]) -> Nature | None:
    for word in words:
        if word in verbs.CHECK and words[0] not in ("get", "list", "read"):
            return Nature.CHECK
        if word in verbs.SCREEN:
            return Nature.STEP if word in verbs.STEP else Nature.SCREEN
        if word in verbs.SET:
            return Nature.SET
        if word in verbs.SURE_OUT:
            return Nature.SEND
        if word in verbs.READ:
            return Nature.STEP if word in verbs.STEP else Nature.READ
        if word in verbs.OPS:
            return Nature.STEP if word in verbs.STEP else Nature.OPERATE
    if any(word in verbs.UNSURE_OUT for word in words):
        return Nature.SEND
    if any(word in verbs.STEP for word in words):
        return Nature.STEP
    if not all(map(str.isascii, words)):
        name = "".join(words)
        return next((Nature(nature) for nature, found in verbs.CJK if any(one in name for one in found)), None)
    return None


@lru_cache(maxsize=512)
def nature_by_verb(verb: str) -> Nature | None:
    """What an argument such as `action: scroll` says."""
    return _by_verb(verbs.segments(verb))


def moves_money(tool: str) -> bool:
    return not verbs.MONEY.isdisjoint(verbs.segments(tool))


def nature_of(tool: str, args: Any, command: shells.Command | None, hints: Hints) -> Nature | None:
    """None when neither hint, name nor command tells; the answer may tell later."""
    if hints.read_only or hints.poll:
        return Nature.READ
    named, is_shell = _by_name(tool)
    if command is not None and (is_shell or named is None or named in (Nature.OPERATE, Nature.CHECK)):
        return OF_COMMAND[command.kind] if is_shell or named is None or command.sql else named
    if isinstance(args, Mapping):
        keys = {str(key).casefold().replace("_", "").replace("-", "") for key in args}
        if named in (Nature.SET, Nature.SEND, Nature.OPERATE) and keys & _FILE_KEYS and _edits(tool):
            return Nature.EDIT
        if named is None and is_shell and keys & _FILE_KEYS and "oldstr" in keys:
            return Nature.EDIT
        if named in (Nature.SCREEN, Nature.STEP):
            return Nature.STEP if named is Nature.STEP or _increments(args) else Nature.SCREEN
    if named is None and _edits(tool):
        return Nature.EDIT
    if (
        named is None
        and isinstance(args, Mapping)
        and not keys.isdisjoint(_RECIPIENTS)
        and not keys.isdisjoint(_MESSAGES)
    ):
        return Nature.SEND
    return named


def is_shell(tool: str) -> bool:
    return _by_name(tool)[1]


def _edits(tool: str) -> bool:
    return not _EDIT_WORDS.isdisjoint(verbs.segments(tool))


def _increments(args: Mapping[Any, Any]) -> bool:
    for value in args.values():
        if (
            isinstance(value, str)
            and len(value) < 40
            and not _INCREMENTS.isdisjoint(value.casefold().replace("-", " ").split())
        ):
            return True
    return False
