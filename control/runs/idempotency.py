"""The answer once given to a POST with this key, so that a repeat gets the same answer and does nothing.

`claim`, the act itself and `keep` belong into one transaction: then a crash in between leaves neither the act nor the
key, and a duplicate that comes meanwhile waits in `claim` until the first one has committed.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from django.db import OperationalError, transaction
from django.utils import timezone

from control.runs.models import IdempotencyKey

LONGEST = 200


class BadKey(Exception):
    """The key is empty or too long; the text says what to do."""


class Conflict(Exception):
    """The key was used for another request."""


class InProgress(Exception):
    """The first request with this key has not been answered yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What was answered the first time. `answer` is plain JSON."""

    status: int
    answer: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One request's hold on its key."""

    row: int


def claim(*, actor: str, key: str, route: str, body: bytes) -> Claim | Kept:
    """Take the key for this request, or get the answer kept for it. Call inside a transaction.

    Raises BadKey, Conflict (other body), InProgress (the first one is not answered and does not hold the row).
    """
    assert transaction.get_connection().in_atomic_block, "claim, act and keep must be one transaction"
    if not 0 < len(key) <= LONGEST or not key.isprintable():
        raise BadKey(f"An Idempotency-Key has 1 to {LONGEST} printable characters.")
    wanted = hashlib.sha256(body).hexdigest()
    try:
        row = _insert(actor, key, route, wanted)
    except OperationalError as error:
        # SQLite: the other writer held the database for longer than the busy timeout.
        raise InProgress from error
    if row is not None:
        return Claim(row=row)
    kept = IdempotencyKey.objects.filter(actor=actor, key=key, route=route).first()
    if kept is None or kept.status is None:
        raise InProgress
    if kept.request_sha256 != wanted:
        raise Conflict
    return Kept(status=kept.status, answer=kept.answer)


def _insert(actor: str, key: str, route: str, request_sha256: str) -> int | None:
    """The id of the new row; None if the key is taken. One statement, for this is on the way of every stop; it waits
    for another transaction that has inserted the same key, and needs no savepoint when the key is taken."""
    connection = transaction.get_connection()
    now = connection.ops.adapt_datetimefield_value(timezone.now())
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO runs_idempotencykey (actor, key, route, request_sha256, created_at) "
            "VALUES (%s, %s, %s, %s, %s) ON CONFLICT (actor, key, route) DO NOTHING RETURNING id",
            [actor, key, route, request_sha256, now],
        )
        found = cursor.fetchone()
    return found[0] if found else None


def keep(held: Claim, *, status: int, answer: Any) -> None:
    """Keep the answer. The same transaction as the act."""
    IdempotencyKey.objects.filter(pk=held.row).update(status=status, answer=answer)
