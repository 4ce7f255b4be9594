"""What a run is made of: its status words, its limits and everything frozen into it when it starts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    STOPPING = "stopping"
    COMPLETED = "completed"
    EXHAUSTED = "exhausted"
    INTERRUPTED = "interrupted"
    TRIPPED = "tripped"
    FAILED = "failed"
    LOST = "lost"

    @property
    def final(self) -> bool:
        return self in FINAL


FINAL = frozenset({Status.COMPLETED, Status.EXHAUSTED, Status.INTERRUPTED, Status.TRIPPED, Status.FAILED, Status.LOST})
ACTIVE = frozenset(Status) - FINAL

DEFAULT_MAX_TURNS = 90
DEFAULT_PROMPT = (
    "You are a careful engineer who works in one directory with the tools you are given. Read before you change, "
    "change little, and check what you changed. Paths are relative to the workspace. When something cannot be decided "
    "without a person, ask with `clarify`. A line [User note: ...] comes from the operator on watch: follow it. "
    "When the work is done, answer with a short account of what you did and what you found."
)
MAX_CHILDREN_PER_TREE = 32
MAX_DEPTH = 2


class ConcurrencyClass(StrEnum):
    """How a tool may overlap with its neighbours in one batch."""

    NEVER = "never"
    SAFE = "safe"
    PATH = "path"
    UNKNOWN = "unknown"


class CallStatus(StrEnum):
    OK = "ok"
    ERROR = "error"
    BLOCKED = "blocked"
    STUB = "stub"
    DENIED = "denied"
    DRY_RUN = "dry_run"
    NOT_STARTED = "not_started"
    TIMEOUT = "timeout"
    STOPPED = "stopped"
    EFFECT_UNKNOWN = "effect_unknown"


class Resume(StrEnum):
    """What becomes of a call that had started and not finished when its worker died."""

    RERUN = "rerun"
    ADOPT = "adopt"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One fuse value and where it came from (`default`, `environment`, `agent`, `policy`, `request`, `raised`)."""

    value: Decimal
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Fuses of one run; None means no limit. Seconds are wall clock from the first start; cost is US dollars."""

    max_turns: Limit | None = None
    max_steps: Limit | None = None
    max_tokens: Limit | None = None
    max_cost: Limit | None = None
    max_seconds: Limit | None = None

    def turns(self) -> int:
        return int(self.max_turns.value) if self.max_turns else DEFAULT_MAX_TURNS


LIMIT_NAMES = ("max_turns", "max_steps", "max_tokens", "max_cost", "max_seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """Where the model lives. `base_url` is what precedes `/chat/completions`; `credential` is a label, never a key."""

    model: str
    base_url: str
    provider: str = "openai"
    credential: str | None = None
    max_output_tokens: int | None = None
    # Tokens of a request and its answer; None: as the catalog has it, or as the first overflow shows.
    window: int | None = None
    # It gets no key, not even one that fits its address.
    keyless: bool = False


class WorkspaceKind(StrEnum):
    FRESH = "fresh"
    DIRECTORY = "directory"
    WORKTREE = "worktree"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceSpec:
    """Where the tools work. `path` is absolute; `source` the repository that a worktree belongs to, `start` the commit
    that its branch begins at (None: HEAD)."""

    path: str
    kind: WorkspaceKind
    branch: str | None = None
    source: str | None = None
    start: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """Everything frozen into a run. `path` lists the ancestors from the root down to the run itself."""

    id: str
    root: str
    parent: str | None
    path: tuple[str, ...]
    agent: str
    task: str
    prompt: str
    tools: tuple[str, ...]
    model: ModelSpec
    limits: Limits
    # Notes that earlier runs and people left for this agent, as they stood at the start.
    memory: tuple[str, ...] = ()
    # Servers whose tools the agent uses beside its own, each as `agents.tools.mcp.config` reads it.
    mcp_servers: tuple[Mapping[str, Any], ...] = ()
    # Models to go on with, in order, when the run's own gives out.
    fallbacks: tuple[ModelSpec, ...] = ()
    policy: str = "default"
    # None for a policy that belongs to this run alone, and for runs from before versions were kept.
    policy_version: int | None = None
    # The policy's data as it stood at the start: `{fuses?, ladder?, rules?, ...}`.
    policy_body: Mapping[str, Any] = field(default_factory=dict)
    workspace: WorkspaceSpec | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False
    # `{run, from_turn}` of the run whose recorded answers this one gets; None for a run that asks a model.
    recorded: Mapping[str, Any] | None = None

    @property
    def depth(self) -> int:
        """0 for a root run."""
        return len(self.path) - 1
