"""Events as lines for a terminal: what a person who watches one run wants to read, free of control characters."""

import re
from typing import Any

from agents import kinds
from agents.events import Event

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_LIMIT = 200


def plain(text: str) -> str:
    """The text with control and direction characters shown as escapes, so that no tool output can drive a terminal."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text)


def short(text: str | None, limit: int = _LIMIT) -> str:
    """One line, cut to fit."""
    line = " ".join((text or "").split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def line(event: Event, root: str) -> str | None:
    """The line for an event, or None where there is nothing to read. Sub-agents are marked by the end of their id."""
    said = _say(event)
    if said is None:
        return None
    who = "" if event.run == root else f"[{event.run[-6:]}] "
    return plain(f"{event.at:%H:%M:%S}  {who}{said}")


def _say(event: Event) -> str | None:
    match event.data:
        case kinds.RunQueued(task=task):
            return f"task      {short(task)}"
        case kinds.RunStarted(model=model, workspace=workspace):
            return f"started   {model.get('model')} at {model.get('base_url')}, working in {workspace}"
        case kinds.TurnStarted():
            return f"turn      {event.turn}"
        case kinds.CallCompleted():
            return _call(event.data)
        case kinds.CallRetried(error=error, wait_s=wait_s, action=action):
            return f"{action:<9} {error.get('reason')}: {short(error.get('message'))}; waiting {wait_s:g} s"
        case kinds.RunWaiting(reason=reason, text=text, choices=choices):
            return f"waiting   {reason}: {short(text)}" + (f" ({' | '.join(choices)})" if choices else "")
        case kinds.CommandReceived(command_kind=kind, by=by):
            return f"command   {kind} by {by}"
        case kinds.SteerInjected(note=note, by=by):
            return f"note      {short(note)} (by {by})"
        case kinds.SteerRefused(code=code):
            return f"note      refused: {code}"
        case kinds.VerdictIssued(rung=rung, rule=rule, explanation=explanation):
            return f"verdict   {rung} by {rule}: {short(explanation)}"
        case kinds.ChildStarted(run=run):
            return f"child     {run[-6:]} started"
        case kinds.ChildFinished(run=run, status=status):
            return f"child     {run[-6:]} {status}"
        case _:
            return _end(event.data)


def _call(call: kinds.CallCompleted) -> str:
    if call.operation == "chat":
        used = call.usage or {}
        tokens = sum(used.get(name) or 0 for name in ("input", "cache_read", "cache_write", "output"))
        cost = f", ${call.cost_usd}" if call.cost_usd is not None else ""
        said = f" {short(call.text)}" if call.text else ""
        return f"model    {said} ({call.status}, {tokens} tokens{cost})"
    took = f"{call.duration_ms:.0f} ms" if call.duration_ms is not None else "no time"
    return f"tool      {call.name} {short(call.args, 100)} -> {call.status} in {took}: {short(call.result, 100)}"


def _end(body: kinds.Body) -> str | None:
    match body:
        case kinds.RunCompleted(final=final):
            return f"completed {final}"
        case kinds.RunExhausted(final=final):
            return f"out of turns; summary: {final}"
        case kinds.RunInterrupted(by=by, stopped=stopped):
            return f"interrupted by {by}; {_stopped(stopped)}"
        case kinds.RunTripped(fuse=fuse, rule=rule, step=step):
            return f"tripped   {fuse or rule} at step {step}"
        case kinds.RunFailedEvent(error=error):
            return f"failed    {error.get('reason')}: {error.get('message')}"
        case _:
            return None


def _stopped(stopped: Any) -> str:
    counts = ", ".join(f"{stopped.get(name, 0)} {name}" for name in ("sockets", "processes", "children"))
    verified = "verified" if stopped.get("verified") else f"not verified ({stopped.get('why')})"
    return f"stopped {counts} in {stopped.get('seconds')} s, {verified}"
