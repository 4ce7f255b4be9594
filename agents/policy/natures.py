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
IDLES = frozenset({Nature.THINK, Nature.PLAN, Nature.WAIT})
MOVES = frozenset({Nature.STEP, Nature.SCREEN})
# What every call asks for is looked up once: the member of an enumeration by its name takes seven times as long.
_READ, _SEND, _OPERATE = Nature.READ, Nature.SEND, Nature.OPERATE
_MAY_RUN = frozenset({None, Nature.OPERATE, Nature.CHECK})
_MAY_SEND = frozenset({None, Nature.STEP, Nature.OPERATE})
_MAY_TOUCH = frozenset({None, Nature.SEND, Nature.SET, Nature.OPERATE})
_ON_SCREEN = words("fields", "on_screen")
_LOOKED_UP = frozenset({"get", "fetch", "lookup", "describe"})
_RESULTS = frozenset({"result", "results"})
_SEARCHED = frozenset({"search", "query"})
_MAY_EDIT = frozenset({Nature.SET, Nature.SEND, Nature.OPERATE})
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
    "befehl",
    "comando",
    "commande",
    "kommando",
    "コマンド",
    "命令",
    "指令",
    "명령",
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
_TIMES, _BRIEFS, _PAGING = words("fields", "times"), words("fields", "briefs"), words("fields", "paging")
_TOLD, _STATES, _MAKING = words("verbs", "told"), words("verbs", "states"), words("verbs", "making")
_ALIVE, _MOVING = words("verbs", "alive"), words("verbs", "moving")
_NOTICES = frozenset({"message", "notice", "notification", "notifications", "notify"})
_AMOUNTS, _MADE, _UNDONE = words("fields", "amounts"), words("verbs", "made"), words("verbs", "undone")
# What has an effect is judged before it happens; everything else by its answer.
EFFECTS = frozenset({Nature.SEND, Nature.SPAWN, Nature.SET, Nature.OPERATE, Nature.EDIT, Nature.STEP, Nature.ASK})
# By how much something moves; where to is told by other names.
_BY = frozenset(
    {"by", "dx", "dy", "dz", "delta", "deltax", "deltay", "pan", "tilt", "roll", "yaw", "steps", "angle", "forward"}
)
_ADDING = frozenset({"append", "prepend", "add"})
_NUMBERS = (int, float)
_LINES = ("input", "line", "command", "cmd", "call", "request", "instruction")


@lru_cache(maxsize=1024)
def _by_name(tool: str) -> tuple[Nature | None, bool]:
    """The nature that a name tells, and whether it names a shell or a program to run things in."""
    words = verbs.segments(tool)
    known = frozenset(words)
    first = words[0] if words else ""
    if known & verbs.EXEC and not (first in verbs.READ or first in verbs.SURE_OUT):
        return Nature.CHECK if _by_verb(words) is Nature.CHECK else None, True
    if known & (verbs.KEYS | _ALIVE) or (first in _MOVING and not _INCREMENTS.isdisjoint(words[1:])):
        return Nature.STEP, False
    if len(words) == 1 and first in verbs.PROGRAMS:
        return None, True
    if not tool.isascii() and any(one in tool for one in verbs.CJK_EXEC):
        return None, True
    if tool.startswith("POST /"):
        return Nature.OPERATE, False  # only its arguments tell whom it reaches
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
    if words[:2] == ("hand", "off"):
        return True
    if len(words) > 1 and words[0] in verbs.HANDS_OVER and words[1] in verbs.TOWARDS:
        return True
    return not known.isdisjoint(verbs.HELPERS) and not known.isdisjoint(verbs.SENDS_OUT)


def _by_verb(words: tuple[str, ...]) -> Nature | None:
    if words[:1] == ("run",) and len(words) > 1 and (found := _by_verb(words[1:])) in (Nature.CHECK, Nature.READ):
        return found
    if len(words) > 1 and words[-1] in _LOOKED_UP:
        return Nature.READ  # `refund_get`: what is looked up comes first
    if words[-1:] and words[-1] in _SEARCHED and "post" in words:
        return Nature.READ  # `api_post_search`: named by how a search is sent
    if len(words) > 1 and words[-1] in _STATES and _MAKING.isdisjoint(words):
        return Nature.READ  # the state of a transfer is looked up, however it was made
    if words[:1] == ("schedule",) and len(words) > 1 and words[1] not in verbs.READ:
        return Nature.SEND  # as a verb; as a noun it is looked at
    if words[-1:] == ("open",) and not verbs.DEVICES.isdisjoint(words):
        return Nature.OPERATE
    for word in words:
        if word in verbs.CHECK and words[0] not in ("get", "list", "read"):
            # The status of a build is looked up; the build itself asks the world.
            return Nature.CHECK if _TOLD.isdisjoint(words[1:]) else Nature.READ
        if word in verbs.SCREEN:
            return Nature.STEP if word in verbs.STEP else Nature.SCREEN
        if word in verbs.SET:
            return Nature.SET
        if word in verbs.SURE_OUT:
            return Nature.SEND
        if word in verbs.READ:
            return Nature.STEP if word in verbs.STEP else Nature.READ
        if word in verbs.OPS:
            if word == "push" and not _NOTICES.isdisjoint(words):
                return Nature.SEND
            return Nature.STEP if word in verbs.STEP else Nature.OPERATE
    if any(word in verbs.UNSURE_OUT for word in words):
        return Nature.SEND if _RESULTS.isdisjoint(words) else Nature.READ
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


@lru_cache(maxsize=1024)
def moves_money(tool: str) -> bool:
    return not verbs.MONEY.isdisjoint(verbs.segments(tool))


@lru_cache(maxsize=1024)
def makes(tool: str) -> bool:
    """Whether each use makes one more of something: a booking, an order, a ticket."""
    return not _MADE.isdisjoint(verbs.segments(tool))


@lru_cache(maxsize=1024)
def appends(tool: str) -> bool:
    """Whether each use adds to what a file holds."""
    return not _ADDING.isdisjoint(verbs.segments(tool))


@lru_cache(maxsize=1024)
def takes_back(tool: str) -> bool:
    """Whether it takes back what was made: cancels, deletes."""
    return not _UNDONE.isdisjoint(verbs.segments(tool))


@lru_cache(maxsize=1024)
def made_by(tool: str) -> str:
    """What a tool makes or takes back, without the verb: `create_event` and `delete_event` are about the same."""
    return " ".join([one for one in verbs.segments(tool) if one not in _MADE and one not in _UNDONE])


def pays(pairs: Mapping[str, Any]) -> bool:
    """Whether arguments name an amount and whom it goes to, or that it is paid, whatever the tool is called."""
    if _AMOUNTS.isdisjoint(pairs):
        return False
    said = (one.casefold() for one in pairs.values() if isinstance(one, str) and len(one) < 24)
    return not _RECIPIENTS.isdisjoint(pairs) or not verbs.MONEY.isdisjoint(said)


def nature_of(
    tool: str, args: Any, pairs: Mapping[str, Any], command: shells.Command | None, hints: Hints
) -> Nature | None:
    """None when neither hint, name nor command tells; the answer may tell later."""
    if hints.read_only or hints.poll:
        return _READ
    named, is_shell = _by_name(tool)
    if command is not None and (is_shell or named in _MAY_RUN):
        return OF_COMMAND[command.kind] if is_shell or named is None or command.sql else named
    if pairs:
        if named in _MAY_EDIT and not _FILE_KEYS.isdisjoint(pairs) and _edits(tool):
            return Nature.EDIT
        if named is None and is_shell and "oldstr" in pairs and not _FILE_KEYS.isdisjoint(pairs):
            return Nature.EDIT
        if named in _MAY_SEND and not _RECIPIENTS.isdisjoint(pairs) and not _MESSAGES.isdisjoint(pairs):
            return Nature.SEND
        if named in _MAY_TOUCH and not _ON_SCREEN.isdisjoint(pairs):
            return Nature.STEP if by_steps(pairs) else Nature.SCREEN
        if named is Nature.SET and _goes(tool) and not _BY.isdisjoint(pairs):
            return Nature.STEP  # so much further each time
        if named is Nature.STEP and _turns(tool) and _is_named(pairs):
            return _OPERATE  # a key or a log is rotated, not a picture
        if named in MOVES:
            return Nature.STEP if named is Nature.STEP or by_steps(pairs) else Nature.SCREEN
        if (
            named is _SEND
            and "forward" in verbs.segments(tool)
            and all(type(one) in _NUMBERS for one in pairs.values())
        ):
            return Nature.STEP  # a robot goes on; a mail goes to somebody
        if named is _SEND and _only_by_noun(tool) and _pages(pairs):
            return Nature.READ
    if named is None and _edits(tool):
        return Nature.EDIT
    if named is None or named is _OPERATE:
        return _by_arguments(pairs, is_shell) or named
    return named


@lru_cache(maxsize=1024)
def _goes(tool: str) -> bool:
    return not _MOVING.isdisjoint(verbs.segments(tool)[:1])


@lru_cache(maxsize=1024)
def _turns(tool: str) -> bool:
    return "rotate" in verbs.segments(tool)


def _is_named(pairs: Mapping[str, Any]) -> bool:
    """Whether an argument names a thing: it is no number, and tells no direction."""
    named = any(isinstance(one, str) and len(one) > 1 and not one.strip("-+.°").isdigit() for one in pairs.values())
    return named and not by_steps(pairs)


def _by_arguments(pairs: Mapping[str, Any], is_shell: bool) -> Nature | None:
    """What the arguments tell of a call whose name says nothing."""
    if not pairs:
        return None
    if pays(pairs):
        return _SEND
    if is_shell:
        return None
    if _TIMES.issuperset(pairs):
        return Nature.WAIT
    if len(pairs) == 1 and isinstance(line := next((pairs[key] for key in _LINES if key in pairs), None), str):
        return nature_by_verb(line.split(None, 1)[0][:40]) if line.strip() else None
    if any(isinstance(one := pairs.get(key), str) and one.count(" ") > 3 for key in _BRIEFS):
        return Nature.SPAWN
    return Nature.STEP if by_steps(pairs) else None


def _pages(pairs: Mapping[str, Any]) -> bool:
    """Whether a call goes through a list and brings nothing along."""
    return not _PAGING.isdisjoint(pairs) and _RECIPIENTS.isdisjoint(pairs) and _MESSAGES.isdisjoint(pairs)


@lru_cache(maxsize=1024)
def _only_by_noun(tool: str) -> bool:
    return verbs.SURE_OUT.isdisjoint(verbs.segments(tool))


def is_shell(tool: str) -> bool:
    return _by_name(tool)[1]


@lru_cache(maxsize=1024)
def _edits(tool: str) -> bool:
    return not _EDIT_WORDS.isdisjoint(verbs.segments(tool))


def by_steps(pairs: Mapping[str, Any]) -> bool:
    """Whether the arguments name a step: a direction, a key, more or less."""
    for value in pairs.values():
        if (
            isinstance(value, str)
            and len(value) < 40
            and not _INCREMENTS.isdisjoint(value.casefold().replace("-", " ").replace("_", " ").split())
        ):
            return True
    return False
