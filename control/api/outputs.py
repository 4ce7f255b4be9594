"""The shapes that the API gives, for its own description; answers are written as they are, tests hold them to these."""

from typing import Any, Literal

from ninja import Schema
from pydantic import ConfigDict


class Out(Schema):
    model_config = ConfigDict(extra="allow")


class ErrorBody(Out):
    code: str
    message: str
    detail: dict[str, Any]


class ErrorOut(Out):
    error: ErrorBody


class StartedOut(Out):
    id: str
    status: str
    url: str


class RunOut(Out):
    """One run as a row. Money is a decimal string; null is unknown."""

    id: str
    root: str
    parent: str | None
    project: str
    owner: str
    agent: str
    task: str
    status: str
    exit_reason: str | None
    source: str
    priority: int
    created_at: str
    started_at: str | None
    finished_at: str | None
    turns: int
    steps: int
    input_tokens: int
    output_tokens: int
    cost_usd: str | None
    last_activity_at: str | None
    activity: str | None
    worker: str | None
    host: str | None
    epoch: int
    last_seq: int
    labels: dict[str, Any]
    policy: str
    can: list[str]


class RunsOut(Out):
    runs: list[RunOut]
    next: str | None


class RunDetailOut(RunOut):
    """The row plus fuses with used, limit and source, open commands, the tree of sub-agents, and the final answer."""

    final: str | None


class EventOut(Out):
    run: str
    root: str
    seq: int
    at: str
    ts: str
    kind: str
    turn: int | None
    call: str | None
    data: dict[str, Any]
    v: int


class EventsOut(Out):
    events: list[EventOut]
    last_seq: int
    epoch: int


class IssuedOut(Out):
    """`command` is null when there was nothing to do; `reason` says why `changed` is false."""

    command: str | None
    changed: bool
    reason: str | None = None


class ForkedOut(IssuedOut):
    """`run` is the new one."""

    run: str
    url: str


class ReceiptOut(Out):
    run: str
    state: str
    code: str | None
    turn: int | None
    delivered_at: str | None
    stopping_at: str | None
    done_at: str | None


class CommandOut(Out):
    id: str
    kind: str
    run: str
    scope: Literal["run", "subtree"]
    by: str
    reason: str | None
    args: dict[str, Any]
    state: str
    code: str | None
    requested_at: str
    delivered_at: str | None
    stopping_at: str | None
    done_at: str | None
    runs: list[ReceiptOut]
    done: int
    of: int


class BulkDryOut(Out):
    dry_run: Literal[True]
    eligible: int
    not_eligible: list[dict[str, Any]]
    sample: list[dict[str, Any]]


class BulkStartedOut(Out):
    bulk: str | None
    changed: bool
    reason: str | None
    eligible: int
    not_eligible: list[dict[str, Any]]
    block: str | None


class BulkOut(Out):
    """`total` runs are reached so far, `left` have not been asked yet; `seconds` since the request, to the last end."""

    id: str
    kind: str
    by: str
    reason: str | None
    requested_at: str
    asked_at: str | None
    cancelled_at: str | None
    eligible: int
    total: int
    left: int
    counts: dict[str, int]
    failures: list[dict[str, Any]]
    failed: int
    finished: bool
    seconds: float


class BulkLineOut(Out):
    run: str
    command: str
    status: str
    state: str
    code: str | None
    why: str | None
    turn: int | None
    seconds: float | None
    verified: bool | None


class BulkRunsOut(Out):
    runs: list[BulkLineOut]
    next: str | None


class BlockOut(Out):
    id: str
    filter: dict[str, Any]
    reason: str
    by: str
    created_at: str
    lifted_at: str | None


class BlocksOut(Out):
    blocks: list[BlockOut]


class ChangedOut(Out):
    changed: bool
    reason: str | None = None


class AgentOut(Out):
    name: str
    version: int
    prompt: str
    tools: list[str]
    model: str
    base_url: str
    credential: str
    fallbacks: list[dict[str, str]]
    policy: str
    limits: dict[str, Any]
    delegates_to: list[str]
    mcp_servers: list[dict[str, Any]]
    created_at: str
    created_by: str


class AgentsOut(Out):
    agents: list[AgentOut]


class NoteOut(Out):
    """`author` made the note, `changed_by` this version of it: a person, a token, or `run:<id>`."""

    id: str
    version: int
    text: str
    disabled: bool
    author: str
    created_at: str
    changed_by: str
    changed_at: str


class NotesOut(Out):
    agent: str
    notes: list[NoteOut]


class PolicyOut(Out):
    name: str
    version: int
    body: dict[str, Any]
    reason: str
    created_at: str
    created_by: str


class PoliciesOut(Out):
    policies: list[PolicyOut]
