"""Every event kind with its fields: one frozen body per kind, named as the contract names it.

Optional fields are left out when they have no value; fields named in `nullable` are written as null, because there
null says *unknown*.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from agents.bodies import JSON, Body, Unknown, event, registered
from agents.kinds_forked import RunForked, RunReplayed
from agents.kinds_judged import FuseRaised, HintInjected, VerdictIssued

__all__ = [
    "JSON",
    "KINDS",
    "Body",
    "FuseRaised",
    "HintInjected",
    "RunForked",
    "RunReplayed",
    "Unknown",
    "VerdictIssued",
]


# --- the run ---------------------------------------------------------------------------------------------------


@event("run.queued")
class RunQueued(Body):
    agent: str
    task: str
    labels: JSON
    altered: JSON | None = None


@event("run.started")
class RunStarted(Body):
    """`prompt` and `tools` are artifact references `{sha256, bytes}`; `limits` maps name to `{value, source}`.

    `read_only` names the tools that say of themselves that they change nothing.
    """

    worker: str
    host: str
    epoch: int
    model: JSON
    policy: str
    limits: JSON
    prompt: JSON
    tools: JSON
    workspace: str | None = None
    branch: str | None = None
    note: str | None = None
    read_only: list[str] | None = None


@event("memory.injected")
class MemoryInjected(Body):
    notes: list[str]


@event("server.connected")
class ServerConnected(Body):
    """A server of tools answers; `tools` as it names them."""

    server: str
    tools: list[str]


@event("server.lost")
class ServerLost(Body):
    server: str
    why: str


@event("run.waiting")
class RunWaiting(Body):
    """`reason` is the contract's `for`: question, approval, pause or quota. `name`, `args`: what is to be approved."""

    reason: str
    call: str | None = None
    until: str | None = None
    text: str | None = None
    choices: list[str] | None = None
    name: str | None = None
    args: str | None = None


@event("run.continued")
class RunContinued(Body):
    """After an approval: the decision (approve, edit, deny) and whose; `problem` says why it could not be taken."""

    decision: str | None = None
    by: str | None = None
    reason: str | None = None
    args: str | None = None
    problem: str | None = None
    altered: JSON | None = None


@event("run.stopping")
class RunStopping(Body):
    command: str | None
    by: str


@event("run.requeued")
class RunRequeued(Body):
    epoch: int
    why: str


@event("run.completed")
class RunCompleted(Body):
    final: str


@event("run.exhausted")
class RunExhausted(Body):
    limit: str
    final: str
    final_by: str


@event("run.interrupted")
class RunInterrupted(Body):
    """`stopped`: `{sockets, processes, children, abandoned, seconds, verified, why?}`."""

    command: str | None
    by: str
    reason: str
    stopped: JSON


@event("run.tripped")
class RunTripped(Body):
    """`verdict`: the fields of the `verdict.issued` that ended it. `final`: the model's last word, if it had one."""

    step: int
    verdict: JSON | None = None
    fuse: str | None = None
    rule: str | None = None
    final: str | None = None


@event("run.failed")
class RunFailedEvent(Body):
    """`error`: `{reason, message, status?, evidence?}`."""

    error: JSON


@event("run.lost")
class RunLost(Body):
    """`why` is the exit reason if it is not `worker_lost`: `attempts`."""

    worker: str | None
    last_seen: str | None
    why: str | None = None


# --- turns and calls -------------------------------------------------------------------------------------------


@event("turn.started")
class TurnStarted(Body):
    pass


@event("turn.completed")
class TurnCompleted(Body):
    pass


@event("call.started")
class CallStarted(Body):
    operation: str
    name: str
    model: str | None = None
    provider: str | None = None
    credential: str | None = None
    args: str | None = None
    wire_id: str | None = None
    concurrency: str | None = None
    group: int | None = None


@event("call.retried", nullable=("cost_usd",))
class CallRetried(Body):
    """`action`: retry, rotate, fall_back, compress, repair, lower_output; cooldown before a first attempt (then 0).

    `changes` says what was put right.
    """

    error: JSON
    action: str
    wait_s: float
    until: str
    attempt: int
    usage: JSON | None = None
    cost_usd: str | None = None
    cost_source: str | None = None
    price_version: str | None = None
    usage_notes: list[str] | None = None
    changes: list[str] | None = None


@event("call.completed", nullable=("cost_usd",))
class CallCompleted(Body):
    """`heard`: what the guard read out of an answer in whose place the model got a stub."""

    operation: str
    name: str
    status: str
    args: str | None = None
    text: str | None = None
    parts: list[Any] | None = None
    opaque: JSON | None = None
    origin: str | None = None
    tool_calls: list[JSON] | None = None
    result: str | None = None
    truncated: bool | None = None
    artifact: JSON | None = None
    usage: JSON | None = None
    cost_usd: str | None = None
    cost_source: str | None = None
    price_version: str | None = None
    usage_notes: list[str] | None = None
    finish_reason: str | None = None
    ttft_ms: float | None = None
    duration_ms: float | None = None
    altered: JSON | None = None
    heard: JSON | None = None


@event("call.late")
class CallLate(Body):
    call: str
    status: str


@event("batch.planned")
class BatchPlanned(Body):
    groups: list[list[str]]
    why: str


@event("context.compressed")
class ContextCompressed(Body):
    """The messages of `from_seq..to_seq` became the summary; or, where `stubs` is set, results in them were shortened.

    `stubs`: `{call: {keep, sha256?, bytes?}}`, the characters of each result that stay and the artifact of the whole.
    """

    before_tokens: int
    after_tokens: int
    summary: str
    from_seq: int
    to_seq: int
    stubs: JSON | None = None


@event("credential.rotated", nullable=("cooldown_s",))
class CredentialRotated(Body):
    """`to` None: no other key may be used now. `cooldown_s` None: nobody said for how long; the pool knows."""

    from_: str
    to: str | None
    reason: str
    cooldown_s: float | None


@event("model.fell_back")
class ModelFellBack(Body):
    from_: str
    to: str
    reason: str


# --- commands, notes, judgement, children, edits -----------------------------------------------------------------


@event("command.received")
class CommandReceived(Body):
    command: str
    command_kind: str
    by: str
    reason: str | None = None


@event("steer.injected")
class SteerInjected(Body):
    command: str
    note: str
    by: str
    after_call: str | None = None
    altered: JSON | None = None


@event("steer.refused")
class SteerRefused(Body):
    command: str
    code: str


@event("child.started")
class ChildStarted(Body):
    run: str


@event("child.finished")
class ChildFinished(Body):
    run: str
    status: str


@event("edit.recorded")
class EditRecorded(Body):
    """`loose` and `code`: checksums that pass over blanks at line ends, and over remarks too."""

    path: str
    before_sha256: str | None
    sha256: str | None
    bytes: int
    state: str
    artifact: JSON | None = None
    loose: str | None = None
    code: str | None = None


FINAL_KINDS = frozenset({"run.completed", "run.exhausted", "run.interrupted", "run.tripped", "run.failed", "run.lost"})


def _required_names(cls: type[Body]) -> frozenset[str]:
    return frozenset(f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING)


REQUIRED = {kind: _required_names(cls) for kind, cls in registered().items()}
# Written even when None.
ALWAYS = {kind: REQUIRED[kind] | cls._nullable for kind, cls in registered().items()}
KINDS: Mapping[str, type[Body]] = registered()
