"""Tool calls put together from their fragments, however a server labels them; no call is ever dropped in silence."""

from typing import Any

from agents.ids import new_id
from agents.messages import ToolCall
from agents.providers import wire


class Unattributable(ValueError):
    """A fragment that belongs to no call that we know of, or a call without a name."""


class _Slot:
    """One call in the making. `args` are pieces: a file of a megabyte comes in thousands of them."""

    __slots__ = ("args", "extra", "id", "index", "name")

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.args: list[str] = []
        self.extra: dict[str, Any] = {}

    def text(self) -> str:
        if len(self.args) > 1:
            self.args = ["".join(self.args)]
        return self.args[0] if self.args else ""

    def complete(self) -> bool:
        return wire.is_object(self.text())


class Assembler:
    """Finds the call of a fragment by its id, then by its index, then takes the one opened last."""

    __slots__ = ("_by_id", "_by_index", "_slots", "progress")

    def __init__(self) -> None:
        self._slots: list[_Slot] = []
        self._by_id: dict[str, _Slot] = {}
        self._by_index: dict[int, _Slot] = {}
        self.progress = 0

    def __len__(self) -> int:
        return len(self._slots)

    def feed(self, entries: Any, *, whole: bool = False) -> None:
        """The `tool_calls` of one delta; with `whole`, of a complete message. Raises Unattributable."""
        if isinstance(entries, dict):
            entries = [entries]
        if not isinstance(entries, list):
            raise Unattributable("tool_calls is no list")
        for position, entry in enumerate(entries):
            if entry is None:
                continue
            if not isinstance(entry, dict):
                raise Unattributable("a tool call that is no object")
            self._fragment(entry, fresh=whole or position > 0, whole=whole)

    def _fragment(self, entry: dict[str, Any], *, fresh: bool, whole: bool) -> None:
        function = entry.get("function")
        if not isinstance(function, dict):
            function = custom if isinstance(custom := entry.get("custom"), dict) else entry
        name = function.get("name")
        if not isinstance(name, str):
            name = ""
        args = function.get("arguments", function.get("input"))
        if args is None:
            args = ""
        elif not isinstance(args, str):
            args = wire.dumps(args).decode()
        slot = self._slot_of(entry.get("id"), _index(entry.get("index")), name, args, fresh=fresh, whole=whole)
        if slot is None:
            return
        if name:
            slot.name = _joined(slot.name, name)
            self.progress += 1
        if args:
            if len(slot.args) == 1 and slot.args[0].strip() == "{}":
                # Some relays open with an empty object and then stream the real one.
                slot.args.clear()
            slot.args.append(args)
            self.progress += 1
        for source in (entry, function):
            if not source.keys() <= _PLAIN_KEYS:
                slot.extra.update((k, v) for k, v in source.items() if v is not None and is_opaque(k))

    def _slot_of(
        self, raw_id: Any, index: int | None, name: str, args: str, *, fresh: bool, whole: bool
    ) -> _Slot | None:
        """The call that a fragment belongs to, opened if need be; None for the repetition of a complete call."""
        wire_id = raw_id if isinstance(raw_id, str) else "" if raw_id is None else str(raw_id)
        if whole:
            return self._open(wire_id, index)
        at_index = self._by_index.get(index) if index is not None else None
        if wire_id and (known := self._by_id.get(wire_id)) is not None:
            if name and index is not None and known.index not in (None, index):
                # One id for several calls: the index tells them apart.
                return at_index or self._open(wire_id, index)
            if name and known.complete() and wire.is_object(args):
                return None if args == known.text() else self._open(wire_id, index)
            return known
        if wire_id:
            # A new id opens a call, unless a server makes up a new id for every nameless fragment at one index.
            return at_index if at_index is not None and not name else self._open(wire_id, index)
        if index is not None:
            if at_index is None or (name and args and at_index.complete()):
                return self._open("", index)
            return at_index
        last = self._slots[-1] if self._slots else None
        if name and (last is None or fresh or (args and last.complete())):
            return self._open("", index)
        if last is None:
            raise Unattributable("a fragment of a tool call without id, index or name while no call is open")
        return last

    def _open(self, wire_id: str, index: int | None) -> _Slot:
        slot = _Slot(index)
        self._slots.append(slot)
        self.progress += 1
        if wire_id:
            slot.id = wire_id
            self._by_id.setdefault(wire_id, slot)
        if index is not None:
            self._by_index[index] = slot
        return slot

    def all_complete(self) -> bool:
        """Whether every call has arguments that are a JSON object; no text at all stands for no arguments."""
        return all(slot.complete() or not slot.text().strip() for slot in self._slots)

    def calls(self) -> tuple[ToolCall, ...]:
        """The calls in the order in which they were opened, wire ids unique among them. Raises Unattributable."""
        taken: set[str] = set()
        found = []
        for slot in self._slots:
            if not slot.name:
                raise Unattributable("a tool call without a name")
            call = new_id()
            wire_id = slot.id
            if not wire_id or wire_id in taken:
                # Nine letters and digits: the strictest form that a server asks for.
                wire_id = call.replace("-", "")[-9:]
            taken.add(wire_id)
            found.append(ToolCall(call=call, wire_id=wire_id, name=slot.name, args=slot.text()))
        return tuple(found)

    def latest(self) -> list[str]:
        """The arguments of the call that came last, in pieces."""
        return self._slots[-1].args if self._slots else []

    def written(self) -> str:
        """Names and arguments so far, for counting."""
        return "".join(slot.name + slot.text() for slot in self._slots)

    def extras(self) -> list[dict[str, Any]] | None:
        """Opaque fields of the calls, one entry per call in the same order; None when there are none."""
        extras = [slot.extra for slot in self._slots]
        return extras if any(extras) else None


def _index(value: Any) -> int | None:
    if value.__class__ is int:
        return int(value)
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else None


def _joined(name: str, piece: str) -> str:
    """A repeated name stays, a growing one is replaced, and a name that really comes in two pieces is joined."""
    return piece if piece.startswith(name) else name + piece


_PLAIN_KEYS = frozenset({"id", "index", "type", "function", "name", "arguments"})
_OPAQUE_WORDS = ("reason", "think", "thought", "signature", "encrypted", "opaque", "extra_content", "provider_")


def is_opaque(key: str) -> bool:
    """Whether a field that we do not know is a provider's own state, which it wants back (reasoning, signatures)."""
    return any(word in key for word in _OPAQUE_WORDS)
