"""What each kind of event does to the fold: one small function per kind, found by name."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agents import kinds
from agents.commands import CommandKind
from agents.kinds import Body
from agents.spec import CallStatus, Status
from control.runs import activity
from control.runs.fold import RUNGS, CallRow, Fold, ReceiptStep, VerdictRow, money

# Reasons of a failure that are exit reasons of their own; every other one is `error:REASON`.
_OWN_REASONS = frozenset({"attempts", "workspace_unreachable"})
_SETTLED_AT_ONCE = frozenset({CommandKind.FORK.value, CommandKind.LIFT.value, CommandKind.DRAIN.value})
_FAILED_CALLS = frozenset({CallStatus.ERROR.value, CallStatus.TIMEOUT.value})


@dataclass(slots=True)
class At:
    """Where and when one event stands. `ts` is database time, `at` the worker's."""

    seq: int
    turn: int | None
    call: str | None
    at: datetime
    ts: datetime


def apply(fold: Fold, kind: str, body: Body, at: At) -> None:
    """Take one event into the fold. Kinds without a meaning for the rows only move the cursor."""
    fold.row.last_seq = at.seq
    if kind == "call.late":
        assert isinstance(body, kinds.CallLate)
        fold.late.append((body.call, body.status[:16]))
        return
    fold.row.last_activity_at = at.ts
    step = _STEPS.get(kind)
    if step is not None and not isinstance(body, kinds.Unknown):
        step(fold, body, at)


# --- the run -------------------------------------------------------------------------------------------------------


def _queued(fold: Fold, body: kinds.RunQueued, at: At) -> None:
    _shape(fold, Status.QUEUED)


def _started(fold: Fold, body: kinds.RunStarted, at: At) -> None:
    if fold.row.started_at is None:
        fold.row.started_at = at.ts
    _shape(fold, Status.RUNNING)
    fold.row.activity = "starts"


def _waiting(fold: Fold, body: kinds.RunWaiting, at: At) -> None:
    _shape(fold, Status.WAITING)
    fold.row.waiting_for = body.reason[:12]
    fold.row.waiting_call = body.call
    fold.row.activity = activity.of_wait(body.reason, body.text, body.until)
    if body.reason == "pause":
        _settle(fold, CommandKind.PAUSE, at)


def _continued(fold: Fold, body: kinds.RunContinued, at: At) -> None:
    if fold.row.status == Status.WAITING.value:
        _shape(fold, Status.RUNNING)
    fold.row.activity = _busy(fold) or "goes on"
    _settle(fold, CommandKind.UNPAUSE, at)
    _settle(fold, CommandKind.ANSWER, at)


def _stopping(fold: Fold, body: kinds.RunStopping, at: At) -> None:
    _shape(fold, Status.STOPPING)
    fold.row.activity = "stops"
    if body.command:
        fold.receipts.append(ReceiptStep(command=body.command, state="stopping", ts=at.ts))


def _requeued(fold: Fold, body: kinds.RunRequeued, at: At) -> None:
    _shape(fold, Status.QUEUED)
    fold.row.activity = activity.short(f"queued again: {body.why}")


def _shape(fold: Fold, status: Status) -> None:
    fold.reshaped = True
    fold.row.status = status.value
    fold.row.waiting_for = None
    fold.row.waiting_call = None


def _busy(fold: Fold) -> str | None:
    """The latest call that is still open, and how many beside it."""
    if not fold.open:
        return None
    last = next(reversed(fold.open.values())).label
    others = len(fold.open) - 1
    return activity.short(last, activity.LONGEST - 12) + f" (+{others} more)" if others else last


# --- ends ------------------------------------------------------------------------------------------------------------


def _end(fold: Fold, status: Status, reason: str, text: str, at: At, final: str | None = None) -> None:
    _shape(fold, status)
    fold.row.exit_reason = activity.short(reason, 100)
    fold.row.finished_at = at.ts
    fold.row.activity = activity.short(text)
    if final is not None:
        fold.row.final = final.replace("\x00", "")
    # Whatever has no result by now never gets one: the page must not show it as running.
    left = CallStatus.STOPPED if status is Status.INTERRUPTED else CallStatus.EFFECT_UNKNOWN
    for call in fold.open.values():
        call.status = left.value
        call.completed_at = at.at
        fold.touched[call.id] = call
    fold.open = {}
    fold.pending = {}


def _completed(fold: Fold, body: kinds.RunCompleted, at: At) -> None:
    _end(fold, Status.COMPLETED, "answered", "answered", at, body.final)


def _exhausted(fold: Fold, body: kinds.RunExhausted, at: At) -> None:
    _end(fold, Status.EXHAUSTED, body.limit, f"out of {body.limit.removeprefix('max_')}", at, body.final)


def _interrupted(fold: Fold, body: kinds.RunInterrupted, at: At) -> None:
    reason = body.by if body.by in ("parent", "shutdown", "kill_switch") else "operator"
    _end(fold, Status.INTERRUPTED, reason, activity.of_stop(body.stopped), at)
    fold.row.stopped = dict(body.stopped)
    # From when the run heard of it; where the command is known, its request counts instead.
    seconds = body.stopped.get("seconds")
    fold.row.stop_seconds = float(seconds) if isinstance(seconds, int | float) else None
    fold.ended_by = body.command


def _tripped(fold: Fold, body: kinds.RunTripped, at: At) -> None:
    what = f"fuse:{body.fuse}" if body.fuse else f"rule:{body.rule}"
    named = f"fuse {body.fuse}" if body.fuse else f"rule {body.rule}"
    _end(fold, Status.TRIPPED, what, f"{named} at step {body.step}", at, body.final)


def _failed(fold: Fold, body: kinds.RunFailedEvent, at: At) -> None:
    reason = str(body.error.get("reason") or "unknown")
    told = f"{reason}: {body.error.get('message') or ''}"
    _end(fold, Status.FAILED, reason if reason in _OWN_REASONS else f"error:{reason}", told, at)


def _lost(fold: Fold, body: kinds.RunLost, at: At) -> None:
    _end(fold, Status.LOST, body.why or "worker_lost", "its worker is lost", at)


# --- turns and calls -------------------------------------------------------------------------------------------------


def _turn(fold: Fold, body: kinds.TurnStarted, at: At) -> None:
    fold.row.turns = max(fold.row.turns, at.turn or 0)


def _call_started(fold: Fold, body: kinds.CallStarted, at: At) -> None:
    if at.call is None:
        return
    # A call that a resumed run starts again moves to the end: it is the latest one.
    call = fold.open.pop(at.call, None)
    if call is None:
        label = activity.of_call(body.operation, body.name, body.model, body.args)
        call = _row(at, body.operation, body.name, label)
    fold.open[call.id] = call
    call.started_seq = at.seq
    call.started_at = at.at
    fold.touched[call.id] = call
    fold.row.activity = _busy(fold)


def _row(at: At, operation: str, name: str, label: str) -> CallRow:
    assert at.call is not None
    return CallRow(id=at.call, turn=at.turn, operation=operation[:20], name=name[:200].replace("\x00", ""), label=label)


def _call_retried(fold: Fold, body: kinds.CallRetried, at: At) -> None:
    fold.row.errors += 1
    call = fold.open.get(at.call or "")
    _spend(fold, call, body.usage, body.cost_usd, body.cost_source)
    if call is not None:
        call.attempts = min(call.attempts + 1, 32_000)
        fold.touched[call.id] = call
    fold.row.activity = activity.of_retry(body.error, body.wait_s)


def _call_completed(fold: Fold, body: kinds.CallCompleted, at: At) -> None:
    call = fold.open.pop(at.call, None) if at.call else None
    if call is None and at.call:
        # Never started: blocked, denied, cut off with its message, or stopped before its turn.
        call = _row(at, body.operation, body.name, activity.of_call(body.operation, body.name, None, body.args))
    _spend(fold, call, body.usage, body.cost_usd, body.cost_source)
    if body.status in _FAILED_CALLS:
        fold.row.errors += 1
    if body.operation == "chat" and body.tool_calls:
        # A step is counted when the model asks for it, so that used and limit of the fuse agree with the engine's.
        fold.row.steps += len(body.tool_calls)
    if call is not None:
        call.status = body.status[:16]
        call.completed_seq = at.seq
        call.completed_at = at.at
        call.cost_source = body.cost_source[:12] if body.cost_source else call.cost_source
        fold.touched[call.id] = call
    fold.row.activity = _busy(fold) or fold.row.activity


def _spend(fold: Fold, call: CallRow | None, usage: Any, cost_usd: str | None, cost_source: str | None) -> None:
    """Count one attempt. An attempt whose cost is unknown is told by a flag, never counted as nothing."""
    row = fold.row
    if usage:
        read = _count(usage, "input") + _count(usage, "cache_read") + _count(usage, "cache_write")
        wrote = _count(usage, "output")
        row.input_tokens += read
        row.output_tokens += wrote
        if call is not None:
            call.input_tokens = (call.input_tokens or 0) + read
            call.output_tokens = (call.output_tokens or 0) + wrote
    cost = money(cost_usd)
    if cost is not None:
        row.cost_usd = (row.cost_usd or 0) + cost
        if call is not None:
            call.cost_usd = (call.cost_usd or 0) + cost
    elif cost_source == "unknown" or (usage and cost_source != "none"):
        row.cost_unknown = True


def _count(usage: Any, name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and value > 0 else 0


# --- judgement and commands ---------------------------------------------------------------------------------------


def _verdict(fold: Fold, body: kinds.VerdictIssued, at: At) -> None:
    fold.verdicts.append(
        VerdictRow(
            seq=at.seq,
            call=at.call,
            detector=body.detector[:60],
            rung=body.rung[:10],
            rule=body.rule[:60],
            mode=body.mode[:8] if body.mode else None,
            fingerprint=body.fingerprint[:80],
            step=body.step,
            count=body.count,
            wasted_tokens=body.wasted_tokens,
            wasted_usd=money(body.wasted_usd),
            shadow=body.shadow,
        )
    )
    if (
        not body.shadow
        and body.rung in RUNGS
        and (fold.row.rung is None or RUNGS.index(body.rung) > RUNGS.index(fold.row.rung))
    ):
        fold.row.rung = body.rung
        fold.reshaped = True


def _received(fold: Fold, body: kinds.CommandReceived, at: At) -> None:
    kind = body.command_kind
    fold.receipts.append(ReceiptStep(command=body.command, state="delivered", ts=at.ts))
    if kind == CommandKind.WITHDRAW.value:
        fold.receipts.append(ReceiptStep(command=body.command, state="withdraw", ts=at.ts))
        return
    if kind == CommandKind.UNPAUSE.value:
        for command in [c for c, other in fold.pending.items() if other == CommandKind.PAUSE.value]:
            _close(fold, command, at, code="unpaused")
    at_once = kind in _SETTLED_AT_ONCE
    if at_once or (kind == CommandKind.UNPAUSE.value and fold.row.status != Status.WAITING.value):
        fold.receipts.append(ReceiptStep(command=body.command, state="done", ts=at.ts, turn=at.turn))
    else:
        fold.pending[body.command] = kind


def _settle(fold: Fold, kind: CommandKind, at: At) -> None:
    for command in [c for c, other in fold.pending.items() if other == kind.value]:
        _close(fold, command, at)


def _close(fold: Fold, command: str, at: At, code: str | None = None) -> None:
    fold.pending.pop(command, None)
    state = "refused" if code else "done"
    fold.receipts.append(ReceiptStep(command=command, state=state, ts=at.ts, code=code, turn=at.turn))


def _injected(fold: Fold, body: kinds.SteerInjected, at: At) -> None:
    _close(fold, body.command, at)


def _refused(fold: Fold, body: kinds.SteerRefused, at: At) -> None:
    _close(fold, body.command, at, code=body.code[:60])


def _raised(fold: Fold, body: kinds.FuseRaised, at: At) -> None:
    # One `fuse.raised` per command, in order of arrival.
    for command in [c for c, kind in fold.pending.items() if kind == CommandKind.RAISE.value][:1]:
        _close(fold, command, at)


def _compressed(fold: Fold, body: kinds.ContextCompressed, at: At) -> None:
    fold.row.activity = f"compressed {body.before_tokens} to {body.after_tokens} tokens"


def _rotated(fold: Fold, body: kinds.CredentialRotated, at: At) -> None:
    rests = "is set aside" if body.cooldown_s is None else f"rests {body.cooldown_s:.0f} s"
    fold.row.activity = activity.short(f"credential {body.from_} {rests}")


_STEPS: dict[str, Callable[[Fold, Any, At], None]] = {
    "run.queued": _queued,
    "run.started": _started,
    "run.waiting": _waiting,
    "run.continued": _continued,
    "run.stopping": _stopping,
    "run.requeued": _requeued,
    "run.completed": _completed,
    "run.exhausted": _exhausted,
    "run.interrupted": _interrupted,
    "run.tripped": _tripped,
    "run.failed": _failed,
    "run.lost": _lost,
    "turn.started": _turn,
    "call.started": _call_started,
    "call.retried": _call_retried,
    "call.completed": _call_completed,
    "verdict.issued": _verdict,
    "command.received": _received,
    "steer.injected": _injected,
    "steer.refused": _refused,
    "fuse.raised": _raised,
    "context.compressed": _compressed,
    "credential.rotated": _rotated,
}
