"""Runs that are over, written through the log as a worker would have: each from its calls in order."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from agents import kinds
from agents.events import Draft, draft
from agents.ids import new_id
from agents.kinds import Body
from agents.spec import Status
from control.runs import artifacts, log
from control.runs.models import Run

BEGAN = datetime(2026, 3, 1, 1, 0, tzinfo=UTC)
_NOTHING = {"sha256": "0" * 64, "bytes": 0}


@dataclass(frozen=True, kw_only=True)
class Made:
    """One tool call with its answer, in a turn of its own. `writes` is the content that it left at a path."""

    tool: str
    args: Mapping[str, Any]
    result: str = "ok"
    failed: bool = False
    tokens: int = 1_000
    usd: str = "0.01"
    writes: Mapping[str, str] = field(default_factory=dict)


def record(story: Sequence[Made], *, status: Status = Status.COMPLETED, agent: str = "default", **columns: Any) -> Run:
    """One run with this story; it `completed` with a last answer, or ended otherwise right behind the last call."""
    return record_all([(story, status)], agent=agent, **columns)[0]


def record_all(
    stories: Iterable[tuple[Sequence[Made], Status]], *, agent: str = "default", at_once: int = 50, **columns: Any
) -> list[Run]:
    """Many of them, a few in one transaction."""
    waiting, made = list(stories), []
    while waiting:
        part, waiting = waiting[:at_once], waiting[at_once:]
        runs = [_row(agent, columns) for _ in part]
        Run.objects.bulk_create(runs)
        log.append(
            [
                log.Batch(run=run.pk, root=run.root, epoch=1, drafts=_drafts(run, story, status))
                for run, (story, status) in zip(runs, part, strict=True)
            ]
        )
        made += runs
    return list(Run.objects.filter(pk__in=[run.pk for run in made]).order_by("pk")) if len(made) < 500 else made


def _row(agent: str, columns: Mapping[str, Any]) -> Run:
    pk = new_id()
    now = datetime.now(UTC)
    given = {"owner": "ann", "agent": agent, "task": "do it", "created_at": now, "epoch": 1, **columns}
    return Run(pk=pk, root=pk, path=pk, status=Status.RUNNING.value, **given)


def _drafts(run: Run, story: Sequence[Made], status: Status) -> list[Draft]:
    at, found = BEGAN, []

    def add(body: Body, turn: int | None = None, call: str | None = None) -> None:
        nonlocal at
        at += timedelta(milliseconds=100)
        found.append(draft(body, at=at, turn=turn, call=call))

    add(kinds.RunQueued(agent=run.agent, task=run.task, labels={}))
    add(
        kinds.RunStarted(
            worker="w",
            host="h",
            epoch=1,
            model={"model": "m", "base_url": "http://127.0.0.1:9/v1", "provider": "openai"},
            policy="default",
            limits={},
            prompt=_NOTHING,
            tools=_NOTHING,
            read_only=["read_file"],
        )
    )
    turn = 0
    for turn, one in enumerate(story, 1):
        call = new_id()
        asked = [{"call": call, "wire_id": f"w{turn}", "name": one.tool, "args": orjson.dumps(one.args).decode()}]
        _chat(add, turn, one.tokens, one.usd, tool_calls=asked, finish_reason="tool_calls")
        add(kinds.CallStarted(operation="execute_tool", name=one.tool, args=asked[0]["args"]), turn, call)
        for path, content in one.writes.items():
            add(_edit(path, content), turn, call)
        add(
            kinds.CallCompleted(
                operation="execute_tool",
                name=one.tool,
                args=asked[0]["args"],
                status="error" if one.failed else "ok",
                result=one.result,
            ),
            turn,
            call,
        )
        add(kinds.TurnCompleted(), turn)
    if status is Status.COMPLETED:
        _chat(add, turn + 1, 500, "0.005", text="Done.", finish_reason="stop")
    add(_end(status))
    return found


def _chat(add: Any, turn: int, tokens: int, usd: str, **more: Any) -> None:
    call = new_id()
    add(kinds.TurnStarted(), turn)
    add(kinds.CallStarted(operation="chat", name="m", model="m", provider="openai"), turn, call)
    usage = {"input": tokens - 100, "output": 100, "cache_read": 0, "cache_write": 0, "reasoning": 0}
    body = kinds.CallCompleted(
        operation="chat", name="m", status="ok", usage=usage, cost_usd=usd, cost_source="reported", **more
    )
    add(body, turn, call)


def _edit(path: str, content: str) -> Body:
    kept = artifacts.put(content.encode())
    return kinds.EditRecorded(
        path=path, before_sha256=None, sha256=kept["sha256"], bytes=kept["bytes"], state="changed", artifact=kept
    )


def _end(status: Status) -> Body:
    match status:
        case Status.COMPLETED:
            return kinds.RunCompleted(final="Done.")
        case Status.INTERRUPTED:
            return kinds.RunInterrupted(command=None, by="ann", reason="it loops", stopped={"verified": True})
        case Status.TRIPPED:
            return kinds.RunTripped(step=1, rule="ladder")
        case _:
            return kinds.RunFailedEvent(error={"reason": "unknown", "message": "it broke"})
