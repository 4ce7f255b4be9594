"""Folds the events of Anthropic's messages API, or a whole message, into the parts of an answer."""

from collections.abc import Iterable, Sequence
from typing import Any

from agents.ids import new_id
from agents.messages import ToolCall, Usage
from agents.providers import wire
from agents.providers.stream import Broken
from agents.providers.usage import anthropic_usage

_THINKING = frozenset({"thinking", "redacted_thinking"})


class _Block:
    """One content block; `pieces` are its text, its thinking or its tool input, by type."""

    __slots__ = ("head", "kind", "pieces", "signature")

    def __init__(self, head: dict[str, Any]) -> None:
        self.head = head
        self.kind = str(head.get("type") or "")
        self.pieces: list[str] = []
        self.signature: list[str] = []

    def text(self) -> str:
        return "".join(self.pieces)

    def input(self) -> str:
        """The tool input as text. A tool without arguments streams nothing, or one empty fragment."""
        text = self.text()
        return text if text.strip() else wire.dumps(self.head.get("input") or {}).decode()


class MessageFold:
    """One answer in the making. Unknown events and deltas for blocks that were never opened are ignored."""

    mark = b"[DONE]"

    def __init__(self) -> None:
        self.progress = 0
        self.finished = False
        self.ended = False
        self.finish_reason: str | None = None
        self._blocks: list[_Block] = []
        self._at: dict[str, _Block] = {}
        self._fresh: list[str] = []
        self._usage: dict[str, Any] = {}
        self._counted = False

    def going_on(self) -> "MessageFold":
        """A fold for the rest of a turn that the server paused: with what there is, ready for more."""
        rest = MessageFold()
        rest._blocks = self._blocks
        return rest

    # --- what comes in ---

    def event(self, name: str, data: bytes) -> None:
        if not data.strip() or name == "ping":
            return
        try:
            value = wire.loads(data)
        except wire.NotJSON as error:
            if data.strip() == self.mark:
                self.ended = True
                return
            if name == "error":
                raise Broken(None, "an error event", b"event: error\ndata: " + data) from None
            raise Broken("malformed_response", f"a frame that is no JSON ({error})", data) from None
        if not isinstance(value, dict):
            raise Broken("malformed_response", "a frame that is no object", data)
        self._take(str(value.get("type") or name), value, data)

    def document(self, value: Any, body: bytes) -> None:
        """A whole message in place of a stream."""
        if not isinstance(value, dict) or value.get("type") != "message":
            raise Broken(None, "the answer is no message", body)
        self._add_usage(value.get("usage"), final=True)
        content = value.get("content")
        for index, block in enumerate(content if isinstance(content, list) else []):
            if isinstance(block, dict):
                self._open(str(index), block)
        self._stop(str(value.get("stop_reason") or "end_turn"), body)

    def _take(self, kind: str, value: dict[str, Any], data: bytes) -> None:
        if kind == "error" or value.get("error"):
            raise Broken(None, "an error event", data)
        if kind == "content_block_delta":
            block = self._at.get(str(value.get("index")))
            delta = value.get("delta")
            if block is not None and isinstance(delta, dict):
                self._delta(block, delta)
        elif kind == "content_block_start" and isinstance(block_head := value.get("content_block"), dict):
            self._open(str(value.get("index")), block_head)
        elif kind == "message_start" and isinstance(message := value.get("message"), dict):
            self._add_usage(message.get("usage"))
        elif kind == "message_delta":
            self._add_usage(value.get("usage"), final=True)
            delta = value.get("delta")
            if isinstance(delta, dict) and isinstance(reason := delta.get("stop_reason"), str) and reason:
                self._stop(reason, data)
        elif kind == "message_stop":
            self.ended = True

    def _open(self, index: str, head: dict[str, Any]) -> None:
        block = self._at[index] = _Block(head)
        self._blocks.append(block)
        self.progress += 1
        if block.kind == "text" and isinstance(text := head.get("text"), str):
            self._say(block, text)
        elif block.kind == "thinking":
            block.pieces.append(str(head.get("thinking") or ""))
            block.signature.append(str(head.get("signature") or ""))

    def _delta(self, block: _Block, delta: dict[str, Any]) -> None:
        kind = delta.get("type")
        if kind == "text_delta" and isinstance(text := delta.get("text"), str):
            self._say(block, text)
        elif kind == "input_json_delta" and isinstance(piece := delta.get("partial_json"), str):
            block.pieces.append(piece)
            self.progress += bool(piece)
        elif kind == "thinking_delta" and isinstance(thought := delta.get("thinking"), str):
            block.pieces.append(thought)
            self.progress += bool(thought)
        elif kind == "signature_delta" and isinstance(signature := delta.get("signature"), str):
            block.signature.append(signature)
            self.progress += 1

    def _say(self, block: _Block, text: str) -> None:
        if text:
            block.pieces.append(text)
            self._fresh.append(text)
            self.progress += 1

    def _add_usage(self, usage: Any, *, final: bool = False) -> None:
        """Counts are running totals per field: a later one replaces the earlier, a missing one leaves it.

        The first event counts the prompt, and of the answer a token or so; only a later one counts what was written.
        """
        if isinstance(usage, dict):
            self._usage.update((key, value) for key, value in usage.items() if value is not None)
            self._counted |= final and usage.get("output_tokens") is not None

    def _stop(self, reason: str, data: bytes) -> None:
        if reason == "refusal":
            raise Broken("content_policy", "the model refused (stop reason refusal)", data)
        if reason == "model_context_window_exceeded":
            raise Broken("context_overflow", "the conversation no longer fits the model's window", data)
        self.finish_reason = reason
        self.finished = True

    # --- what has come ---

    def fresh_text(self) -> str:
        fresh, self._fresh = "".join(self._fresh), []
        return fresh

    def usage(self) -> Usage | None:
        return anthropic_usage(self._usage)

    @property
    def counted(self) -> bool:
        return self._counted and self.usage() is not None

    def notes(self) -> tuple[str, ...]:
        return ()

    def unseen(self) -> Iterable[tuple[Sequence[object], bool]]:
        if self._blocks and self._blocks[-1].kind != "text":
            yield self._blocks[-1].pieces, self._blocks[-1].kind == "tool_use"

    def written(self) -> str:
        return "".join(f"{block.head.get('name') or ''}{block.text()}" for block in self._blocks)

    def text(self) -> str:
        return "".join(block.text() for block in self._blocks if block.kind == "text")

    def calls(self) -> tuple[ToolCall, ...]:
        """Raises Broken for a call without a name."""
        found = []
        taken: set[str] = set()
        for block in self._blocks:
            if block.kind != "tool_use":
                continue
            name, wire_id, call = block.head.get("name"), block.head.get("id"), new_id()
            if not isinstance(name, str) or not name:
                raise Broken("malformed_response", "a tool call without a name")
            if not isinstance(wire_id, str) or not wire_id or wire_id in taken:
                wire_id = "toolu_" + call.replace("-", "")
            taken.add(wire_id)
            found.append(ToolCall(call=call, wire_id=wire_id, name=name, args=block.input()))
        return tuple(found)

    def kept(self) -> dict[str, Any] | None:
        """The thinking blocks, which the provider checks against their signatures when they come back, in their place:
        a number stands for so many characters of text, None for a call."""
        if not any(block.kind in _THINKING for block in self._blocks):
            return None
        order: list[Any] = []
        for block in self._blocks:
            if block.kind in _THINKING:
                order.append(self._thinking(block))
            elif block.kind == "tool_use":
                order.append(None)
            elif block.kind == "text":
                order.append(len(block.text()))
        return {"blocks": order}

    def raw_blocks(self) -> list[dict[str, Any]]:
        """Every block as it would be in a whole message; blank text left out, which the API does not take back."""
        found = []
        for block in self._blocks:
            if block.kind == "text":
                if block.text().strip():
                    found.append({"type": "text", "text": block.text()})
            elif block.kind in _THINKING:
                found.append(self._thinking(block))
            elif block.kind.endswith("tool_use"):
                text = block.input()
                found.append({**block.head, "input": wire.loads(text.encode()) if wire.is_object(text) else {}})
            elif block.kind:
                found.append(block.head)
        return found

    def _thinking(self, block: _Block) -> dict[str, Any]:
        if block.kind == "redacted_thinking":
            return {"type": "redacted_thinking", "data": block.head.get("data")}
        return {"type": "thinking", "thinking": block.text(), "signature": "".join(block.signature)}
