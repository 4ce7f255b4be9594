"""What one run's log says that a person should know: a fold without I/O, led on from where it stood.

It says `Found` when a rule speaks and `Over` when its condition has passed; both are told again after a rebuild, so
whoever takes them lets a key be opened once.
"""

import hashlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from agents import kinds
from agents.events import Event
from agents.kinds import FINAL_KINDS
from agents.spec import CallStatus

# The window of tool calls in which the same one may come so often, and how many others end a series.
WINDOW = 24
REPEATS = 5
CALM = 12
_NEAR = frozenset({"max_cost", "max_tokens", "max_model_calls", "warn_model_calls", "max_seconds"})
# Limits that many runs share for a day (UTC).
_OF_DAY = frozenset(f"{whose}_max_{what}_per_day" for whose in ("agent", "fleet") for what in ("cost", "tokens"))
# What a provider is to blame for; a request that it cannot read is our own fault.
FAULTS = frozenset(
    {"rate_limit", "overloaded", "server_error", "timeout", "connection", "malformed_response", "auth", "billing"}
)
KINDS = frozenset(
    {
        "run.replayed",
        "run.started",
        "call.started",
        "call.retried",
        "call.completed",
        "verdict.issued",
        "fuse.raised",
    }
    | FINAL_KINDS
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A rule spoke. `facts` are names and values to show; `evidence` are `seq`s. `thing`: what it is about, if that is
    more than this run."""

    rule: str
    at: datetime
    title: str
    summary: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    evidence: tuple[int, ...] = ()
    thing: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """A lasting rule's condition has passed. `final`: the run has ended."""

    rule: str
    at: datetime
    final: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt at a provider, for the rules about the fleet. `failed`: by a fault of the provider; `provider` is ""
    where only the cost counts."""

    at: datetime
    provider: str
    failed: bool
    reason: str = ""
    cost_usd: float = 0.0


Said = Found | Over | Attempt


@dataclass(slots=True, kw_only=True)
class Watched:
    """What must be remembered of a run between its events. `recent`: (fingerprint, seq, blocked) of its tool calls.

    `recorded`: it plays a run again from its log. Nothing happens in it that was not told and paid for then, so no
    rule speaks: to try a policy on last night must wake nobody.
    """

    seq: int = 0
    recorded: bool = False
    provider: str = "unknown"
    open: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    recent: deque[tuple[str, int, bool]] = field(default_factory=lambda: deque(maxlen=WINDOW))
    calm: int = 0
    speaking: set[str] = field(default_factory=set)
    answers: dict[str, str] = field(default_factory=dict)
    failed_at: str = ""

    def take(self, event: Event) -> Iterator[Said]:
        self.seq = event.seq
        if self.recorded:
            return
        match event.data:
            case kinds.RunReplayed() as body:
                self.recorded = body.mode == "recorded"
            case kinds.RunStarted() as body:
                self.provider = str(body.model.get("provider") or "unknown")
            case kinds.CallStarted() as body:
                self.open[event.call or ""] = (body.name, body.args or "", body.provider or self.provider)
            case kinds.CallRetried() as body:
                yield self._attempt(event, str(body.error.get("reason") or "unknown"), body.cost_usd)
            case kinds.CallCompleted() as body:
                yield from self._completed(event, body)
            case kinds.VerdictIssued() as body:
                yield from self._near(event, body)
            case kinds.FuseRaised():
                if "budget" in self.speaking:
                    self.speaking.discard("budget")
                    yield Over(rule="budget", at=event.at)
            case body if event.kind in FINAL_KINDS:
                yield from self._ended(event, body)

    def _attempt(self, event: Event, reason: str, cost: str | None) -> Attempt:
        provider = self.open.get(event.call or "", ("", "", self.provider))[2]
        return Attempt(at=event.at, provider=provider, failed=reason in FAULTS, reason=reason, cost_usd=_dollars(cost))

    def _completed(self, event: Event, body: kinds.CallCompleted) -> Iterator[Said]:
        if body.operation == "chat":
            attempt = self._attempt(event, "", body.cost_usd)
            self.open.pop(event.call or "", None)
            if body.status == CallStatus.ERROR.value:
                # Why its last attempt failed comes with the end of the run.
                self.failed_at = attempt.provider
            # What did not come to an answer costs all the same, but says nothing of the provider.
            yield attempt if body.status == CallStatus.OK.value else replace(attempt, provider="")
            return
        name, args, _ = self.open.pop(event.call or "", (body.name, "", ""))
        if body.operation == "execute_tool":
            yield from self._tool_call(event, body, name, body.args or args)

    def _tool_call(self, event: Event, body: kinds.CallCompleted, name: str, args: str) -> Iterator[Said]:
        blocked = body.status in (CallStatus.BLOCKED.value, CallStatus.STUB.value)
        call = _digest(f"{name}\0{args}")
        answer = _digest(body.result or "")
        # A call whose answer changes is watching something; one that is blocked has no answer of its own.
        if not blocked and self.answers.get(call, answer) != answer:
            self.recent = deque((entry for entry in self.recent if entry[0] != call), maxlen=WINDOW)
        if not blocked:
            if len(self.answers) > 4 * WINDOW:
                self.answers.clear()
            self.answers[call] = answer
        self.recent.append((call, event.seq, blocked))
        same = [entry for entry in self.recent if entry[0] == call]
        if len(same) >= REPEATS:
            self.calm = 0
            self.speaking.add("repeats")
            yield _repeated(event, name, args, same)
        elif "repeats" in self.speaking:
            self.calm += 1
            if self.calm >= CALM:
                self.speaking.discard("repeats")
                yield Over(rule="repeats", at=event.at)

    def _near(self, event: Event, body: kinds.VerdictIssued) -> Iterator[Said]:
        if body.detector != "fuses" or body.rung != "observe" or body.rule not in _NEAR:
            return
        self.speaking.add("budget")
        yield Found(
            rule="budget",
            at=event.at,
            title=body.explanation[:1].upper() + body.explanation[1:],
            summary="The run goes on. At the limit it is stopped before the call that would pass it.",
            facts=(("limit", body.rule), ("step", str(body.step))),
            evidence=(event.seq,),
        )

    def _ended(self, event: Event, body: kinds.Body) -> Iterator[Said]:
        for rule in sorted(self.speaking | {"waiting"}):
            yield Over(rule=rule, at=event.at, final=True)
        match body:
            case kinds.RunTripped() if body.fuse in _OF_DAY:
                # Every run of that day stops at it: one incident for all of them.
                yield _day_spent(event, body, body.fuse)
            case kinds.RunTripped():
                yield _tripped(event, body)
            case kinds.RunLost():
                yield Found(
                    rule="lost",
                    at=event.at,
                    title="Lost: its worker died and nobody could go on"
                    if body.why != "attempts"
                    else "Lost: it has used up its attempts",
                    facts=_facts(("worker", body.worker), ("last sign", body.last_seen)),
                    evidence=(event.seq,),
                )
            case kinds.RunFailedEvent():
                reason = str(body.error.get("reason") or "unknown")
                if self.failed_at:
                    yield Attempt(at=event.at, provider=self.failed_at, failed=reason in FAULTS, reason=reason)
                yield Found(
                    rule="failed",
                    at=event.at,
                    title=f"Failed: {reason.replace('_', ' ')}",
                    summary=str(body.error.get("message") or "")[:1_000],
                    facts=_facts(("reason", reason), ("status", body.error.get("status"))),
                    evidence=(event.seq,),
                )
            case kinds.RunInterrupted() if body.stopped.get("verified") is False:
                yield _unverified(event, body)


def _repeated(event: Event, name: str, args: str, same: list[tuple[str, int, bool]]) -> Found:
    blocked = sum(entry[2] for entry in same)
    how = f"{len(same)} times among its last {WINDOW} calls"
    return Found(
        rule="repeats",
        at=event.at,
        title=f"Repeats {name}: {how}" + (f", {blocked} of them blocked" if blocked else ""),
        summary="The answer is the same each time, and the run does not stop asking.",
        facts=_facts(("call", f"{name} {args}"[:300]), ("times", len(same)), ("blocked", blocked)),
        evidence=tuple(entry[1] for entry in same)[-10:],
    )


def _tripped(event: Event, body: kinds.RunTripped) -> Found:
    verdict: dict[str, Any] = dict(body.verdict or {})
    what = f"fuse {body.fuse}" if body.fuse else f"rule {body.rule or 'unknown'}"
    evidence = [seq for seq in verdict.get("evidence") or () if isinstance(seq, int)]
    return Found(
        rule="tripped",
        at=event.at,
        title=f"Tripped at step {body.step}: {what}",
        summary=str(verdict.get("explanation") or "")[:1_000],
        facts=_facts(
            ("stopped by", what),
            ("step", body.step),
            ("times", verdict.get("count")),
            ("wasted tokens", verdict.get("wasted_tokens")),
            ("wasted dollars", verdict.get("wasted_usd")),
            ("advice", verdict.get("advice")),
        ),
        evidence=(*evidence[-10:], event.seq),
    )


def _day_spent(event: Event, body: kinds.RunTripped, fuse: str) -> Found:
    whose = fuse.partition("_")[0]
    day = f"{event.at.astimezone(UTC):%Y-%m-%d}"
    who = "The agent has" if whose == "agent" else "The fleet has"
    what = "money" if "cost" in fuse else "tokens"
    return Found(
        rule="day_limit",
        at=event.at,
        title=f"{who} spent its {what} of {day}",
        summary=str((body.verdict or {}).get("explanation") or "")[:1_000],
        facts=_facts(("limit", fuse.partition("_")[2]), ("of", whose), ("day", day)),
        evidence=(event.seq,),
        thing=f"{whose}:{day}",
    )


def _unverified(event: Event, body: kinds.RunInterrupted) -> Found:
    stopped = body.stopped
    return Found(
        rule="unverified",
        at=event.at,
        title="Stopped, but nobody has seen that it is gone",
        summary=str(stopped.get("why") or "")[:1_000],
        facts=_facts(
            ("asked by", body.by),
            ("processes", stopped.get("processes")),
            ("sockets", stopped.get("sockets")),
            ("abandoned calls", len(stopped.get("abandoned") or ()) or None),
            ("seconds", stopped.get("seconds")),
        ),
        evidence=(event.seq,),
    )


def _facts(*pairs: tuple[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)[:1_000]) for name, value in pairs if value not in (None, ""))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _dollars(text: str | None) -> float:
    try:
        amount = float(text) if text is not None else 0.0
    except ValueError:
        return 0.0
    return amount if 0.0 <= amount < 1e9 else 0.0
