"""The tool calls of one turn: judged in order, planned into groups, run, and each answered truthfully."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agents import kinds
from agents.engine.approval import Approvals
from agents.engine.call_context import CallContext
from agents.engine.control import RunControl
from agents.engine.journal import Journal
from agents.engine.judgement import Judgement
from agents.engine.threads import POOL
from agents.engine.tool_call import CHILD_GRACE_S, Ready, Result, noted, run_tool, settled, stopped
from agents.errors import ToolError
from agents.messages import ToolCall
from agents.policy.asked import Edited
from agents.policy.batching import Planned, plan
from agents.policy.contents import edited
from agents.policy.redaction import Safe, cut, make_safe
from agents.policy.steering import escape_marker
from agents.ports import Artifacts, Clock, Edit, Tool
from agents.spec import CallStatus, ConcurrencyClass, Resume
from agents.tools.registry import Registry, parse_args

# What the model reads of one result in a window of ordinary size; the whole is kept as an artifact.
RESULT_LIMIT = 24_000
ON_LOOP_CHARS = 64 * 1024
# What is written down after a call's end may take this long beyond the call's own grace.
WRITE_GRACE_S = 1.0

_RAN = frozenset({CallStatus.OK, CallStatus.ERROR, CallStatus.TIMEOUT})

CUT_OFF = "Not run: this message was cut off at the output limit. Send the call again, in smaller parts."


class ToolBatch:
    def __init__(
        self,
        *,
        registry: Registry,
        journal: Journal,
        clock: Clock,
        artifacts: Artifacts,
        context: Callable[[str, int | None], CallContext],
        resolve: Callable[[Tool, Mapping[str, Any]], tuple[str, ...]],
        approvals: Approvals,
        judgement: Judgement,
        control: RunControl,
        result_chars: Callable[[], int] = lambda: RESULT_LIMIT,
        fold_case: bool = False,
    ) -> None:
        self._result_chars = result_chars
        self._approvals = approvals
        self._judgement = judgement
        self._control = control
        self._fold_case = fold_case
        self._registry = registry
        self._journal = journal
        self._clock = clock
        self._artifacts = artifacts
        self._context = context
        self._resolve = resolve

    async def run(self, calls: Sequence[ToolCall], raw_args: Mapping[str, str], turn: int, cut_off: bool) -> None:
        """Answer every call. Outside cancellation passes through after each started call has got its result.

        Raises LoopIncident: before anything runs if the guard stops the run at one of the calls.
        """
        self._judgement.obey(turn)
        if cut_off:
            for asked in calls:
                await self._complete(asked, turn, Result(status=CallStatus.ERROR, text=CUT_OFF), None)
            return
        ready: dict[str, Ready] = {}
        for asked in calls:
            if self._judgement.refused(asked, turn):
                continue
            try:
                ready[asked.call] = self._judge(asked, raw_args.get(asked.call, asked.args))
            except ToolError as error:
                await self._complete(asked, turn, Result(status=CallStatus.ERROR, text=error.message), None)
        if not ready:
            return
        planned = plan([_planned(one) for one in ready.values()], fold_case=self._fold_case)
        self._journal.write(
            kinds.BatchPlanned(groups=[list(group) for group in planned.groups], why=planned.why), turn=turn
        )
        for number, group in enumerate(planned.groups):
            await self._control.border()
            allowed = await self._allowed([ready[call] for call in group], turn)
            if allowed:
                await self._run_group(allowed, number, turn)
                self._judgement.obey(turn)

    def _judge(self, asked: ToolCall, raw: str) -> Ready:
        tool = self._registry.get(asked.name)
        if tool is None:
            known = ", ".join(self._registry.names)
            raise ToolError(f"There is no tool named {asked.name!r}. The tools are: {known}.", kind="unknown_tool")
        args = parse_args(tool.spec, raw)
        try:
            paths = self._resolve(tool, args)
        except Exception as error:
            raise ToolError(
                f"{tool.spec.name} was not run: its arguments name no usable path ({error}).", kind="bad_args"
            ) from error
        one = Ready(asked=asked, tool=tool, args=args, paths=paths)
        return replace(one, rule=self._approvals.rule_for(one))

    async def _allowed(self, group: Sequence[Ready], turn: int) -> Sequence[Ready]:
        """The calls of a group that may start. One that a person must allow stands alone, and is asked for here."""
        one = group[0]
        if one.rule is None:
            return group
        settled = await self._approvals.settle(one, one.rule, turn)
        if isinstance(settled, Ready):
            return [settled]
        await self._complete(one.asked, turn, settled, None)
        return []

    async def _run_group(self, group: Sequence[Ready], number: int, turn: int) -> None:
        durable = None
        for one in group:
            durable = self._journal.write(
                kinds.CallStarted(
                    operation="execute_tool",
                    name=one.asked.name,
                    args=one.asked.args,
                    wire_id=one.asked.wire_id,
                    concurrency=one.tool.spec.concurrency.value,
                    group=number,
                ),
                turn=turn,
                call=one.asked.call,
            )
        tasks: list[asyncio.Task[None]] = []
        try:
            with self._control.work():  # until each of them counts as work itself
                if durable is not None and any(_has_effect(one) for one in group):
                    await durable  # "started" is on disk before anything can have an effect
                alone = len(group) == 1
                tasks = [asyncio.create_task(self._worked(one, turn, alone), name=one.asked.name) for one in group]
                await asyncio.sleep(0)
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            if tasks:
                await self._stop(tasks, group, turn)
            else:
                self._never_began(group, turn)
            raise
        for task in tasks:
            task.result()

    def _never_began(self, group: Sequence[Ready], turn: int) -> None:
        text = "Not started: the run was stopped before it began. Nothing was done."
        for one in group:
            if self._context(one.asked.call, turn).stopping or one.tool.spec.resume is Resume.UNKNOWN:
                self._write_completed(one.asked, turn, Result(status=CallStatus.NOT_STARTED, text=text), None)

    async def _stop(self, tasks: Sequence["asyncio.Task[None]"], group: Sequence[Ready], turn: int) -> None:
        for task in tasks:
            task.cancel()
        _, late = await asyncio.wait(tasks, timeout=CHILD_GRACE_S + WRITE_GRACE_S)
        for task, one in zip(tasks, group, strict=True):
            if task in late:
                text = "Stopped, but its result could not be written in time: effect unknown."
                self._write_completed(one.asked, turn, Result(status=CallStatus.EFFECT_UNKNOWN, text=text), None)

    async def _worked(self, one: Ready, turn: int, alone: bool) -> None:
        with self._control.work(alone=alone):
            await self._one(one, turn)

    async def _one(self, one: Ready, turn: int) -> None:
        """Run one call to its result; on cancel the result says what became of it, then the cancel goes on."""
        context = self._context(one.asked.call, turn)
        began = self._clock.monotonic()
        ran = await run_tool(one, context)
        took = self._clock.monotonic() - began
        cancel = ran.cancel
        if ran.result is not None and self._is_plain(ran.result):
            self._write_completed(one.asked, turn, noted(one, ran.result), took * 1000)
        elif ran.result is not None:
            # What is known is written, edits included, also when a cancel comes meanwhile.
            writing = asyncio.ensure_future(self._complete(one.asked, turn, noted(one, ran.result), took * 1000))
            while not writing.done():
                cancel = await settled(writing) or cancel
            writing.result()
        elif context.stopping or one.tool.spec.resume is Resume.UNKNOWN:
            # A call that a later worker runs again stays open when this run is only handed on.
            self._write_completed(one.asked, turn, noted(one, stopped(one, context, took)), took * 1000)
        if cancel is not None:
            raise cancel

    async def _complete(self, asked: ToolCall, turn: int, result: Result, took_ms: float | None) -> None:
        artifact = None
        output = result.output
        if output is not None:
            whole = output.whole if output.whole is not None else self._whole(output.text)
            if whole is not None:
                artifact = await self._artifacts.put((await _safe(whole.decode("utf-8", "replace"))).text.encode())
            for edit in output.edits:
                await self._record(edit, asked.call, turn)
        self._write_completed(asked, turn, result, took_ms, artifact, await _safe(result.text))

    def _is_plain(self, result: Result) -> bool:
        """Whether it can be written down without waiting for anything."""
        output = result.output
        return len(result.text) < ON_LOOP_CHARS // 2 and (
            output is None or not (output.edits or output.whole is not None or len(output.text) > self._result_chars())
        )

    def _whole(self, text: str) -> bytes | None:
        return text.encode("utf-8", "replace") if len(text) > self._result_chars() else None

    async def _record(self, edit: Edit, call: str, turn: int) -> None:
        artifact = None if edit.content is None else await self._artifacts.put(edit.content)
        sums = await _sums(edit.content)
        self._journal.write(
            kinds.EditRecorded(
                path=make_safe(edit.path).text,
                before_sha256=edit.before_sha256,
                sha256=edit.sha256,
                bytes=edit.size,
                state=edit.state,
                artifact=artifact,
                loose=sums.loose if sums else None,
                code=sums.code if sums else None,
            ),
            turn=turn,
            call=call,
        )

    def _write_completed(
        self,
        asked: ToolCall,
        turn: int,
        result: Result,
        took_ms: float | None,
        artifact: Mapping[str, Any] | None = None,
        safe: Safe | None = None,
    ) -> None:
        waiting = self._journal.transcript.batch.get(asked.call)
        if waiting is not None and waiting.result is not None:
            return  # it was given up and answered for while this was on its way
        safe = safe or make_safe(result.text)
        text, was_cut = cut(safe.text, self._result_chars())
        # Escaped after the cut, which might take the escape away and leave the marker.
        text = escape_marker(text)
        status, heard = result.status, result.output.heard if result.output else None
        if status in _RAN and self._judgement.may_stub(asked.call):
            stub = self._judgement.stub(asked.call, turn, text, status is not CallStatus.OK, heard)
            if stub is not None:
                (text, heard), status = stub, CallStatus.STUB
        self._journal.write(
            kinds.CallCompleted(
                operation="execute_tool",
                name=asked.name,
                args=asked.args,
                status=status.value,
                result=text,
                truncated=True if was_cut or artifact else None,
                artifact=artifact,
                duration_ms=None if took_ms is None else round(took_ms, 1),
                altered=safe.altered,
                heard=heard,
            ),
            turn=turn,
            call=asked.call,
        )


async def _sums(content: bytes | None) -> Edited | None:
    """What the guard compares contents by; off the loop where that takes longer than a few milliseconds."""
    if content is None:
        return None
    if len(content) <= ON_LOOP_CHARS:
        return edited(content.decode("utf-8", "replace"))
    sums: Edited = await POOL.submit(lambda: edited(content.decode("utf-8", "replace")))
    return sums


async def _safe(text: str) -> Safe:
    """Made safe; off the loop where that takes longer than a few milliseconds."""
    if len(text) <= ON_LOOP_CHARS:
        return make_safe(text)
    safe: Safe = await POOL.submit(lambda: make_safe(text))
    return safe


def _planned(one: Ready) -> Planned:
    spec = one.tool.spec
    return Planned(
        call=one.asked.call,
        # What waits for a person stands alone, so that neither its neighbours wait with it nor an edit disturbs them.
        concurrency=spec.concurrency if one.rule is None else ConcurrencyClass.NEVER,
        paths=one.paths,
        writes=spec.concurrency is ConcurrencyClass.PATH,
    )


def _has_effect(one: Ready) -> bool:
    return one.tool.spec.concurrency is not ConcurrencyClass.SAFE or one.asked.name == "delegate"
