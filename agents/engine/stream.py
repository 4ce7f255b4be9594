"""The text of one attempt as it arrives."""

from agents.ports import LiveText


class Stream:
    __slots__ = ("_attempt", "_call", "_live", "_pieces", "offset")

    def __init__(self, live: LiveText, call: str, attempt: int) -> None:
        self._live = live
        self._call = call
        self._attempt = attempt
        self._pieces: list[str] = []
        self.offset = 0

    def on_text(self, piece: str) -> None:
        self._live.delta(self._call, self._attempt, self.offset, piece)
        self._pieces.append(piece)
        self.offset += len(piece)

    def text(self) -> str:
        return "".join(self._pieces)

    def withdraw(self) -> None:
        """What came is no part of an answer."""
        if self.offset:
            self._live.withdrawn(self._call, self._attempt)
