"""Provider fields that we only keep and give back: reasoning text, thinking blocks, signatures."""

from collections.abc import Iterable
from typing import Any

_GROWS = ("text", "summary", "data", "thinking")


class Opaque:
    """Collects streamed pieces; they are joined once, at the end, since joining piece by piece would be quadratic."""

    __slots__ = ("_fields",)

    def __init__(self) -> None:
        self._fields: dict[str, list[Any]] = {}

    def add(self, key: str, value: Any) -> bool:
        """Take a piece of a field. Returns whether there was anything in it."""
        if value is None or value == "" or value == [] or value == {}:
            return False
        self._fields.setdefault(key, []).append(value)
        return True

    def streams(self) -> Iterable[list[Any]]:
        """The pieces of each field."""
        return self._fields.values()

    def text(self) -> str:
        """The text among it, for counting."""
        return "".join(piece for pieces in self._fields.values() for piece in pieces if isinstance(piece, str))

    def result(self) -> dict[str, Any]:
        """Text joined, lists joined with their blocks merged, anything else as it came last."""
        return {key: _joined(pieces) for key, pieces in self._fields.items()}


def _joined(pieces: list[Any]) -> Any:
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(pieces)
    if all(isinstance(piece, list) for piece in pieces):
        return _merged([item for piece in pieces for item in piece])
    return pieces[-1]


def _merged(items: list[Any]) -> list[Any]:
    """A piece of a block goes on with the block of its index and type; without an index it is a block of its own."""
    blocks: dict[Any, dict[str, list[Any]]] = {}
    order: list[Any] = []
    for item in items:
        if not isinstance(item, dict) or item.get("index") is None:
            order.append(item)
            continue
        key = (str(item["index"]), str(item.get("type")))
        if key not in blocks:
            blocks[key] = {}
            order.append(blocks[key])
        for name, value in item.items():
            blocks[key].setdefault(name, []).append(value)
    merging = {id(block) for block in blocks.values()}
    return [_block(item) if id(item) in merging else item for item in order]


def _block(pieces: dict[str, list[Any]]) -> dict[str, Any]:
    block = {}
    for name, values in pieces.items():
        told = [value for value in values if value is not None]
        grows = name in _GROWS and all(isinstance(value, str) for value in told)
        block[name] = "".join(told) if grows and told else told[-1] if told else None
    return block
