"""The error tree of the loop; every error carries a kind and says what to do next.

AgentError
├── ConfigError       the request itself cannot work (bad base URL, unknown tool, missing workspace)
├── ModelError        one attempt at the model failed; carries reason, status and what the wire said
├── ToolError         a tool could not do what it was asked; its text is the result that the model reads
├── SpawnRefused      a sub-agent may not start (parent stopping, too many, too deep)
├── Fenced            this writer no longer holds the run; nothing it says is accepted
└── RunFailed         an error that no recovery covers ends the run `failed`

LoopIncident          beside the tree: a fuse or the guard's last rung ends the run `tripped`, past every handler
"""

from dataclasses import dataclass, field
from typing import Any

from agents.messages import Usage
from agents.verdicts import Verdict


class AgentError(Exception):
    """Base of all errors here. `kind` is a stable code, `message` a sentence with the next step."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class ConfigError(AgentError):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class WireEvidence:
    """What one failed attempt left on the wire: status None when no response came; `transport` names the exception."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""
    transport: str | None = None
    provider: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifiedError:
    """What a failed attempt was and what it permits; the flags are permissions, not an order of work.

    `retry_after_s` is the wait that the provider named, `evidence` a sentence for people, `said` the provider's own
    sentence, empty when there was none.
    """

    reason: str
    retryable: bool
    should_compress: bool
    should_rotate_credential: bool
    should_fallback_model: bool
    retry_after_s: float | None
    evidence: str
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What one attempt has cost, whatever came of it.

    `cost_source` is `reported` (by the provider), `price_table`, `estimated` (from the text, since nobody counted),
    `none` (it never reached the provider, or was turned down: a known zero) or `unknown` (then `cost_usd` is None).
    `estimated` tells that the tokens are an estimate; `notes` what was odd about the provider's count.
    """

    usage: Usage | None
    cost_usd: str | None
    cost_source: str
    price_version: str | None = None
    estimated: bool = False
    notes: tuple[str, ...] = ()


def spent_by(error: BaseException) -> Spent | None:
    """What an attempt had cost that ended with this error, also with a CancelledError; None if nobody told."""
    found = getattr(error, "spent", None)
    return found if isinstance(found, Spent) else None


class ModelError(AgentError):
    """One failed attempt. `kind` is a reason (`rate_limit`, `timeout`, ...); `fault` is the judgement behind it."""

    def __init__(
        self,
        kind: str,
        message: str,
        wire: WireEvidence | None = None,
        usage: Any = None,
        fault: ClassifiedError | None = None,
        spent: Spent | None = None,
    ) -> None:
        super().__init__(kind, message)
        self.wire = wire or WireEvidence()
        self.usage = usage if spent is None else spent.usage
        self.fault = fault
        self.spent = spent
        # The words (`block`, `copies`) that the model said again and again, if that was the failure.
        self.chant: Any = None


class ToolError(AgentError):
    def __init__(self, message: str, kind: str = "error") -> None:
        super().__init__(kind, message)


class SpawnRefused(AgentError):
    pass


class Fenced(AgentError):
    def __init__(self, run: str, epoch: int) -> None:
        super().__init__("fenced", f"run {run} is no longer held at epoch {epoch}; another owner writes its log")
        self.run = run
        self.epoch = epoch


class RunFailed(AgentError):
    pass


class LoopIncident(BaseException):
    """The run trips. `verdict` says on what evidence; `fuse` tells a hard limit from a rule of the guard.

    No `Exception`: what handles failures in the loop, in a tool or around a model call cannot swallow it. The loop
    turns it into the end of the run in one place.
    """

    def __init__(self, verdict: Verdict, *, fuse: bool) -> None:
        super().__init__(verdict.explanation)
        self.verdict = verdict
        self.fuse = fuse

    @property
    def kind(self) -> str:
        """The run's exit reason: `fuse:NAME` or `rule:NAME`."""
        return f"{'fuse' if self.fuse else 'rule'}:{self.verdict.rule}"
