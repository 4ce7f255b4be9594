"""Turns, model calls and tool calls: rows that later events patch in place."""

from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from agents.events import Event
from agents.kinds import BatchPlanned, CallCompleted, CallLate, CallRetried, CallStarted
from control.dashboard.folds.fold import TURNS, RunFold, on
from control.dashboard.folds.words import arguments, lanes
from control.plain import preview

BAD = frozenset({"error", "timeout", "effect_unknown"})


@on("turn.started")
def turn_started(fold: RunFold, event: Event) -> None:
    if event.turn is not None:
        fold.card(event.turn, event)


@on("turn.completed")
def turn_completed(fold: RunFold, event: Event) -> None:
    if event.turn is not None:
        fold.card(event.turn, event)
        fold.document.change(f"turn-{event.turn}-head", event.seq, state="done")


@on("call.started")
def call_started(fold: RunFold, event: Event) -> None:
    body = event.data
    assert isinstance(body, CallStarted)
    call = event.call or f"seq{event.seq}"
    line, whole = arguments(body.args)
    context: dict[str, Any] = {
        "state": "running",
        "since": event.at,
        "model": body.model,
        "provider": body.provider,
        "credential": body.credential,
    }
    if body.concurrency:
        context["concurrency"] = body.concurrency
    if body.args is not None:
        context |= {"line": line, "args": whole}
    _row(fold, event, call, body.operation, body.name, "call_started", context)
    fold.open[call] = None
    if body.operation == "chat" and event.turn:
        fold.document.change(f"turn-{event.turn}-head", event.seq, state="streaming", model=body.model)
    _outline(fold, event)


@on("call.retried")
def call_retried(fold: RunFold, event: Event) -> None:
    assert isinstance(event.data, CallRetried)
    slot = f"retries-{event.call}"
    fold.fact(event, slot if fold.document.holds(slot) else None)
    _spend(fold, event, event.data.cost_usd, event.data.cost_source)


@on("call.completed")
def call_completed(fold: RunFold, event: Event) -> None:
    body = event.data
    assert isinstance(body, CallCompleted)
    call = event.call or f"seq{event.seq}"
    context = _outcome(body, event.at)
    row = fold.document.nodes.get(f"call-{call}")
    if row is None or "since" not in row.context:
        context["never_ran"] = True
    elif "duration_ms" not in context:
        context["duration_ms"] = (event.at - row.context["since"]).total_seconds() * 1000
    _row(fold, event, call, body.operation, body.name, "call_completed", context)
    fold.open.pop(call, None)
    for asked in body.tool_calls or []:
        fold.asked[str(asked.get("call"))] = dict(asked)
    if body.operation == "chat":
        _spend(fold, event, body.cost_usd, body.cost_source)
        if event.turn:
            fold.document.change(
                f"turn-{event.turn}-head", event.seq, state="tools" if body.tool_calls else "done", answer=context,
                model=body.name if not row else row.context.get("model") or body.name,
            )  # fmt: skip
    elif event.turn in fold.turns and body.status in BAD:
        fold.turns[event.turn].errors += 1
        fold.mark()
    _bars(fold, event)
    _outline(fold, event)


def _outcome(body: CallCompleted, at: datetime) -> dict[str, Any]:
    line, whole = arguments(body.args)
    shown, more = preview(body.result or "")
    context: dict[str, Any] = {
        "state": body.status,
        "ended": at,
        "text": body.text,
        "result": shown,
        "more": more or bool(body.truncated),
        "result_chars": len(body.result or ""),
        "artifact": body.artifact,
        "usage": body.usage,
        "cost_usd": body.cost_usd,
        "cost_source": body.cost_source,
        "finish_reason": body.finish_reason,
        "ttft_ms": body.ttft_ms,
        "altered": body.altered,
        "asks": len(body.tool_calls or []),
    }
    if body.duration_ms is not None:
        context["duration_ms"] = body.duration_ms
    if body.args is not None:
        context |= {"line": line, "args": whole}
    return context


@on("call.late")
def call_late(fold: RunFold, event: Event) -> None:
    assert isinstance(event.data, CallLate)
    if fold.document.change(f"call-{event.data.call}", event.seq, late=event.data.status) is None:
        fold.fact(event)


@on("batch.planned")
def batch_planned(fold: RunFold, event: Event) -> None:
    """The lanes of a batch: a row for every call, those that wait included."""
    body = event.data
    assert isinstance(body, BatchPlanned)
    number = event.turn or fold.turn
    groups = [f"lane-{number}-{index}" for index in range(len(body.groups))]
    fold.fact(
        event,
        slots=tuple(groups),
        lanes=[(slot, len(group)) for slot, group in zip(groups, body.groups, strict=True)],
        words=lanes(body.groups),
        count=sum(map(len, body.groups)),
    )
    fold.batches[number] = body.groups
    for slot, group in zip(groups, body.groups, strict=True):
        for call in group:
            asked = fold.asked.get(call, {})
            line, whole = arguments(asked.get("args"))
            _row(
                fold, event, call, "execute_tool", str(asked.get("name", "")), "call_started",
                {"state": "planned", "line": line, "args": whole, "lanes": len(group)}, slot,
            )  # fmt: skip
    _outline(fold, event)


def _row(
    fold: RunFold, event: Event, call: str, operation: str, name: str, part: str, context: dict[str, Any],
    lane: str | None = None,
) -> None:  # fmt: skip
    """Make or patch the row of a call. A call outside any turn (the summary at the end) lies in the column itself."""
    number = event.turn
    if event.call == call:
        fold.rows[event.seq] = f"call-{call}"
    where = lane or (fold.body(event) if number else TURNS)
    slots = (f"after-{call}", f"retries-{call}")
    seen = fold.document.nodes.get(f"call-{call}")
    if seen is None:
        context = {"line": "", "args": "", "retried": 0, **context}
        if number and operation != "chat":
            fold.card(number, event).calls.append(call)
    fold.document.put(
        f"call-{call}", where, part, event.seq, slots=slots, call=call, operation=operation,
        name=name or (seen.context["name"] if seen else ""), **context,
    )  # fmt: skip
    if seen is None:
        fold.tell_early(call, event)


def _spend(fold: RunFold, event: Event, cost: str | None, source: str | None) -> None:
    turn = fold.turns.get(event.turn or 0)
    if turn is None:
        return
    try:
        if cost is not None:
            turn.cost = (turn.cost or Decimal(0)) + Decimal(cost)
        elif source == "unknown":
            turn.cost_unknown = True
    except InvalidOperation:
        turn.cost_unknown = True
    fold.chart()


def _bars(fold: RunFold, event: Event) -> None:
    """Where each finished call lies in the time that its group of neighbours has taken so far."""
    groups = fold.batches.get(event.turn or 0, [])
    calls = [fold.document.nodes[f"call-{call}"] for group in groups if event.call in group for call in group]
    done = [node for node in calls if "since" in node.context and "ended" in node.context]
    if not done:
        return
    first = min(node.context["since"] for node in done)
    span = max((node.context["ended"] - first).total_seconds() for node in done) or 0.001
    for node in done:
        start = (node.context["since"] - first).total_seconds() / span * 100
        width = (node.context["ended"] - node.context["since"]).total_seconds() / span * 100
        bar = (round(min(start, 97), 1), round(max(width, 3), 1))
        if node.context.get("bar") != bar:
            fold.document.change(node.id, event.seq, bar=bar)


def _outline(fold: RunFold, event: Event) -> None:
    if event.turn:
        fold.outline(event.turn)


def close_open(fold: RunFold, event: Event) -> None:
    """The run is over: what has no end in the log is shown as closed by that, never as still running."""
    for call in list(fold.open):
        fold.document.change(f"call-{call}", event.seq, state="closed")
    fold.open.clear()
    for groups in fold.batches.values():
        for call in (call for group in groups for call in group):
            node = fold.document.nodes.get(f"call-{call}")
            if node is not None and node.context["state"] == "planned":
                fold.document.change(node.id, event.seq, state="not_started")
    for number in fold.turns:
        head = fold.document.nodes[f"turn-{number}-head"]
        if head.context["state"] != "done":
            fold.document.change(head.id, event.seq, state="done")
            fold.outline(number)
