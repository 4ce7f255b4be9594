"""One run in this process: it wires the parts, drives the loop under control, and hands back how it ended."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from agents import kinds
from agents.engine.approval import Approvals
from agents.engine.books import MemoryBook
from agents.engine.call_context import CallContext
from agents.engine.control import Halt, RunControl
from agents.engine.deadline import Deadline
from agents.engine.journal import Journal
from agents.engine.judgement import Judgement
from agents.engine.loop import Loop
from agents.engine.model_call import ModelCall
from agents.engine.outcome import Ended, Failed, Interrupted, Outcome, Tripped, close_open_calls, failed, finish
from agents.engine.purse import Purse
from agents.engine.tool_batch import ToolBatch
from agents.engine.transcript import Transcript
from agents.engine.turn import Turn
from agents.errors import AgentError, ConfigError, Fenced, RunFailed
from agents.events import Event
from agents.messages import SystemMessage
from agents.policy.approvals import rules_of
from agents.policy.guarded import GuardedLog
from agents.policy.memory import system_prompt
from agents.policy.policies import UNGUARDED, Policy, policy_from
from agents.policy.redaction import make_safe
from agents.ports import (
    Artifacts,
    Clock,
    EventSink,
    Inbox,
    Lease,
    Ledger,
    LiveText,
    Models,
    ServerState,
    Spawner,
    Tool,
    ToolServers,
    ToolSpec,
)
from agents.spec import LIMIT_NAMES, ConcurrencyClass, Limits, RunSpec
from agents.tools.places import folds_case
from agents.tools.registry import Registry

# Past this a stop is told as it stands; whatever still runs is named as unverified.
STOP_LIMIT_S = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Everything a run needs of the world. `environment` goes into tool processes (marks of run and worker)."""

    sink: EventSink
    live: LiveText
    inbox: Inbox
    artifacts: Artifacts
    lease: Lease
    models: Models
    tools: Registry
    spawner: Spawner
    clock: Clock
    workspace: str
    environment: Mapping[str, str]
    park_after_s: float = 600.0
    note: str | None = None
    servers: ToolServers | None = None
    # None: the run pays from an account of its own, in this process.
    ledger: Ledger | None = None


class Running:
    """A run being driven. `drive` once; `stop`, `drain` and `fenced` from the same event loop at any time."""

    def __init__(self, spec: RunSpec, ports: Ports, *, worker: str, host: str, epoch: int) -> None:
        self.spec = spec
        self._ports = ports
        self._worker = worker
        self._host = host
        self._epoch = epoch
        self._servers = ports.servers
        self._policy, self._wrong = _policy_of(spec)
        self.transcript = Transcript(guarded=GuardedLog(self._policy, spec.limits))
        self._journal = Journal(ports.sink, ports.clock, self.transcript)
        self.control = RunControl(self._journal, ports.inbox, ports.clock, spec.limits, ports.park_after_s)
        working_limit = self._policy.fuses.max_working_seconds
        self._deadline = Deadline(self.control, self.transcript, ports.clock, working_limit)

    def stop(self, *, by: str, reason: str = "", command: str | None = None) -> None:
        """Stop for good, e.g. because the parent stops. Idempotent."""
        self.control.request_stop(by=by, reason=reason, command=command)

    def drain(self, *, at_border: bool = False) -> None:
        """Give the run back, with no final event: now, and its tools end; or at its next border between calls."""
        self.control.leave(at_border=at_border)

    def fenced(self) -> None:
        """Another owner writes the log now: end the tools and write nothing."""
        self.control.cancel(Halt.FENCED)

    async def drive(self, log: Sequence[Event]) -> Ended:
        """Drive from where `log` stands to an end. Never raises for what happens inside the run."""
        for event in log:
            self.transcript.apply(event.data, turn=event.turn, call=event.call, at=event.at, seq=event.seq)
        self.control.take_over()
        main = asyncio.create_task(self._main(), name=f"run {self.spec.id}")
        listener = asyncio.create_task(self.control.listen(), name=f"inbox {self.spec.id}")
        self.control.govern(main)
        self.control.on_raise.append(self._deadline.arm)
        try:
            outcome = await self._outcome(main, listener)
            await self._leave_servers()
            return await self._end(outcome)
        except Fenced:
            return Ended(how="fenced")
        finally:
            self._deadline.disarm()
            listener.cancel()
            if not main.done():
                main.cancel()
            await self._leave_servers()

    async def _leave_servers(self) -> None:
        """End the servers of tools; what a stop ended of them counts in its report."""
        servers, self._servers = self._servers, None
        if servers is None:
            return
        report = await servers.close(at_once=self.control.halt is not None)
        if self.control.halt is Halt.STOP:
            self.control.tally.processes += report.processes
            self.control.tally.left += report.left

    async def _outcome(self, main: "asyncio.Task[Outcome]", listener: "asyncio.Task[None]") -> Outcome | None:
        """What the loop came to; None when it was halted without an end of its own."""
        await asyncio.wait({main, listener}, return_when=asyncio.FIRST_COMPLETED)
        if not main.done() and self.control.halt is None:
            main.cancel()  # the listener died: a run that cannot be stopped must not go on
        if not main.done():
            _, late = await asyncio.wait({main}, timeout=STOP_LIMIT_S)
            self.control.tally.overdue = bool(late)
        if not main.done() or main.cancelled():
            return self._halted(listener)
        return _result(main)

    def _halted(self, listener: "asyncio.Task[None]") -> Outcome | None:
        if self.control.stop is not None and self.control.halt is Halt.STOP:
            return Interrupted(request=self.control.stop)
        if self.control.incident is not None and self.control.halt is Halt.TRIP:
            return Tripped(incident=self.control.incident)
        if self.control.halt is None and listener.done() and not listener.cancelled():
            error = listener.exception()
            return Failed(reason="internal", message=f"the control lane of this run broke: {error!r}")
        return None

    async def _end(self, outcome: Outcome | None) -> Ended:
        control = self.control
        if control.halt is Halt.FENCED:
            return Ended(how="fenced")
        if outcome is not None:
            at = control.stop.at if control.stop else self._ports.clock.monotonic()
            return await finish(outcome, self._journal, control, self._ports.clock.monotonic() - at)
        return Ended(how="parked" if control.halt is Halt.PARK else "drained")

    async def _main(self) -> Outcome:
        try:
            loop = await self._begin()
            return await loop.run()
        except RunFailed as error:
            return failed(error)
        except (Fenced, asyncio.CancelledError):
            raise
        except AgentError as error:
            return Failed(reason=error.kind, message=error.message)
        except Exception as error:
            return Failed(reason="internal", message=f"{type(error).__name__}: {error}")

    async def _begin(self) -> Loop:
        ports, spec = self._ports, self.spec
        if self._wrong is not None:
            raise self._wrong  # a run whose guard cannot be read does not run without one
        registry = await self._registry()
        prompt = system_prompt(spec.prompt, spec.memory)
        resumed = self.transcript.started_before
        self._journal.write(await self._started(prompt, registry))
        self._deadline.arm()
        if spec.memory and not resumed:
            self._journal.write(kinds.MemoryInjected(notes=list(spec.memory)))
        model_call = self._model_call(registry, prompt)
        judgement = Judgement(self._journal)
        batch = ToolBatch(
            registry=registry,
            journal=self._journal,
            clock=ports.clock,
            artifacts=ports.artifacts,
            context=self._context,
            resolve=self._resolve,
            approvals=Approvals(
                rules=rules_of(spec.policy_body),
                journal=self._journal,
                control=self.control,
                resolve=self._resolve,
                dry_run=spec.dry_run,
            ),
            judgement=judgement,
            control=self.control,
            fold_case=folds_case(ports.workspace),
            result_chars=model_call.result_chars,
        )
        turn = Turn(
            journal=self._journal,
            control=self.control,
            model_call=model_call,
            batch=batch,
            judgement=judgement,
            deadline=self._deadline,
            clock=ports.clock,
            waits_for_quota=spec.policy_body.get("on_quota") != "fail",
        )
        return Loop(
            journal=self._journal,
            control=self.control,
            model_call=model_call,
            turn=turn,
            registry=registry,
            last_word=spec.policy_body.get("last_word") or False,
        )

    def _model_call(self, registry: Registry, prompt: str) -> ModelCall:
        ports, spec = self._ports, self.spec
        return ModelCall(
            models=ports.models,
            specs=(spec.model, *spec.fallbacks),
            live=ports.live,
            clock=ports.clock,
            journal=self._journal,
            control=self.control,
            system=SystemMessage(text=prompt),
            tools=registry.specs,
            summariser=spec.policy_body.get("compression_model"),
            stronger=self._policy.escalate_to,
            purse=self._purse(),
        )

    def _purse(self) -> Purse:
        ports = self._ports
        return Purse(
            ledger=ports.ledger or MemoryBook().of(self.spec),
            journal=self._journal,
            control=self.control,
            clock=ports.clock,
            spec=self.spec,
        )

    async def _registry(self) -> Registry:
        """The run's own tools, and behind them those of its servers, as far as these answer."""
        own = self._ports.tools
        if self._servers is None:
            return own
        return own.extended(await self._servers.connect(self._tell_server))

    def _tell_server(self, state: ServerState) -> None:
        body: kinds.Body = kinds.ServerLost(server=state.server, why=state.why)
        if state.up:
            body = kinds.ServerConnected(server=state.server, tools=[make_safe(name).text for name in state.tools])
        self._journal.write(body, turn=self.transcript.turn or None)

    async def _started(self, prompt: str, registry: Registry) -> kinds.RunStarted:
        ports, spec = self._ports, self.spec
        return kinds.RunStarted(
            worker=self._worker,
            host=self._host,
            epoch=self._epoch,
            model={"model": spec.model.model, "base_url": spec.model.base_url, "provider": spec.model.provider},
            policy=spec.policy,
            limits=limits_to_json(spec.limits),
            prompt=await ports.artifacts.put(prompt.encode("utf-8", "replace")),
            tools=await ports.artifacts.put(tools_to_json(registry.specs)),
            workspace=ports.workspace,
            branch=spec.workspace.branch if spec.workspace else None,
            note=ports.note,
            read_only=[tool.name for tool in registry.specs if reads_only(tool)] or None,
        )

    def _context(self, call: str, turn: int | None) -> CallContext:
        ports = self._ports
        waiting = self.transcript.batch.get(call)
        return CallContext(
            run=self.spec.id,
            call=call,
            turn=turn,
            workspace=ports.workspace,
            dry_run=self.spec.dry_run,
            lease=ports.lease,
            environment=ports.environment,
            journal=self._journal,
            control=self.control,
            spawner=ports.spawner,
            adopt=waiting.child if waiting else None,
        )

    def _resolve(self, tool: Tool, args: Mapping[str, Any]) -> tuple[str, ...]:
        """The real paths that a call touches; a tool that knows better says so by `touches`."""
        touches = getattr(tool, "touches", None)
        if touches is not None:
            return tuple(touches(args, self._ports.workspace))
        named = [str(args.get(name) or ".").replace("\0", "") for name in tool.spec.paths]
        return tuple(os.path.realpath(os.path.join(self._ports.workspace, name)) for name in named)


def tools_to_json(tools: Sequence[ToolSpec]) -> bytes:
    """The tools as the log keeps them, whatever the wire makes of them."""
    return orjson.dumps(
        [{"name": t.name, "description": t.description, "parameters": dict(t.parameters)} for t in tools]
    )


def _policy_of(spec: RunSpec) -> tuple[Policy, ConfigError | None]:
    try:
        return policy_from(spec.policy_body, spec.policy), None
    except ConfigError as error:
        return UNGUARDED, error


def reads_only(tool: ToolSpec) -> bool:
    """Whether the guard may take it for a look: a sub-agent overlaps with anything, and yet it acts."""
    return tool.concurrency is ConcurrencyClass.SAFE and tool.name != "delegate"


def limits_to_json(limits: Limits) -> dict[str, Any]:
    """`{name: {value, source}}` for the limits that are set; values are decimal strings."""
    found = {name: getattr(limits, name) for name in LIMIT_NAMES}
    return {n: {"value": str(limit.value), "source": limit.source} for n, limit in found.items() if limit}


def _result(main: "asyncio.Task[Outcome]") -> Outcome:
    error = main.exception()
    if error is not None:
        raise error
    return main.result()


__all__ = ["Ended", "Ports", "Running", "close_open_calls", "limits_to_json"]
