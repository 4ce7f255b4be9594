"""Folds the chunks of an OpenAI-style chat completion, or a whole one, into the parts of an answer."""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from agents.messages import Usage
from agents.providers import wire
from agents.providers.assemble import Assembler, Unattributable, is_opaque
from agents.providers.failures import BROKEN_OFF, CUT, FILTERED, PLAIN_KEYS, is_error, names_error
from agents.providers.opaque import Opaque
from agents.providers.stream import Broken
from agents.providers.usage import count, money, openai_usage, read_openai

_PINGS = frozenset({"ping", "heartbeat", "keepalive", "keep-alive"})
_PLAIN_DELTA = frozenset({"role", "content", "tool_calls", "refusal", "function_call"})
_NO_REASON = frozenset({"", "null", "none"})


class CompletionFold:
    """One answer in the making. All methods raise Broken for what is no part of one."""

    mark = b"[DONE]"

    def __init__(self) -> None:
        self.progress = 0
        self.finished = False
        self.ended = False
        self.finish_reason: str | None = None
        self.calls = Assembler()
        self.opaque = Opaque()
        self._text: list[str] = []
        self._told = 0
        self._refusal: list[str] = []
        self._thinking: list[str] = []
        self._usage: dict[str, Any] | None = None
        self._read: tuple[Usage | None, tuple[str, ...]] | None = None
        self._whole = self._in_pieces = self._calls_by_list = False
        self._index: int | None = None

    # --- what comes in ---

    def event(self, name: str, data: bytes) -> None:
        """One server-sent event."""
        try:
            # The common case first and alone: this line runs once per token.
            chunk = orjson.loads(data)
        except ValueError:
            self._odd(name, data)
            return
        if name and (name in _PINGS or names_error(name)):
            if names_error(name):
                raise Broken(None, "an error event", b"event: error\ndata: " + data)
            return
        self._value(chunk, data)

    def document(self, value: Any, body: bytes) -> None:
        self._whole = True
        self._value(value, body)

    def _odd(self, name: str, data: bytes) -> None:
        """Data that is no strict JSON document: the end mark, a sign of life, several documents, or rubbish."""
        stripped = data.strip()
        if stripped.upper() == self.mark:
            self.ended = True
            return
        if not stripped or name in _PINGS:
            return
        if names_error(name):
            raise Broken(None, "an error event", b"event: error\ndata: " + data)
        try:
            chunk = wire.loads(stripped)
        except wire.NotJSON as error:
            lines = stripped.split(b"\n")
            if len(lines) == 1:
                raise Broken("malformed_response", f"a frame that is no JSON ({error})", data) from None
            # A server that leaves out the blank lines between its events makes one of them all.
            for line in lines:
                self.event("", line)
            return
        self._value(chunk, data)

    def _value(self, chunk: Any, data: bytes) -> None:
        if not isinstance(chunk, dict):
            if chunk is None:
                return
            if chunk == "[DONE]":
                self.ended = True
                return
            if not isinstance(chunk, list):
                raise Broken(
                    None if isinstance(chunk, str) else "malformed_response", "a frame that is no object", data
                )
            for item in chunk:
                self._value(item, data)
            return
        choices = chunk.get("choices")
        if (not choices or not chunk.keys() <= PLAIN_KEYS) and is_error(chunk):
            raise Broken(None, "an error inside the answer", data)
        usage = chunk.get("usage")
        if usage is None and not choices:
            usage = _nested_usage(chunk)
        if usage:
            self._take_usage(usage)
        if choices:
            choice = self._first_choice(choices)
            if choice is not None:
                self._choice(choice, data)

    def _first_choice(self, choices: Any) -> dict[str, Any] | None:
        """The choice of the lowest index, which the first chunk tells: we ask for one answer, whatever comes beside."""
        if choices.__class__ is list and len(choices) == 1:
            only = choices[0]
            if only.__class__ is dict and self._index is not None and only.get("index") == self._index:
                return only
        found = [c for c in (choices if isinstance(choices, list) else [choices]) if isinstance(c, dict)]
        if not found:
            return None
        first = min(found, key=_index_of)
        if self._index is None:
            self._index = _index_of(first)
        return first if _index_of(first) == self._index else None

    def _choice(self, choice: dict[str, Any], data: bytes) -> None:
        delta, message, before = choice.get("delta"), choice.get("message"), self.progress
        whole = self._whole and isinstance(message, dict)
        if not delta and isinstance(message, dict):
            # Behind pieces a message says the same once more; only a call in it may be new.
            delta = {"tool_calls": message.get("tool_calls")} if self._in_pieces else message
        if isinstance(delta, dict):
            try:
                self._delta(delta, whole=whole)
            except Unattributable as error:
                raise Broken("malformed_response", str(error), data) from None
        elif isinstance(text := choice.get("text"), str):
            self._say(text)
        self._in_pieces |= delta is not message and self.progress > before
        if choice.get("error"):
            raise Broken(None, "an error inside the answer", data)
        reason = choice.get("finish_reason")
        if reason is None and whole:
            reason = "stop"
        if isinstance(reason, str) and reason.lower() not in _NO_REASON:
            self._finish(reason.lower(), choice, data)

    def _finish(self, reason: str, choice: dict[str, Any], data: bytes) -> None:
        if reason in BROKEN_OFF:
            raise Broken(BROKEN_OFF[reason], f"the answer broke off (finish reason {reason})", data)
        if reason in FILTERED:
            raise Broken("content_policy", f"the provider's filter ended the answer ({reason})", data)
        if usage := choice.get("usage"):
            self._take_usage(usage)
        self.finish_reason = reason
        self.finished = True

    def _delta(self, delta: dict[str, Any], *, whole: bool) -> None:
        content = delta.get("content")
        if content:
            if isinstance(content, str):
                self._text.append(content)
                self.progress += 1
            else:
                self._parts(content)
        if calls := delta.get("tool_calls"):
            # Some servers say the same once more as a legacy function call.
            self._calls_by_list = True
            before = self.calls.progress
            self.calls.feed(calls, whole=whole)
            self.progress += self.calls.progress - before
        if not delta.keys() <= _PLAIN_DELTA:
            for key, value in delta.items():
                if key not in _PLAIN_DELTA and is_opaque(key) and self.opaque.add(key, value):
                    self.progress += 1
        if (legacy := delta.get("function_call")) and not self._calls_by_list:
            self.calls.feed([{"index": 0, "function": legacy}])
            self.progress += 1
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            self._refusal.append(refusal)
            self.progress += 1

    def _parts(self, content: Any) -> None:
        """Content as a list of typed parts: text is text, thinking is kept, anything else cannot be shown."""
        for part in content if isinstance(content, list) else [content]:
            if isinstance(part, str):
                self._say(part)
            elif isinstance(part, dict):
                if part.get("type") == "thinking":
                    inner = part.get("thinking")
                    pieces = inner if isinstance(inner, list) else [inner]
                    self._thinking.extend(t for p in pieces if (t := p.get("text") if isinstance(p, dict) else p))
                    self.progress += 1
                elif part.get("type") == "refusal" and isinstance(part.get("refusal"), str):
                    self._refusal.append(part["refusal"])
                    self.progress += 1
                else:
                    text = part.get("text")
                    inner = text.get("value") if isinstance(text, dict) else text
                    if isinstance(inner, str):
                        self._say(inner)

    def _say(self, text: str) -> None:
        if text:
            self._text.append(text)
            self.progress += 1

    def _take_usage(self, usage: Any) -> None:
        """A running total replaces the one before; one that counts nothing replaces nothing."""
        if isinstance(usage, dict) and (self._usage is None or openai_usage(usage) or money(usage.get("cost"))):
            self._usage, self._read = usage, None

    # --- what has come ---

    def fresh_text(self) -> str:
        fresh = self._text[self._told :]
        self._told = len(self._text)
        return "".join(fresh)

    def usage(self) -> Usage | None:
        return self._counts()[0]

    @property
    def counted(self) -> bool:
        return self._usage is not None and self.usage() is not None

    def notes(self) -> tuple[str, ...]:
        return self._counts()[1]

    def _counts(self) -> tuple[Usage | None, tuple[str, ...]]:
        """What the counts say, read once however often they are asked for."""
        if self._read is None:
            self._read = read_openai(self._usage) if self._usage else (None, ())
        return self._read

    def unseen(self) -> Iterable[tuple[Sequence[object], bool]]:
        yield self._thinking, False
        yield from ((pieces, False) for pieces in self.opaque.streams())
        yield self.calls.latest(), True

    def written(self) -> str:
        return "".join((*self._text, *self._refusal, *self._thinking, self.opaque.text(), self.calls.written()))

    def cost(self) -> str | None:
        """What the provider says that it cost, as a decimal string; None if it says nothing."""
        return money(self._usage.get("cost", self._usage.get("total_cost"))) if self._usage else None

    def text(self) -> str:
        return "".join(self._text)

    def refusal(self) -> str:
        return "".join(self._refusal)

    def kept(self) -> dict[str, Any] | None:
        """All opaque fields of the answer, in the form in which `openai.encode` gives them back."""
        kept = self.opaque.result()
        if self._thinking:
            kept["content_thinking"] = "".join(self._thinking)
        if extras := self.calls.extras():
            kept["call_fields"] = extras
        return kept or None

    def cut(self, max_output_tokens: int | None) -> bool:
        """Whether the output limit ended the answer: by the finish reason, or, where that speaks of tool calls, by the
        count, since servers relabel a cut call as a finished one."""
        if self.finish_reason in CUT:
            return True
        usage = self.usage()
        return bool(len(self.calls) and max_output_tokens and usage and usage.output >= max_output_tokens)


def _index_of(choice: dict[str, Any]) -> int:
    index = choice.get("index")
    return count(index) if index else 0


def _nested_usage(chunk: dict[str, Any]) -> Any:
    for box in chunk.values():
        if isinstance(box, dict) and isinstance(box.get("usage"), dict):
            return box["usage"]
    return None
