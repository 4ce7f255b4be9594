"""What the fold is given: the log as stored, and the little that other rows know of the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents.policy.sequences import ContentOf
from control.incidents.postmortem.report import Opened


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPolicy:
    """`own`: the one that the run held frozen."""

    name: str
    version: int | None
    body: Mapping[str, Any]
    own: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """What the desk did or was told about this run. `kind`: opened, acknowledged, resolved, delivered, undelivered,
    comment. `by_person` is true for what somebody did. `text` is a short sentence."""

    at: datetime
    kind: str
    text: str
    by_person: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """Another run in the same directory. `overlaps`: both were at work at once."""

    run: str
    agent: str
    overlaps: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """A limit of money that holds for longer than one run: `{what: credential main, limit: 100, per: month}`."""

    what: str
    limit: str
    per: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """`bodies`: every envelope of the run's log in order. `stop_requested_at`: when a person asked for the stop."""

    run: str
    agent: str
    task: str
    project: str
    status: str
    exit_reason: str | None
    policy: str
    bodies: Sequence[bytes]
    content_of: ContentOf
    policies: Sequence[NamedPolicy] = ()
    alerts: Sequence[Alert] = ()
    incidents: Sequence[Opened] = ()
    neighbours: Sequence[Neighbour] = ()
    allowances: Sequence[Allowance] = ()
    stop_requested_at: datetime | None = None
