"""What an operator wants of a run: the words of the lane that goes down."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class CommandKind(StrEnum):
    INTERRUPT = "interrupt"
    STEER = "steer"
    PAUSE = "pause"
    UNPAUSE = "unpause"
    ANSWER = "answer"
    RAISE = "raise"
    FORK = "fork"
    WITHDRAW = "withdraw"
    LIFT = "lift"
    DRAIN = "drain"


class Scope(StrEnum):
    RUN = "run"
    SUBTREE = "subtree"


class CommandState(StrEnum):
    """Requested is not done: each state has its own time on the receipt."""

    REQUESTED = "requested"
    DELIVERED = "delivered"
    STOPPING = "stopping"
    DONE = "done"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One durable, idempotent directive.

    `run` is the run it names; with scope `subtree` it also reaches every descendant. `args` by kind:
    steer `{note}`; pause `{when: after_batch|before_call}`; answer `{call, text}` or
    `{call, decision: approve|deny|edit, args?, reason?}`; raise `{limits}`.
    """

    id: str
    kind: CommandKind
    run: str
    by: str
    scope: Scope = Scope.RUN
    reason: str | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    issued_at: datetime | None = None
