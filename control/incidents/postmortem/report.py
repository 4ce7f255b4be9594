"""What a postmortem says of a run, as plain typed values: every number here is folded from the log.

Times are UTC, money is Decimal dollars (None: unknown), `seq` numbers an event of the run's log. Text is safe to show:
secrets are hidden, hidden characters are written out. People appear by role, never by name.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

VERSION = 1


class MomentKind(StrEnum):
    """Whose doing a line of the timeline is."""

    RUN = "run"
    OPERATOR = "operator"
    ALERT = "alert"
    VERDICT = "verdict"
    RETRY = "retry"
    MILESTONE = "milestone"


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The run in a few words. `end`: the kind of its last event without `run.`; `ended`: that event as a sentence."""

    run: str
    agent: str
    task: str
    project: str
    status: str
    exit_reason: str | None
    end: str
    ended: str
    policy: str
    model: str
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime
    last_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """The run in numbers. `tokens_in` counts cached ones too. A call is wasted if it taught nothing: its meaning and
    its answer were known and nothing new had come into the world since, or it was refused; its cost is its part of
    what the turn has cost that asked for it."""

    duration_s: float
    turns: int
    model_calls: int
    failed_attempts: int
    failed_attempts_usd: Decimal
    tool_calls: int
    tool_calls_run: int
    tool_calls_failed: int
    tool_calls_refused: int
    edits: int
    sub_agents: int
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    cost_usd: Decimal | None
    cost_complete: bool
    wasted_calls: int
    wasted_tokens: int
    wasted_usd: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    at: datetime
    kind: MomentKind
    text: str
    seq: int | None = None
    rung: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """One call that was asked for more than once, by the guard's own identity. `colour` numbers its lane colour, None
    for those without one."""

    fingerprint: str
    tool: str
    call: str
    times: int
    answers: int
    refused: int
    wasted_calls: int
    wasted_usd: Decimal | None
    first_seq: int
    last_seq: int
    colour: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A file took a content. `state` is its letter; `back` says that it had held it before."""

    at: datetime
    seq: int
    turn: int | None
    state: str
    back: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What lies between two contents of a file, as a unified diff; None if a content is no longer kept or no text."""

    before: str
    after: str
    times: int
    diff: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Oscillation:
    """One file that went back to a content it had held. `states` maps letter to its SHA-256; the first one may be what
    the file held before the run."""

    path: str
    states: dict[str, str]
    start: str | None
    writes: tuple[Write, ...]
    returns: int
    changes: tuple[Change, ...]

    @property
    def letters(self) -> str:
        """`A B A B`, the content before the run included."""
        return " ".join([*([self.start] if self.start else []), *(write.state for write in self.writes)])


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCost:
    """One turn's model calls, failed attempts included. `total_usd` runs on through the run."""

    turn: int
    at: datetime
    seq: int
    tokens_in: int
    tokens_out: int
    usd: Decimal
    total_usd: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """The longest silence of the log and what it waited for."""

    seconds: float
    start: datetime
    end: datetime
    seq: int
    waited_for: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Milestone:
    at: datetime
    seq: int
    turn: int | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """From one moment to another; `seconds` None: it never came to that. `how` says by what."""

    seconds: float | None
    how: str
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """`detect`: from the first call that taught nothing to the first who noticed; `acknowledge`: from there to the
    first act of a person; `stop`: from the order to stop to the end."""

    detect: Delay
    acknowledge: Delay
    stop: Delay


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """What contributed, proposed from evidence for people to accept or strike out. `code` is stable."""

    code: str
    title: str
    evidence: str
    seqs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Where a policy would have ended the run: at which step (tool calls asked for, counted from 1), by which rule."""

    step: int
    seq: int
    turn: int | None
    at: datetime
    rule: str
    explanation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """One policy on this recorded run. `saved_*`: what came after the point where it would have stopped; what the model
    had done instead of a refused call nobody knows, so refusals alone are counted and not priced."""

    policy: str
    version: int | None
    own: bool
    refused: int
    first_refused: Stop | None
    stop: Stop | None
    saved_calls: int
    saved_model_calls: int
    saved_tokens: int
    saved_usd: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One thing on a lane of the picture, from `start` to `end`. `look` picks its colour; `letter` is written on it."""

    start: datetime
    end: datetime
    seq: int
    look: str
    text: str
    letter: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    name: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An incident that the desk opened about the run, as it stands now."""

    id: str
    rule: str
    severity: str
    state: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    about: About
    impact: Impact
    milestone: Milestone | None
    gap: Gap | None
    delays: Delays
    repeats: tuple[Repeat, ...]
    repeats_hidden: int
    oscillations: tuple[Oscillation, ...]
    turns: tuple[TurnCost, ...]
    factors: tuple[Factor, ...]
    earlier: tuple[Earlier, ...]
    timeline: tuple[Moment, ...]
    timeline_hidden: int
    incidents: tuple[Opened, ...]
    lanes: tuple[Lane, ...]
