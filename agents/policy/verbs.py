"""The words in tool names that tell what a call does. Sure words decide wherever they stand, unsure ones only alone."""

import re
from functools import lru_cache

from agents.policy.vocabulary import words

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^0-9A-Za-z\u00c0-\uffff]+")


@lru_cache(maxsize=2_048)
def segments(tool: str) -> tuple[str, ...]:
    """The words of a tool's name: `mcp__jira__addComment` -> add, comment. The server's name tells nothing."""
    if "__" in tool:
        tool = tool.rsplit("__", 1)[-1]
    return tuple([word.casefold() for word in _HUMP.split(tool[:120]) if word])


WAIT = words("verbs", "wait")
THINK = words("verbs", "think")
PLAN = words("verbs", "plan")
ASK = words("verbs", "ask")
PERSON = words("verbs", "person")
SPAWN = words("verbs", "spawn")
HANDS_OVER, TOWARDS = words("verbs", "hands_over"), words("verbs", "towards")
HELPERS, SENDS_OUT = words("verbs", "helpers"), words("verbs", "sends_out")
SCREEN = words("verbs", "screen")
EXEC = words("verbs", "exec")
READ = words("verbs", "read")
CHECK = words("verbs", "check")
SURE_OUT = words("verbs", "sure_out")
UNSURE_OUT = words("verbs", "unsure_out")
MONEY = words("verbs", "money")
SET = words("verbs", "set")
OPS = words("verbs", "ops")
# Each use of these moves something on by itself: the same call again is not the same act.
STEP = words("verbs", "step")
CJK = (
    ("send", words("verbs", "cjk_send")),
    ("set", words("verbs", "cjk_set")),
    ("read", words("verbs", "cjk_read")),
)
DEVICES = words("verbs", "devices")
PROGRAMS = words("verbs", "programs")
CJK_EXEC = words("verbs", "cjk_exec")
KEYS = words("verbs", "keys")
