"""A run's log as a recorded call sequence: what the model asked and what the tools answered, in order of asking."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from control.runs import artifacts, log

PAGE = 2000
# A call with one of these was answered, but its tool said or did nothing that counts as success.
GOOD = frozenset({"ok", "stub", "dry_run"})


@dataclass(slots=True)
class _Asked:
    """One tool call of one answer of the model; filled in when its result comes."""

    tool: str
    args: Any
    batch: int
    done: dict[str, Any] | None = None
    edits: dict[str, str] = field(default_factory=dict)
    tokens: int | None = None
    cost_usd: str | None = None

    def line(self) -> dict[str, Any]:
        data = self.done or {}
        made: dict[str, Any] = {
            "tool": self.tool,
            "args": self.args,
            "result": data.get("result") or "",
            "is_error": data.get("status") not in GOOD,
            "batch": self.batch,
        }
        if self.cost_usd is not None:
            made["cost_usd"] = float(self.cost_usd)
        if self.tokens is not None:
            made["tokens"] = self.tokens
        if self.edits:
            made["edits"] = self.edits
        return made


def of_run(run: str) -> dict[str, Any]:
    """`{id, calls}` of one run, sub-agents not included. Calls that have no result yet are left out."""
    return {"id": run, "calls": fold(orjson.loads(body) for body in _bodies(run))}


def _bodies(run: str) -> Iterator[bytes]:
    after = 0
    while bodies := log.read_after(run, after, PAGE):
        yield from bodies
        after = orjson.loads(bodies[-1])["seq"]


def fold(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The sequence of an event stream (envelopes as plain values)."""
    line: list[_Asked] = []
    asked: dict[str, _Asked] = {}
    batch = 0
    for event in events:
        data = event["data"]
        match event["kind"]:
            case "call.completed" if data["operation"] == "chat":
                batch += _chat(data, batch, line, asked)
            case "call.completed" if event["call"] in asked:
                asked[event["call"]].done = data
            case "edit.recorded" if event["call"] in asked:
                _edit(data, asked[event["call"]])
            case "steer.injected":
                line.append(_pseudo("__user__", {"text": data["note"]}, batch + 1))
            case "context.compressed":
                line.append(_pseudo("__compaction__", {"text": data["summary"]}, batch + 1))
            case _:
                pass
    return [item.line() for item in line if item.done is not None]


def _chat(data: dict[str, Any], batch: int, line: list[_Asked], asked: dict[str, _Asked]) -> int:
    """Adds one answer of the model; 1 if it opens a batch, else 0. Its cost is told on its first call."""
    wanted = data.get("tool_calls") or []
    if not wanted:
        if data.get("text"):
            line.append(_pseudo("__assistant_text__", {"text": data["text"]}, batch + 1))
        return 0
    usage = data.get("usage") or {}
    for number, call in enumerate(wanted):
        item = _Asked(tool=call["name"], args=_args(call.get("args")), batch=batch + 1)
        if number == 0:
            item.cost_usd = data.get("cost_usd")
            item.tokens = sum(usage.get(part, 0) for part in ("input", "output", "cache_read", "cache_write")) or None
        line.append(item)
        asked[call["call"]] = item
    return 1


def _pseudo(tool: str, args: dict[str, Any], batch: int) -> _Asked:
    return _Asked(tool=tool, args=args, batch=batch, done={"result": "", "status": "ok"})


def _args(text: Any) -> Any:
    """Arguments as an object where they are one, else the raw text as the model wrote it."""
    if not isinstance(text, str):
        return text if text is not None else {}
    try:
        return orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return text


def _edit(data: dict[str, Any], item: _Asked) -> None:
    reference = data.get("artifact")
    if not reference:
        return
    try:
        item.edits[data["path"]] = artifacts.get(reference["sha256"]).decode("utf-8", "replace")
    except (LookupError, FileNotFoundError):
        # Retention may have dropped the content; the call itself is still worth exporting.
        return
