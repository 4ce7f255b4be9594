"""Events as the log keeps them: drafted, encoded once, decoded; the kinds themselves are in `kinds.py`.

An event's body (`data`) is serialised once, when the event is drafted; those bytes are stored, published and sent.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import orjson

from agents.kinds import ALWAYS, JSON, KINDS, REQUIRED, Body, Unknown

SCHEMA_VERSION = 1

# Names on the wire that are no Python names.
TO_WIRE: dict[str, dict[str, str]] = {
    "run.waiting": {"reason": "for"},
    "call.started": {"concurrency": "class"},
    "command.received": {"command_kind": "kind"},
    "credential.rotated": {"from_": "from"},
    "model.fell_back": {"from_": "from"},
}
FROM_WIRE = {kind: {wire: own for own, wire in names.items()} for kind, names in TO_WIRE.items()}
NO_NAMES: dict[str, str] = {}


# One recording time stamps a whole batch, and a time that was just sent is stored next: most stamps repeat.
@lru_cache(maxsize=256)
def stamp(moment: datetime) -> str:
    """RFC 3339 in UTC with microseconds, e.g. `2026-01-31T23:59:59.000001Z`."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    # A fifth of the time of strftime, and every event is stamped twice.
    return moment.isoformat(timespec="microseconds")[:26] + "Z"


def body_to_json(body: Body) -> dict[str, Any]:
    """The `data` object of an event as plain values."""
    if isinstance(body, Unknown):
        return dict(body.raw)
    names = TO_WIRE.get(body.kind, NO_NAMES)
    always = ALWAYS[body.kind]
    out: dict[str, Any] = {}
    for name in body._names:
        value = getattr(body, name)
        if value is not None or name in always:
            out[names.get(name, name)] = value
    return out


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An event before the log has given it a `seq` and a recording time.

    `stamped` is `at` as text. What stands in the envelope between those two (`middle`) and behind them (`tail`, with
    the body) is serialised.
    """

    kind: str
    turn: int | None
    call: str | None
    at: datetime
    stamped: str
    body: Body
    middle: bytes
    tail: bytes


def draft(body: Body, *, at: datetime, turn: int | None = None, call: str | None = None) -> Draft:
    """Serialise a body once. Raises TypeError if it holds what JSON cannot (values are made safe before)."""
    kind = body.name if isinstance(body, Unknown) else body.kind
    number = b"null" if turn is None else b"%d" % turn
    name = b"null" if call is None else b'"%b"' % call.encode()
    data = orjson.dumps(body_to_json(body))
    stamped = stamp(at)
    return Draft(
        kind=kind,
        turn=turn,
        call=call,
        at=at,
        stamped=stamped,
        body=body,
        middle=b',"at":"%b","ts":"' % stamped.encode(),
        tail=b'","kind":"%b","turn":%b,"call":%b,"data":%b,"v":%d}'
        % (kind.encode(), number, name, data, SCHEMA_VERSION),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A recorded event. `at` is when it happened, `ts` when the log recorded it (database time)."""

    run: str
    root: str
    seq: int
    at: datetime
    ts: datetime
    kind: str
    turn: int | None
    call: str | None
    data: Body
    v: int = SCHEMA_VERSION


def encode(item: Draft, *, run: str, root: str, seq: int, ts: datetime) -> bytes:
    """The whole envelope as it is stored and sent; the body's bytes are spliced in, not serialised again."""
    return b"%b%d%b%b%b" % (opening(run, root), seq, item.middle, stamp(ts).encode(), item.tail)


def opening(run: str, root: str) -> bytes:
    """How every envelope of a run begins, up to its `seq`."""
    return b'{"run":"%b","root":"%b","seq":' % (run.encode(), root.encode())


def decode(text: bytes | str) -> Event:
    """An envelope back to an event; kinds and fields of other versions survive as `Unknown` or are dropped.

    Raises ValueError (orjson.JSONDecodeError) if the text is no JSON.
    """
    raw = orjson.loads(text)
    return Event(
        run=raw["run"],
        root=raw["root"],
        seq=raw["seq"],
        at=datetime.fromisoformat(raw["at"]),
        ts=datetime.fromisoformat(raw["ts"]),
        kind=raw["kind"],
        turn=raw["turn"],
        call=raw["call"],
        data=body_from_json(raw["kind"], raw["data"]),
        v=raw.get("v", SCHEMA_VERSION),
    )


def body_from_json(kind: str, data: JSON) -> Body:
    """The typed body of a `data` object; `Unknown` if the kind or a required field is not known here."""
    cls = KINDS.get(kind)
    if cls is None or not REQUIRED[kind] <= {FROM_WIRE.get(kind, NO_NAMES).get(k, k) for k in data}:
        return Unknown(name=kind, raw=data)
    names = FROM_WIRE.get(kind, NO_NAMES)
    known = set(cls._names)
    return cls(**{own: v for k, v in data.items() if (own := names.get(k, k)) in known})
