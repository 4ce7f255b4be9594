"""What one run's events add to the running totals of `/metrics`: a fold without I/O, led on from where it stood."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agents import kinds
from agents.events import Event
from agents.kinds import FINAL_KINDS
from agents.spec import CallStatus
from control.runs.families import FAMILIES

NONE = "none"
# Family, labels in the order of the family, part.
Key = tuple[str, tuple[str, ...], str]
_ANSWERED = frozenset({CallStatus.OK.value, CallStatus.ERROR.value, CallStatus.TIMEOUT.value})


class Sums:
    """Increments, by family, labels and part."""

    def __init__(self) -> None:
        self.parts: dict[Key, float] = defaultdict(float)

    def add(self, family: str, *labels: object, by: float = 1.0) -> None:
        if by:
            self.parts[family, tuple(str(label)[:80] for label in labels), ""] += by

    def observe(self, family: str, seconds: float, *labels: object) -> None:
        """One value of a histogram, in its bucket and in its sum."""
        seconds = max(0.0, seconds)
        bounds = FAMILIES[family].bounds
        bucket = next((f"{bound:g}" for bound in bounds if seconds <= bound), "+Inf")
        names = tuple(str(label)[:80] for label in labels)
        self.parts[family, names, bucket] += 1.0
        self.parts[family, names, "sum"] += seconds


@dataclass(slots=True, kw_only=True)
class _Open:
    """A call that has begun; model and credential are those in use now."""

    at: datetime
    operation: str
    name: str
    model: str = NONE
    provider: str = NONE
    credential: str = NONE


@dataclass(slots=True, kw_only=True)
class Counted:
    """What must be remembered of a run between its events."""

    seq: int = 0
    queued_at: datetime | None = None
    turns: dict[int, datetime] = field(default_factory=dict)
    open: dict[str, _Open] = field(default_factory=dict)
    model: str = NONE
    provider: str = NONE
    # Its answers come from a log: what they cost was counted with the run that paid for them.
    recorded: bool = False
    # Whose model call failed for good; the reason comes with the end of the run.
    failed_at: str | None = None

    def take(self, event: Event, sums: Sums, stop_seconds: float | None = None) -> None:
        """Count one event. `stop_seconds`: request to end, where the event ends an interrupted run."""
        self.seq = event.seq
        match event.data:
            case kinds.RunQueued() | kinds.RunRequeued():
                self.queued_at = event.ts
            case kinds.RunReplayed() as body:
                self.recorded = body.mode == "recorded"
            case kinds.RunStarted() as body:
                self._started(event, body, sums)
            case kinds.TurnStarted():
                self.turns[event.turn or 0] = event.at
            case kinds.TurnCompleted():
                began = self.turns.pop(event.turn or 0, None)
                if began is not None:
                    sums.observe("turn_seconds", (event.at - began).total_seconds())
            case kinds.CallStarted() as body:
                self._call_started(event, body)
            case kinds.CallRetried() as body:
                self._retried(event, body, sums)
            case kinds.CallCompleted() as body:
                self._completed(event, body, sums)
            case kinds.CredentialRotated() as body:
                self._of(event).credential = body.to or NONE
            case kinds.ModelFellBack() as body:
                self._of(event).model = body.to
            case kinds.VerdictIssued() as body:
                sums.add("guard_verdicts_total", body.rung, body.rule, "true" if body.shadow else "false")
            case body if event.kind in FINAL_KINDS:
                self._ended(event, body, sums, stop_seconds)

    def _started(self, event: Event, body: kinds.RunStarted, sums: Sums) -> None:
        if self.queued_at is not None:
            sums.observe("queue_seconds", (event.ts - self.queued_at).total_seconds())
            self.queued_at = None
        self.model = str(body.model.get("model") or NONE)
        self.provider = str(body.model.get("provider") or NONE)

    def _call_started(self, event: Event, body: kinds.CallStarted) -> None:
        self.open[event.call or ""] = _Open(
            at=event.at,
            operation=body.operation,
            name=body.name,
            model=body.model or self.model,
            provider=body.provider or self.provider,
            credential=body.credential or NONE,
        )

    def _of(self, event: Event) -> _Open:
        """The call of this event; for one that the log does not open, a stand-in."""
        found = self.open.get(event.call or "")
        return found or _Open(at=event.at, operation="", name="", model=self.model, provider=self.provider)

    def _retried(self, event: Event, body: kinds.CallRetried, sums: Sums) -> None:
        call = self._of(event)
        if not self.recorded:
            sums.add("provider_errors_total", call.provider, body.error.get("reason") or "unknown")
        self._spend(call, body, sums)

    def _completed(self, event: Event, body: kinds.CallCompleted, sums: Sums) -> None:
        call = self.open.pop(event.call or "", None)
        took = body.duration_ms / 1000 if body.duration_ms is not None else None
        if call is not None and took is None:
            took = (event.at - call.at).total_seconds()
        if body.operation == "chat":
            call = call or self._of(event)
            sums.add("model_calls_total", call.model, body.status)
            self.failed_at = call.provider if body.status == CallStatus.ERROR.value else None
            if took is not None and body.status in _ANSWERED:
                sums.observe("model_call_seconds", took, call.model)
            if body.ttft_ms is not None:
                sums.observe("model_first_token_seconds", body.ttft_ms / 1000, call.model)
            self._spend(call, body, sums)
            return
        # What never started may have any name that a model can think of.
        name = call.name if call is not None else "not_started"
        sums.add("tool_calls_total", name, body.status)
        if call is not None and took is not None:
            sums.observe("tool_seconds", took, name)

    def _spend(self, call: _Open, body: kinds.CallRetried | kinds.CallCompleted, sums: Sums) -> None:
        if not self.recorded:
            _spend(call, body.usage, body.cost_usd, body.cost_source, sums)

    def _ended(self, event: Event, body: kinds.Body, sums: Sums, stop_seconds: float | None) -> None:
        if not self.recorded:
            sums.add("runs_ended_total", event.kind.removeprefix("run."))
        if isinstance(body, kinds.RunInterrupted):
            sums.add("stops_total", "true" if body.stopped.get("verified") else "false")
            if stop_seconds is not None:
                sums.observe("stop_seconds", stop_seconds)
        if isinstance(body, kinds.RunFailedEvent):
            reason = body.error.get("reason") or "unknown"
            sums.add("run_failures_total", reason)
            if self.failed_at is not None and not self.recorded:
                sums.add("provider_errors_total", self.failed_at, reason)
        self.open.clear()
        self.turns.clear()


def _spend(call: _Open, usage: Any, cost_usd: str | None, cost_source: str | None, sums: Sums) -> None:
    """Count one attempt; a cost that is unknown is counted as such, never as nothing."""
    if isinstance(usage, Mapping):
        for direction in ("input", "cache_read", "cache_write", "output"):
            value = usage.get(direction)
            if isinstance(value, int) and value > 0:
                sums.add("tokens_total", call.model, call.credential, direction, by=value)
    try:
        cost = float(cost_usd) if cost_usd is not None else None
    except ValueError:
        cost = None
    if cost is not None and cost >= 0:
        sums.add("spend_usd_total", call.model, call.credential, by=cost)
    elif cost_source == "unknown" or (usage and cost_source != "none"):
        sums.add("unpriced_attempts_total", call.model, call.credential)
