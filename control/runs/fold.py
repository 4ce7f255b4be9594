"""The fold from a run's events to its row, its calls, verdicts and receipts: pure, and the same live and in a rebuild.

Values are absolute: whoever writes them overwrites the columns, so a fold that is repeated changes nothing.
"""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from agents.spec import Status

_CENT = Decimal("0.000000001")
RUNGS = ("observe", "steer", "block", "escalate", "stop")


@dataclass(slots=True, kw_only=True)
class CallRow:
    """One `Call` row while it is folded. `label` is the activity text that it gives its run."""

    id: str
    turn: int | None
    operation: str
    name: str
    label: str
    status: str | None = None
    started_seq: int | None = None
    completed_seq: int | None = None
    attempts: int = 1
    started_at: datetime | None = None
    completed_at: datetime | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: Decimal | None = None
    cost_source: str | None = None
    # Whether the table has a row for it, so that only what changes is written.
    stored: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRow:
    seq: int
    call: str | None
    detector: str
    rung: str
    rule: str
    mode: str | None
    fingerprint: str
    step: int
    count: int
    wasted_tokens: int
    wasted_usd: Decimal | None
    shadow: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptStep:
    """One step of one command in this run. `state` is delivered, stopping, done or refused."""

    command: str
    state: str
    ts: datetime
    code: str | None = None
    turn: int | None = None


@dataclass(slots=True, kw_only=True)
class Columns:
    """The columns of `Run` that are projections; names are those of the model."""

    last_seq: int = 0
    status: str = Status.QUEUED.value
    exit_reason: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    turns: int = 0
    steps: int = 0
    errors: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal | None = None
    cost_unknown: bool = False
    last_activity_at: datetime | None = None
    activity: str | None = None
    waiting_for: str | None = None
    waiting_call: str | None = None
    rung: str | None = None
    final: str | None = None
    stop_seconds: float | None = None
    stopped: Any = None


COLUMNS = tuple(Columns.__dataclass_fields__)


@dataclass(slots=True, kw_only=True)
class Fold:
    """The state of one run's fold. What is in `touched`, `verdicts`, `late`, `receipts` has yet to be written."""

    row: Columns = field(default_factory=Columns)
    open: dict[str, CallRow] = field(default_factory=dict)
    # Commands this run has taken in and not yet settled, by id: the kind.
    pending: dict[str, str] = field(default_factory=dict)
    touched: dict[str, CallRow] = field(default_factory=dict)
    verdicts: list[VerdictRow] = field(default_factory=list)
    late: list[tuple[str, str]] = field(default_factory=list)
    receipts: list[ReceiptStep] = field(default_factory=list)
    # Whether a column outside the ones that change all the time has changed (status, waiting, final ...).
    reshaped: bool = False
    ended_by: str | None = None

    @property
    def final(self) -> bool:
        return self.row.finished_at is not None

    def written(self) -> None:
        """Forget what has been written."""
        for call in self.touched.values():
            call.stored = True
        self.touched = {}
        self.verdicts = []
        self.late = []
        self.receipts = []
        self.reshaped = False
        self.ended_by = None


def money(value: Any) -> Decimal | None:
    """A decimal string as it fits the columns (9 places); None for what is no amount."""
    if value is None:
        return None
    try:
        amount = Decimal(str(value))
        return amount.quantize(_CENT) if amount.is_finite() else None
    except InvalidOperation:
        return None
