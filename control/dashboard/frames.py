"""The bytes that go out on sockets, each built once and shared by every viewer that gets it."""

from collections.abc import Iterable
from typing import Any

import orjson

from agents.events import stamp
from control.dashboard.documents import Kept
from control.dashboard.render import patch


def hello(last_seq: int, epoch: int) -> bytes:
    return b'{"type":"hello","last_seq":%d,"epoch":%d}' % (last_seq, epoch)


def events(joined: bytes) -> bytes:
    """Envelopes as they are stored, already joined by commas."""
    return b'{"type":"events","events":[%b]}' % joined


def patch_frame(seq: int, joined: bytes) -> bytes:
    """Steps that bring a page up to `seq`."""
    return b'{"type":"patches","seq":%d,"patches":[%b]}' % (seq, joined)


def side_frame(joined: bytes) -> bytes:
    """Parts that belong to no `seq`: numbers, family, receipts. Each stands for itself."""
    return b'{"type":"patches","patches":[%b]}' % joined


def resync(after: int) -> bytes:
    return b'{"type":"resync","after":%d}' % after


def heartbeat(last_seq: int | None, now: Any) -> bytes:
    return orjson.dumps({"type": "heartbeat", "last_seq": last_seq, "ts": stamp(now)})


def refusal(code: str, **detail: Any) -> bytes:
    return orjson.dumps({"type": "refused", "code": code, **detail})


def delta(call: str, attempt: int, offset: int, text: str) -> bytes:
    return orjson.dumps({"type": "delta", "call": call, "attempt": attempt, "offset": offset, "text": text})


def withdrawn(call: str, attempt: int) -> bytes:
    return orjson.dumps({"type": "withdrawn", "call": call, "attempt": attempt})


def replace(id: str, html: str) -> bytes:
    return orjson.dumps({"op": "replace", "target": id, "id": id, "html": html})


def patches(kept: Kept, after: int) -> list[dict[str, Any]]:
    """What changed on the page after a cursor; call with the document's lock held."""
    document = kept.fold.document
    return [patch(document, change) for change in document.since(after)]


def joined(items: Iterable[dict[str, Any]]) -> bytes:
    return b",".join(orjson.dumps(item) for item in items)
