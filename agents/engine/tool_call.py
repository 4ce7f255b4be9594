"""One tool call from its start to a truthful result, whatever the tool raises, returns or ignores."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agents.engine.call_context import CallContext
from agents.errors import LoopIncident, SpawnRefused, ToolError
from agents.messages import ToolCall
from agents.policy.approvals import Rule
from agents.ports import Tool, ToolOutput
from agents.spec import CallStatus, ConcurrencyClass

# A cancelled tool may take TERM, one second and KILL; whoever needs longer is left behind and told.
STOP_GRACE_S = 2.5
# One that waits for a sub-agent gives that one its own grace, and the time to write it down.
CHILD_GRACE_S = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A call that may run: its tool, its checked arguments and the real paths that it touches.

    `rule`: a person must allow it first. `note`: what the model must know about how it came to run.
    """

    asked: ToolCall
    tool: Tool
    args: Mapping[str, Any]
    paths: tuple[str, ...]
    rule: Rule | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    status: CallStatus
    text: str
    output: ToolOutput | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """`result` None: it was cancelled before it had one. `cancel` is for the caller to raise once all is written."""

    result: Result | None
    cancel: asyncio.CancelledError | None


async def run_tool(one: Ready, context: CallContext) -> Ran:
    """Run to a result, the tool's timeout or a cancel of this task; a tool that heeds neither is left behind."""
    # A task of its own: a tool that swallows its cancel, or cancels itself, must not do so to the run.
    work = asyncio.create_task(_guarded(one, context), name=one.asked.name)
    limit = one.tool.spec.timeout_s or None
    cancel = await settled(work, limit)
    timed_out = cancel is None and not work.done()
    if not work.done():
        work.cancel()
        cancel = await _last_chance(work, context) or cancel
    if not work.done():
        context.left_behind(work)
    elif not work.cancelled():
        return Ran(result=work.result(), cancel=cancel)
    if timed_out:
        still = " It is still running in the background; its effect is unknown." if context.deaf else ""
        return Ran(result=Result(status=CallStatus.TIMEOUT, text=f"Timed out after {limit:g} s.{still}"), cancel=cancel)
    if cancel is None:
        return Ran(
            result=Result(status=CallStatus.ERROR, text="CancelledError: the tool cancelled itself."), cancel=None
        )
    return Ran(result=None, cancel=cancel)


async def settled(future: "asyncio.Future[Any]", seconds: float | None = None) -> asyncio.CancelledError | None:
    """Wait until it has ended, a cancel of this task comes or the time is over. Returns the cancel."""
    try:
        await asyncio.wait({future}, timeout=seconds)
    except asyncio.CancelledError as error:
        return error
    return None


async def _last_chance(work: "asyncio.Task[Result]", context: CallContext) -> asyncio.CancelledError | None:
    """Give a cancelled tool its grace, also through further cancels."""
    until = time.monotonic() + (CHILD_GRACE_S if context.has_child else STOP_GRACE_S)
    cancel = None
    while not work.done() and (left := until - time.monotonic()) > 0:
        cancel = await settled(work, left) or cancel
    return cancel


async def _guarded(one: Ready, context: CallContext) -> Result:
    try:
        output = await one.tool.run(one.args, context)
        if not isinstance(output, ToolOutput) or not isinstance(output.text, str):
            raise TypeError(f"the tool returned {type(output).__name__} where a text was expected")
        ending = CallStatus.ERROR if output.is_error else CallStatus.OK
        status = CallStatus(output.status) if output.status else ending
    except (asyncio.CancelledError, LoopIncident):
        raise
    except (ToolError, SpawnRefused) as error:
        return Result(status=CallStatus.ERROR, text=error.message)
    except TimeoutError as error:
        return Result(status=CallStatus.ERROR, text=f"TimeoutError: {error or 'the tool gave up waiting.'}")
    except BaseException as error:  # also SystemExit: a tool may end itself, never the worker
        return Result(status=CallStatus.ERROR, text=f"{type(error).__name__}: {error}")
    return Result(status=status, text=output.text, output=output)


def noted(one: Ready, result: Result) -> Result:
    """The result as the model reads it, headed by what it must know about the call."""
    return replace(result, text=f"{one.note}\n\n{result.text}") if one.note else result


def stopped(one: Ready, context: CallContext, took_s: float) -> Result:
    """What a call is answered with that was cancelled before it had a result."""
    if context.deaf:
        return Result(
            status=CallStatus.EFFECT_UNKNOWN,
            text=f"Stopped after {took_s:.1f} s, but it does not listen and cannot be ended: running, effect unknown.",
        )
    if one.tool.spec.concurrency is ConcurrencyClass.SAFE:
        return Result(status=CallStatus.STOPPED, text=f"Stopped after {took_s:.1f} s; it had only been reading.")
    return Result(status=CallStatus.STOPPED, text=f"Stopped after {took_s:.1f} s; what it had done by then may remain.")
