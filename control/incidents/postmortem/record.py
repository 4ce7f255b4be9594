"""A log read once into what a postmortem asks for: model calls, tool calls, writes, verdicts, and what people did."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

import orjson

from agents.kinds import FINAL_KINDS
from control.incidents.hindsight import dollars

Event = Mapping[str, Any]
_READ = ("input", "cache_read", "cache_write")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What one attempt has cost; `usd` None where nobody knows it."""

    seq: int
    turn: int | None
    tokens_in: int
    tokens_out: int
    cached: int
    usd: Decimal | None
    unknown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    at: datetime
    seq: int
    call: str | None
    reason: str
    status: int | None
    action: str
    wait_s: float
    # 0: nothing was sent yet, the key rested.
    attempt: int
    usd: Decimal | None


@dataclass(slots=True, kw_only=True)
class Chat:
    """One model call. A summary is one too, and has no turn."""

    call: str
    turn: int | None
    started: datetime
    seq: int
    ended: datetime | None = None
    done_seq: int | None = None
    status: str = ""
    text: str = ""


@dataclass(slots=True, kw_only=True)
class Write:
    at: datetime
    seq: int
    turn: int | None
    path: str
    before: str | None
    after: str | None
    artifact: Mapping[str, Any] | None


@dataclass(slots=True, kw_only=True)
class Tool:
    """One tool call that the model asked for. `step` counts from 1; `asked_seq` is the answer that asked for it."""

    call: str
    step: int
    turn: int | None
    asked_seq: int
    asked: datetime
    name: str
    args: Any
    started: datetime | None = None
    ended: datetime | None = None
    seq: int | None = None
    status: str = ""
    result: str = ""
    writes: list[Write] = field(default_factory=list)

    @property
    def ran(self) -> bool:
        return self.status not in ("", "blocked", "denied", "not_started")

    @property
    def failed(self) -> bool:
        return self.status in ("error", "timeout")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    at: datetime
    seq: int
    call: str | None
    rung: str
    rule: str
    count: int
    shadow: bool
    explanation: str


@dataclass(slots=True)
class Record:
    """`others` holds the events that the timeline tells as they are. Times are when things happened (`at`)."""

    events: list[Event] = field(default_factory=list)
    chats: dict[str, Chat] = field(default_factory=dict)
    tools: dict[str, Tool] = field(default_factory=dict)
    spent: list[Spent] = field(default_factory=list)
    retries: list[Retry] = field(default_factory=list)
    verdicts: list[Judged] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    others: list[Event] = field(default_factory=list)
    start: Event | None = None
    final: Event | None = None

    @classmethod
    def of(cls, bodies: Iterable[bytes]) -> "Record":
        made = cls()
        for body in bodies:
            made.add(orjson.loads(body))
        return made

    def add(self, event: Event) -> None:
        kind, data = event["kind"], event["data"]
        self.events.append(event)
        match kind:
            case "call.started" if data["operation"] == "chat":
                self._chat(event)
            case "call.started" if (tool := self.tools.get(event["call"])) is not None:
                tool.started = moment(event["at"])
            case "call.retried":
                self._retried(event)
            case "call.completed" if data["operation"] == "chat":
                self._answered(event)
            case "call.completed":
                self._completed(event)
            case "edit.recorded":
                self._wrote(event)
            case "verdict.issued":
                self._judged(event)
            case "turn.started" | "turn.completed" | "batch.planned" | "call.late" | "call.started":
                pass
            case _:
                if kind == "run.started" and self.start is None:
                    self.start = event
                if kind in FINAL_KINDS and self.final is None:
                    self.final = event
                self.others.append(event)

    def _chat(self, event: Event) -> Chat:
        call = event["call"]
        made = Chat(call=call, turn=event["turn"], started=moment(event["at"]), seq=event["seq"])
        return self.chats.setdefault(call, made)

    def _retried(self, event: Event) -> None:
        data, error = event["data"], event["data"].get("error") or {}
        self._spend(event)
        self.retries.append(
            Retry(
                at=moment(event["at"]),
                seq=event["seq"],
                call=event["call"],
                reason=str(error.get("reason") or "unknown"),
                status=error.get("status") if isinstance(error.get("status"), int) else None,
                action=str(data.get("action") or ""),
                wait_s=float(data.get("wait_s") or 0),
                attempt=whole(data.get("attempt")),
                usd=dollars(data.get("cost_usd")),
            )
        )

    def _answered(self, event: Event) -> None:
        data, at = event["data"], moment(event["at"])
        self._spend(event)
        chat = self.chats.get(event["call"]) or self._chat(event)
        chat.ended, chat.done_seq, chat.status = at, event["seq"], str(data.get("status") or "")
        chat.text = str(data.get("text") or "")
        for asked in data.get("tool_calls") or ():
            self.tools[asked["call"]] = Tool(
                call=asked["call"],
                step=len(self.tools) + 1,
                turn=event["turn"],
                asked_seq=event["seq"],
                asked=at,
                name=str(asked["name"]),
                args=asked.get("args"),
            )

    def _completed(self, event: Event) -> None:
        data = event["data"]
        tool = self.tools.get(event["call"])
        if tool is None:
            return
        tool.ended, tool.seq, tool.status = moment(event["at"]), event["seq"], str(data.get("status") or "")
        tool.result = str(data.get("result") or "")
        if data.get("usage") or data.get("cost_usd"):
            self._spend(event)

    def _wrote(self, event: Event) -> None:
        data = event["data"]
        write = Write(
            at=moment(event["at"]),
            seq=event["seq"],
            turn=event["turn"],
            path=str(data["path"]),
            before=data.get("before_sha256"),
            after=data.get("sha256"),
            artifact=data.get("artifact"),
        )
        self.writes.append(write)
        if (tool := self.tools.get(event["call"])) is not None:
            tool.writes.append(write)

    def _judged(self, event: Event) -> None:
        data = event["data"]
        self.verdicts.append(
            Judged(
                at=moment(event["at"]),
                seq=event["seq"],
                call=event["call"],
                rung=str(data["rung"]),
                rule=str(data["rule"]),
                count=int(data.get("count") or 0),
                shadow=bool(data.get("shadow")),
                explanation=str(data.get("explanation") or ""),
            )
        )

    def _spend(self, event: Event) -> None:
        data = event["data"]
        usage = data.get("usage") or {}
        usd, source = dollars(data.get("cost_usd")), data.get("cost_source")
        self.spent.append(
            Spent(
                seq=event["seq"],
                turn=event["turn"],
                tokens_in=sum(whole(usage.get(part)) for part in _READ),
                tokens_out=whole(usage.get("output")),
                cached=whole(usage.get("cache_read")),
                usd=usd,
                unknown=usd is None and (source == "unknown" or (bool(usage) and source != "none")),
            )
        )

    @property
    def known_usd(self) -> Decimal | None:
        """All that is known to be spent; None if nothing is."""
        known = [one.usd for one in self.spent if one.usd is not None]
        return sum(known, Decimal(0)) if known else None

    @property
    def started_at(self) -> datetime:
        return moment((self.start or self.events[0])["at"])

    @property
    def ended_at(self) -> datetime:
        return moment((self.final or self.events[-1])["at"])


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
