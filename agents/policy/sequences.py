"""A run's log as a recorded call sequence: what the model asked and what the tools answered, in order of asking."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from agents.policy.guarded import GOOD

# The content behind an artifact reference `{sha256, bytes}`; None if it is no longer kept.
ContentOf = Callable[[Mapping[str, Any]], bytes | None]


@dataclass(slots=True)
class _Asked:
    """One tool call of one answer of the model; filled in when its result comes."""

    tool: str
    args: Any
    batch: int
    call: str | None = None
    done: dict[str, Any] | None = None
    edits: dict[str, str | None] = field(default_factory=dict)
    before: dict[str, str] = field(default_factory=dict)
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
        if self.before:
            made["before"] = self.before
        if data.get("heard"):
            made["heard"] = data["heard"]
        return made


class Sequence:
    """Feed it the events of one run (envelopes as plain values) in order; `row` is the sequence so far."""

    def __init__(self, content_of: ContentOf) -> None:
        self._content_of = content_of
        self._line: list[_Asked] = []
        self._asked: dict[str, _Asked] = {}
        self._batch = 0
        self._read_only: set[str] = set()

    def row(self, run: str) -> dict[str, Any]:
        """`{id, calls, hints?}`. Calls that have no result yet are left out."""
        made: dict[str, Any] = {"id": run, "calls": [item.line() for item in self._line if item.done is not None]}
        if self._read_only:
            made["hints"] = {tool: {"read_only": True} for tool in sorted(self._read_only)}
        return made

    def asked(self) -> list[str | None]:
        """The ids of the calls in `row`, in its order; None for what stands between calls."""
        return [item.call for item in self._line if item.done is not None]

    def add(self, event: Mapping[str, Any]) -> None:
        data = event["data"]
        match event["kind"]:
            case "run.started":
                self._read_only.update(data.get("read_only") or ())
            case "call.completed" if data["operation"] == "chat":
                # Summaries are no turns, and an answer that broke off is none.
                if event.get("turn") is not None and data.get("status") == "ok":
                    self._chat(data)
            case "call.completed" if event["call"] in self._asked:
                self._asked[event["call"]].done = data
            case "edit.recorded" if event["call"] in self._asked:
                self._edit(data, self._asked[event["call"]])
            case "steer.injected":
                self._pseudo("__user__", data["note"])
            case "context.compressed":
                self._pseudo("__compaction__", data["summary"])
            case _:
                pass

    def _chat(self, data: Mapping[str, Any]) -> None:
        """The calls of one answer are a batch. Its cost is told on its first call."""
        wanted = data.get("tool_calls") or []
        if not wanted:
            if data.get("text"):
                self._pseudo("__assistant_text__", data["text"])
            return
        self._batch += 1
        usage = data.get("usage") or {}
        for number, call in enumerate(wanted):
            item = _Asked(tool=call["name"], args=_args(call.get("args")), batch=self._batch, call=call["call"])
            if number == 0:
                item.cost_usd = data.get("cost_usd")
                item.tokens = (
                    sum(usage.get(part, 0) for part in ("input", "output", "cache_read", "cache_write")) or None
                )
            self._line.append(item)
            self._asked[call["call"]] = item

    def _pseudo(self, tool: str, text: str) -> None:
        done = {"result": "", "status": "ok"}
        self._line.append(_Asked(tool=tool, args={"text": text}, batch=self._batch + 1, done=done))

    def _edit(self, data: Mapping[str, Any], item: _Asked) -> None:
        if data.get("before_sha256"):
            item.before[data["path"]] = data["before_sha256"]
        if data.get("sha256") is None:
            item.edits[data["path"]] = None
            return
        content = self._content_of(data["artifact"]) if data.get("artifact") else None
        if content is not None:  # retention may have dropped it; the call itself is still worth judging
            item.edits[data["path"]] = content.decode("utf-8", "replace")


def sequence_of(run: str, events: Iterable[Mapping[str, Any]], content_of: ContentOf) -> dict[str, Any]:
    """The sequence of a whole event stream."""
    made = Sequence(content_of)
    for event in events:
        made.add(event)
    return made.row(run)


def _args(text: Any) -> Any:
    """Arguments as an object where they are one, else the raw text as the model wrote it."""
    if not isinstance(text, str):
        return text if text is not None else {}
    try:
        return orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return text
