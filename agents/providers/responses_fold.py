"""Folds the events of OpenAI's responses API, or a whole response, into the parts of an answer."""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from agents.ids import new_id
from agents.messages import ToolCall, Usage
from agents.providers import wire
from agents.providers.failures import names_error
from agents.providers.stream import Broken
from agents.providers.usage import money, read_openai

_PINGS = frozenset({"ping", "keepalive", "heartbeat", "response.keepalive"})
_MORE = frozenset({"phase"})


class _Item:
    """One output item in the making. `pieces` are its text or its arguments, by type."""

    __slots__ = ("done", "head", "kind", "pieces", "refusal", "thoughts")

    def __init__(self, head: dict[str, Any]) -> None:
        self.head = head
        self.kind = str(head.get("type") or "")
        self.pieces: list[str] = []
        self.refusal: list[str] = []
        self.thoughts: list[str] = []
        self.done = False

    def text(self) -> str:
        return "".join(self.pieces)

    def args(self) -> str:
        text = self.text()
        return text if text.strip() else "{}"


class ResponseFold:
    """One answer in the making. Unknown events are ignored; a completed item counts before its pieces."""

    mark = b"[DONE]"

    def __init__(self) -> None:
        self.progress = 0
        self.finished = False
        self.ended = False
        self.finish_reason: str | None = None
        self._items: list[_Item] = []
        self._at: dict[str, _Item] = {}
        self._fresh: list[str] = []
        self._usage: dict[str, Any] | None = None

    # --- what comes in ---

    def event(self, name: str, data: bytes) -> None:
        if not data.strip() or name in _PINGS:
            return
        try:
            value = orjson.loads(data)
        except ValueError:
            if data.strip() == self.mark:
                self.ended = True
                return
            if names_error(name):
                raise Broken(None, "an error event", b"event: error\ndata: " + data) from None
            try:
                value = wire.loads(data)
            except wire.NotJSON as error:
                raise Broken("malformed_response", f"a frame that is no JSON ({error})", data) from None
        if not isinstance(value, dict):
            raise Broken("malformed_response", "a frame that is no object", data)
        self._take(str(value.get("type") or name), value, data)

    def document(self, value: Any, body: bytes) -> None:
        """A whole response in place of a stream."""
        if not isinstance(value, dict) or not isinstance(value.get("output"), list):
            raise Broken(None, "the answer is no response", body)
        self._end(str(value.get("status") or "completed"), value, body)

    def _take(self, kind: str, value: dict[str, Any], data: bytes) -> None:
        if kind.endswith(".delta"):
            self._delta(kind, value)
        elif kind in ("response.output_item.added", "response.output_item.done"):
            if isinstance(head := value.get("item"), dict):
                self._item(self._key(value, head), head, done=kind.endswith("done"))
        elif kind in ("response.output_text.done", "response.function_call_arguments.done", "response.refusal.done"):
            self._whole(kind, value)
        elif kind in ("response.completed", "response.incomplete", "response.failed", "response.cancelled"):
            box = value.get("response")
            self._end(kind.partition(".")[2], box if isinstance(box, dict) else {}, data)
        elif kind == "error" or (value.get("error") and not value.get("response")):
            raise Broken(None, "an error event", data)
        elif kind not in _PINGS and not kind.startswith("response.") and (value.get("choices") or not kind):
            raise Broken("malformed_response", "an event of another API; check the provider and the base URL", data)

    def _delta(self, kind: str, value: dict[str, Any]) -> None:
        delta = value.get("delta")
        if not isinstance(delta, str) or not delta:
            return
        if kind == "response.output_text.delta":
            self._say(self._of(value, "message"), delta)
        elif kind == "response.function_call_arguments.delta":
            self._of(value, "function_call").pieces.append(delta)
            self.progress += 1
        elif kind == "response.refusal.delta":
            self._of(value, "message").refusal.append(delta)
            self.progress += 1
        elif kind.startswith("response.reasoning"):
            self._of(value, "reasoning").thoughts.append(delta)
            self.progress += 1

    def _whole(self, kind: str, value: dict[str, Any]) -> None:
        """The end of a part says it once more; for a server that streams no pieces it is the only time."""
        if kind == "response.output_text.done" and isinstance(text := value.get("text"), str):
            item = self._of(value, "message")
            if not item.pieces:
                self._say(item, text)
        elif kind == "response.function_call_arguments.done" and isinstance(args := value.get("arguments"), str):
            item = self._of(value, "function_call")
            item.pieces = [args]
            if isinstance(name := value.get("name"), str) and name:
                item.head.setdefault("name", name)
            self.progress += 1
        elif isinstance(refusal := value.get("refusal"), str):
            self._of(value, "message").refusal = [refusal]

    def _key(self, value: dict[str, Any], head: dict[str, Any]) -> str:
        index = value.get("output_index")
        return f"#{index}" if index is not None else str(head.get("id") or value.get("item_id") or len(self._items))

    def _of(self, value: dict[str, Any], kind: str) -> _Item:
        """The item of a piece; opened here if its opening never came."""
        index = value.get("output_index")
        key = f"#{index}" if index is not None else str(value.get("item_id") or "")
        item = self._at.get(key)
        if item is None and index is None and self._items and self._items[-1].kind == kind:
            return self._items[-1]
        return item if item is not None else self._open(key, {"type": kind})

    def _open(self, key: str, head: dict[str, Any]) -> _Item:
        item = self._at[key] = _Item(head)
        self._items.append(item)
        self.progress += 1
        return item

    def _item(self, key: str, head: dict[str, Any], *, done: bool) -> None:
        self._put(self._at.get(key) or self._open(key, head), head, done=done)

    def _told(self, index: int, head: dict[str, Any]) -> _Item | None:
        """The item of the whole response that has come before: by its place there, by its id, or by its place here.

        Some servers leave out the places, others give every event another id.
        """
        placed, here = self._at.get(f"#{index}"), self._items[index : index + 1]
        known = [item for item in self._items if head.get("id") and item.head.get("id") == head.get("id")]
        kind = head.get("type")
        return next((item for item in (placed, *known, *here) if item is not None and item.kind == kind), None)

    def _put(self, item: _Item, head: dict[str, Any], *, done: bool) -> None:
        item.head = {**item.head, **head}
        item.kind = str(item.head.get("type") or item.kind)
        item.done = item.done or done
        if item.kind == "message" and done:
            told, refusal = _message_text(head)
            if told and not item.pieces:
                self._say(item, told)
            if refusal:
                item.refusal = [refusal]
        elif item.kind == "function_call" and isinstance(args := head.get("arguments"), str) and args:
            item.pieces = [args]
        if done:
            self.progress += 1

    def _say(self, item: _Item, text: str) -> None:
        if text:
            item.pieces.append(text)
            self._fresh.append(text)
            self.progress += 1

    def _end(self, status: str, response: dict[str, Any], data: bytes) -> None:
        """The last event holds the whole response; what was lost on the way is taken from it."""
        if isinstance(usage := response.get("usage"), dict):
            self._usage = usage
        output = response.get("output")
        for index, head in enumerate(output if isinstance(output, list) else []):
            if isinstance(head, dict):
                self._put(self._told(index, head) or self._open(f"#{index}", head), head, done=True)
        if status in ("failed", "cancelled"):
            error = response.get("error")
            raise Broken(None, f"the response {status}", orjson.dumps({"error": error}) if error else data)
        if status == "incomplete":
            details = response.get("incomplete_details")
            reason = str(details.get("reason") if isinstance(details, dict) else "") or "incomplete"
            if reason == "content_filter":
                raise Broken("content_policy", "the provider's filter ended the answer (content_filter)", data)
            self.finish_reason = "length" if "token" in reason or reason == "length" else reason
        elif status == "completed":
            self.finish_reason = "tool_calls" if any(item.kind == "function_call" for item in self._items) else "stop"
        else:
            raise Broken("malformed_response", f"a response that is {status}", data)
        self.finished = self.ended = True

    # --- what has come ---

    def fresh_text(self) -> str:
        fresh, self._fresh = "".join(self._fresh), []
        return fresh

    def usage(self) -> Usage | None:
        return read_openai(self._usage)[0] if self._usage else None

    @property
    def counted(self) -> bool:
        return self.usage() is not None

    def notes(self) -> tuple[str, ...]:
        return read_openai(self._usage)[1] if self._usage else ()

    def cost(self) -> str | None:
        """What a gateway says that it cost."""
        return money(self._usage.get("cost")) if self._usage else None

    def unseen(self) -> Iterable[tuple[Sequence[object], bool]]:
        for item in self._items[-1:]:
            yield item.thoughts, False
            if item.kind == "function_call":
                yield item.pieces, True

    def written(self) -> str:
        return "".join(
            "".join((str(item.head.get("name") or ""), *item.thoughts, *item.pieces, *item.refusal))
            for item in self._items
        )

    def text(self) -> str:
        return "".join(item.text() for item in self._items if item.kind == "message")

    def refusal(self) -> str:
        return "".join("".join(item.refusal) for item in self._items)

    def calls(self) -> tuple[ToolCall, ...]:
        """Raises Broken for a call without a name."""
        found = []
        taken: set[str] = set()
        for item in self._items:
            if item.kind != "function_call":
                continue
            name, wire_id, call = item.head.get("name"), item.head.get("call_id") or item.head.get("id"), new_id()
            if not isinstance(name, str) or not name:
                raise Broken("malformed_response", "a tool call without a name")
            if not isinstance(wire_id, str) or not wire_id or wire_id in taken:
                wire_id = "call_" + call.replace("-", "")
            taken.add(wire_id)
            found.append(ToolCall(call=call, wire_id=wire_id, name=name, args=item.args()))
        return tuple(found)

    def kept(self) -> dict[str, Any] | None:
        """Reasoning items that can go back, in their place. Without their encrypted content they mean something only to
        a server that stored them."""
        order: list[dict[str, Any]] = []
        for item in self._items:
            if item.kind == "reasoning" and item.head.get("encrypted_content"):
                order.append({"reasoning": {"summary": [], **item.head}})
            elif item.kind == "function_call":
                order.append({"call": None})
            elif item.kind == "message":
                more = {name: value for name, value in item.head.items() if name in _MORE and value is not None}
                order.append({"text": len(item.text()), **more})
        return {"items": order} if any(e.keys() - {"text", "call"} for e in order) else None


def _message_text(head: dict[str, Any]) -> tuple[str, str]:
    """Text and refusal of a complete message item."""
    parts = [part for part in head.get("content") or () if isinstance(part, dict)] if _listed(head) else []
    text = "".join(str(part.get("text") or "") for part in parts if part.get("type") in ("output_text", "text"))
    return text, "".join(str(part.get("refusal") or "") for part in parts if part.get("type") == "refusal")


def _listed(head: dict[str, Any]) -> bool:
    return isinstance(head.get("content"), list)
