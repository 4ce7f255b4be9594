"""The request log: when each request came, when its first byte left, and when and how its socket was done with."""

from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agents.events import stamp
from agents.ids import new_id

KEPT = 10_000


@dataclass(slots=True, kw_only=True)
class Entry:
    """One request. `how` is None while it is open, then `completed`, `client_gone` or `refused`."""

    id: str
    model: str
    marker: str | None
    started: datetime
    first_byte: datetime | None = None
    closed_at: datetime | None = None
    how: str | None = None

    def begun(self) -> None:
        self.first_byte = datetime.now(UTC)

    def closed(self, how: str) -> None:
        if self.how is None:
            self.closed_at = datetime.now(UTC)
            self.how = how

    def row(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "model": self.model,
            "marker": self.marker,
            "started": stamp(self.started),
            "first_byte": self.first_byte and stamp(self.first_byte),
            "closed_at": self.closed_at and stamp(self.closed_at),
            "how": self.how,
        }


class RequestLog:
    """The latest requests, oldest first; older ones are forgotten past `KEPT`, and `dropped` counts them."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque(maxlen=KEPT)
        self._seen = 0

    def open(self, model: str, marker: str | None) -> Entry:
        entry = Entry(id=new_id(), model=model, marker=marker, started=datetime.now(UTC))
        self._entries.append(entry)
        self._seen += 1
        return entry

    def reset(self) -> None:
        self._entries.clear()
        self._seen = 0

    def rows(self, *, model: str | None = None, marker: str | None = None, still_open: bool = False) -> dict[str, Any]:
        found = [
            entry.row()
            for entry in self._entries
            if (model is None or entry.model == model)
            and (marker is None or entry.marker == marker)
            and not (still_open and entry.how)
        ]
        return {
            "requests": found,
            "open": sum(1 for row in found if row["how"] is None),
            "dropped": self._seen - len(self._entries),
        }
