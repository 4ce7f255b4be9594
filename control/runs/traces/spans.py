"""The fold from a run's events to its spans: pure, and the same whenever it is made.

One trace per tree, with the root's id; a span's id is made from the run or the call. So a child finds its parent
without being told, and spans that are sent twice are the same spans. Texts of people, models and tools do not occur.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from agents import kinds
from agents.events import Event
from agents.kinds import FINAL_KINDS, Body
from agents.spec import CallStatus
from control.runs.traces.moments import moment_of
from control.runs.traces.names import FAULTS, provider_name

Value = str | int | float | bool | list[str]
_FINE = frozenset({CallStatus.OK.value, CallStatus.STUB.value, CallStatus.DRY_RUN.value})


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Something that happened within a span."""

    name: str
    at: datetime
    attributes: Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A finished span. `trace` has 128 bits, `id` and `parent` 64. `fault` is the `error.type`, if it is one."""

    trace: int
    id: int
    parent: int | None
    name: str
    client: bool
    began: datetime
    ended: datetime
    attributes: Mapping[str, Value]
    moments: tuple[Moment, ...]
    fault: str | None


@dataclass(slots=True, kw_only=True)
class _Open:
    began: datetime
    body: kinds.CallStarted
    attributes: dict[str, Value]
    moments: list[Moment] = field(default_factory=list)
    reason: str | None = None


def trace_id(root: str) -> int:
    return UUID(root).int


def span_id(*words: str) -> int:
    return int.from_bytes(hashlib.sha256("/".join(words).encode()).digest()[:8], "big") or 1


class RunSpans:
    """One run: feed it the events in order, take the spans that each one ends."""

    def __init__(self, *, run: str, root: str, parent: str | None, parent_call: str | None, agent: str) -> None:
        self.seq = 0
        self._run = run
        self._trace = trace_id(root)
        self._id = span_id(run)
        self._parent: int | None = None
        if parent is not None:
            self._parent = span_id(parent, parent_call) if parent_call else span_id(parent)
        self._agent = agent
        self._began: datetime | None = None
        self._attributes: dict[str, Value] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": agent,
            "pilothouse.run.id": run,
        }
        self._moments: list[Moment] = []
        self._open: dict[str, _Open] = {}
        self._input = self._output = 0

    def take(self, event: Event) -> list[Span]:
        """The spans that this event ends."""
        self.seq = event.seq
        if (moment := moment_of(event)) is not None:
            name, attributes = moment
            call = self._open.get(event.call or "")
            told = Moment(name=name, at=event.at, attributes=attributes)
            (call.moments if call is not None else self._moments).append(told)
        match event.data:
            case kinds.RunQueued():
                self._began = self._began or event.at
            case kinds.RunStarted() as body:
                self._started(event, body)
            case kinds.CallStarted() as body:
                self._call_started(event, body)
            case kinds.CallRetried() as body:
                self._retried(event, body)
            case kinds.ModelFellBack() as body if event.call in self._open:
                self._open[event.call].attributes["gen_ai.response.model"] = body.to
            case kinds.CallCompleted() as body:
                return [self._call_completed(event, body)]
            case body if event.kind in FINAL_KINDS:
                return self._end(event, body)
        return []

    def _started(self, event: Event, body: kinds.RunStarted) -> None:
        if "pilothouse.worker.id" not in self._attributes:
            self._began = event.at
        self._attributes |= {
            "gen_ai.provider.name": provider_name(str(body.model.get("provider") or "")),
            "gen_ai.request.model": str(body.model.get("model") or ""),
            "pilothouse.policy": body.policy,
            "pilothouse.worker.id": body.worker,
            "pilothouse.epoch": body.epoch,
            "host.name": body.host,
        }

    def _call_started(self, event: Event, body: kinds.CallStarted) -> None:
        attributes: dict[str, Value] = {"gen_ai.operation.name": body.operation}
        if body.operation == "chat":
            attributes["gen_ai.request.model"] = body.model or body.name
            attributes["gen_ai.provider.name"] = provider_name(body.provider or "")
            if body.credential:
                attributes["pilothouse.credential"] = body.credential
        else:
            attributes |= _tool(body.name, body.wire_id or event.call or "")
            if body.concurrency:
                attributes["pilothouse.tool.class"] = body.concurrency
        # A resumed run starts an open call again: the span goes back to the first start.
        before = self._open.get(event.call or "")
        self._open[event.call or ""] = _Open(
            began=before.began if before else event.at,
            body=body,
            attributes=attributes,
            moments=before.moments if before else [],
        )

    def _retried(self, event: Event, body: kinds.CallRetried) -> None:
        self._count(body.usage)
        call = self._open.get(event.call or "")
        if call is not None:
            call.reason = str(body.error.get("reason") or "unknown")

    def _call_completed(self, event: Event, body: kinds.CallCompleted) -> Span:
        call = self._open.pop(event.call or "", None)
        self._count(body.usage)
        attributes: dict[str, Value] = {"gen_ai.operation.name": body.operation}
        if call is not None:
            attributes = dict(call.attributes)
        name = call.body.model or body.name if call else body.name
        if body.operation == "chat":
            attributes.setdefault("gen_ai.request.model", name)
            if body.finish_reason:
                attributes["gen_ai.response.finish_reasons"] = [body.finish_reason]
            attributes |= _usage(body.usage)
            if body.ttft_ms is not None:
                attributes["pilothouse.first_token_ms"] = body.ttft_ms
            if body.cost_usd is not None:
                attributes["pilothouse.cost_usd"] = body.cost_usd
        else:
            for key, value in _tool(body.name, event.call or "").items():
                attributes.setdefault(key, value)
        attributes["pilothouse.call.status"] = body.status
        fault = None if body.status in _FINE else body.status
        if call is not None and body.status == CallStatus.ERROR.value and call.reason:
            fault = call.reason
        began = call.began if call else event.at
        return self._span(
            event.call or str(event.seq),
            name=f"{body.operation} {name}",
            client=body.operation == "chat",
            began=began,
            ended=event.at,
            attributes=attributes | ({"pilothouse.turn": event.turn} if event.turn is not None else {}),
            moments=call.moments if call else [],
            fault=fault,
        )

    def _span(
        self,
        call: str,
        *,
        name: str,
        client: bool,
        began: datetime,
        ended: datetime,
        attributes: Mapping[str, Value],
        moments: Sequence[Moment],
        fault: str | None,
    ) -> Span:
        """The span of one call of this run."""
        return Span(
            trace=self._trace,
            id=span_id(self._run, call),
            parent=self._id,
            name=name,
            client=client,
            began=began,
            ended=max(began, ended),
            attributes={**attributes, "pilothouse.run.id": self._run, "pilothouse.call.id": call},
            moments=tuple(moments),
            fault=fault,
        )

    def _count(self, usage: Any) -> None:
        counted = _usage(usage)
        self._input += int(str(counted.get("gen_ai.usage.input_tokens", 0)))
        self._output += int(str(counted.get("gen_ai.usage.output_tokens", 0)))

    def _end(self, event: Event, body: Body) -> list[Span]:
        """The run's own span, and those of calls that have no end in the log."""
        unknown = CallStatus.EFFECT_UNKNOWN.value
        left = [
            self._span(
                call,
                name=f"{one.body.operation} {one.body.model or one.body.name}",
                client=one.body.operation == "chat",
                began=one.began,
                ended=event.at,
                attributes=one.attributes | {"pilothouse.call.status": unknown},
                moments=one.moments,
                fault=unknown,
            )
            for call, one in self._open.items()
        ]
        self._open.clear()
        status = event.kind.removeprefix("run.")
        attributes = self._attributes | {
            "pilothouse.run.status": status,
            "gen_ai.usage.input_tokens": self._input,
            "gen_ai.usage.output_tokens": self._output,
        }
        began = self._began or event.at
        return [
            *left,
            Span(
                trace=self._trace,
                id=self._id,
                parent=self._parent,
                name=f"invoke_agent {self._agent}",
                client=False,
                began=began,
                ended=max(began, event.at),
                attributes=attributes,
                moments=tuple(self._moments),
                fault=_fault(status, body),
            ),
        ]


def _fault(status: str, body: Body) -> str | None:
    match body:
        case kinds.RunFailedEvent(error=error):
            return str(error.get("reason") or "unknown")
        case kinds.RunTripped(fuse=fuse, rule=rule):
            return f"fuse:{fuse}" if fuse else f"rule:{rule}"
        case kinds.RunLost(why=why):
            return why or "worker_lost"
    return status if status in FAULTS else None


def _tool(name: str, call: str) -> dict[str, Value]:
    return {"gen_ai.tool.name": name, "gen_ai.tool.call.id": call, "gen_ai.tool.type": "function"}


def _usage(usage: Any) -> dict[str, Value]:
    """Input tokens with those read from and written to a cache, as the conventions have it."""
    if not isinstance(usage, Mapping):
        return {}
    told = {name: value for name, value in usage.items() if isinstance(value, int) and value >= 0}
    made: dict[str, Value] = {
        "gen_ai.usage.input_tokens": sum(told.get(name, 0) for name in ("input", "cache_read", "cache_write")),
        "gen_ai.usage.output_tokens": told.get("output", 0),
    }
    if told.get("cache_read"):
        made["gen_ai.usage.cache_read.input_tokens"] = told["cache_read"]
    if told.get("cache_write"):
        made["gen_ai.usage.cache_creation.input_tokens"] = told["cache_write"]
    return made
