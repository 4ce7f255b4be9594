"""What a call gave back, however large: in slices, none of which needs the whole in memory."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
from django.db.models import BinaryField
from django.db.models.functions import Substr

from control.runs.models import Artifact, Call, Event

# As much as a page shows at once: a browser lays out a single line of this length without being felt.
SLICE = 64_000
_PIECE = 512 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """A result by its bytes; `total` of them. What is no longer kept is told in `note`."""

    name: str
    args: Any
    total: int
    note: str = ""
    inline: bytes | None = None
    sha256: str = ""

    def read(self, at: int, size: int) -> bytes:
        if self.inline is not None:
            return self.inline[at : at + size]
        piece = Substr("content", at + 1, size, output_field=BinaryField())
        return bytes(Artifact.objects.filter(pk=self.sha256).values_list(piece, flat=True).first() or b"")

    def slice(self, at: int) -> tuple[str, int | None]:
        """The text from here, and where the next slice begins: at a line's end where one is near, never in a letter."""
        piece = self.read(at, SLICE)
        if at + len(piece) >= self.total:
            return piece.decode(errors="replace"), None
        piece = piece[: _cut(piece)]
        return piece.decode(errors="replace"), at + len(piece)

    def chunks(self) -> Iterator[bytes]:
        for at in range(0, self.total, _PIECE):
            yield self.read(at, _PIECE)


def _cut(piece: bytes) -> int:
    line = piece.rfind(b"\n", len(piece) * 3 // 4)
    if line >= 0:
        return line + 1
    # Neither inside an escape of a terminal nor inside a letter.
    escape = piece.rfind(b"\x1b", max(1, len(piece) - 300))
    return escape if escape > 0 else len(piece) - _torn(piece)


def _torn(piece: bytes) -> int:
    """How many bytes at the end begin a letter that does not end here."""
    for back in range(1, min(4, len(piece)) + 1):
        byte = piece[-back]
        if byte & 0xC0 != 0x80:
            needs = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return back if needs > back else 0
    return 0


def of_call(run_id: str, call: str) -> Payload | None:
    """The result of a call; None while it has none."""
    row = Call.objects.filter(run_id=run_id, id=call).values_list("completed_seq", flat=True).first()
    body = Event.objects.filter(run_id=run_id, seq=row).values_list("body", flat=True).first() if row else None
    if body is None:
        return None
    data = orjson.loads(body)["data"]
    text = str(data.get("result") or data.get("text") or "").encode("utf-8", "replace")
    name, args = str(data.get("name") or ""), data.get("args")
    artifact = data.get("artifact")
    if isinstance(artifact, dict):
        sha256 = str(artifact.get("sha256"))
        size = Artifact.objects.filter(pk=sha256).values_list("size", flat=True).first()
        if size is not None:
            return Payload(name=name, args=args, total=size, sha256=sha256)
        note = "The whole result is no longer kept; this is its head and tail."
        return Payload(name=name, args=args, total=len(text), inline=text, note=note)
    return Payload(name=name, args=args, total=len(text), inline=text)
