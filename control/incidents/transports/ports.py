"""What a transport is: it writes a message by its service's rules, sends it, and reads the answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One incident as it is told. Links lead into the console; `stop_url` is None once the run has ended."""

    key: str
    id: str
    rule: str
    word: str
    severity: str
    state: str
    title: str
    summary: str
    next_step: str
    facts: tuple[tuple[str, str], ...]
    run: str | None
    agent: str
    project: str
    happened_at: datetime
    opened_at: datetime
    resolved_at: datetime | None
    times: int
    url: str
    run_url: str | None
    stop_url: str | None
    runbook_url: str
    labels: Mapping[str, str] = field(default_factory=dict)
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What goes out at once: notices of one action. `id` stays the same through all tries."""

    id: str
    created: datetime
    action: str
    route: str
    console_url: str
    notices: tuple[Notice, ...]
    reminder: bool = False


class Result(StrEnum):
    DELIVERED = "delivered"
    RETRY = "retry"
    FINAL = "final"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one try came out. `code`: HTTP status or SMTP reply, None without an answer. `after_s`: the service asks for
    this much patience; `rests`: that goes for the whole route."""

    result: Result
    code: int | None = None
    why: str = ""
    after_s: float | None = None
    rests: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A message as it goes over the wire: for the preview, and for HTTP to be sent."""

    to: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One setting of a route. Secret ones are never shown again; one that is not needed may have a default."""

    name: str
    label: str
    help: str = ""
    secret: bool = False
    needed: bool = True
    default: str = ""
    choices: tuple[str, ...] = ()


class BadOption(Exception):
    """`name` is the option, the text says what to do; it never holds a secret."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.message = message


class Transport(Protocol):
    """`takes`: the actions it can tell; `groups`: several incidents fit in one message; `pace_s`: between two."""

    name: str
    word: str
    options: tuple[Option, ...]
    takes: frozenset[str]
    groups: bool
    pace_s: float

    def check(self, options: Mapping[str, str], secrets: Mapping[str, str]) -> None:
        """Raises BadOption for the first setting that cannot be right."""

    def letter(self, message: Message, options: Mapping[str, str], secrets: Mapping[str, str]) -> Letter:
        """The message as the service takes it."""

    def send(self, message: Message, options: Mapping[str, str], secrets: Mapping[str, str]) -> Outcome:
        """One try; blocking, and without the database. It never raises for what a network does."""
