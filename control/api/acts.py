"""One act of one caller: idempotent by key, audited, all in one transaction."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from django.db import transaction
from django.http import HttpRequest, HttpResponse

from control.accounts import audit
from control.accounts.roles import Actor
from control.api.answers import answer, plain
from control.api.errors import ApiError, as_api_error
from control.runs import idempotency

REPLAYED = "Idempotency-Replayed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What an act came to. `result` is the word for the audit trail; `before` and `after` are kept there too."""

    body: Any
    status: int = 202
    result: str = "ok"
    target: str | None = None
    before: Any = None
    after: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What is to be done: the verb, what it hits, and the reason or filter that the audit trail keeps."""

    action: str
    target: str
    reason: str | None = None
    filter: Any = None


def actor_of(request: HttpRequest) -> Actor:
    """The caller whom the route's `auth` has identified."""
    known: Actor = request.auth  # type: ignore[attr-defined]
    return known


def perform(
    request: HttpRequest, act: Act, work: Callable[[], Done], then: Callable[[], None] | None = None
) -> HttpResponse:
    """Do the work once per Idempotency-Key. A refusal is audited as well, after its transaction is undone.

    `then` follows after the commit, and not when an earlier answer is repeated.
    """
    actor = actor_of(request)
    try:
        answered = _attempt(request, actor, act, work)
    except Exception as error:
        refusal = as_api_error(error)
        if refusal is None:
            raise
        audit.record(actor, act.action, act.target, reason=act.reason, filter=act.filter, result=refusal.code)
        raise refusal from error
    if then is not None and not answered.has_header(REPLAYED):
        then()
    return answered


def _attempt(request: HttpRequest, actor: Actor, act: Act, work: Callable[[], Done]) -> HttpResponse:
    key = request.headers.get("Idempotency-Key") if request.method == "POST" else None
    with transaction.atomic():
        held = _claim(request, actor, key) if key is not None else None
        if isinstance(held, idempotency.Kept):
            repeated = answer(held.answer, held.status)
            repeated[REPLAYED] = "true"
            return repeated
        done = work()
        write(actor, act, done)
        if held is not None:
            idempotency.keep(held, status=done.status, answer=plain(done.body))
    return answer(done.body, done.status)


def write(actor: Actor, act: Act, done: Done) -> None:
    """The audit row of a finished act."""
    audit.record(
        actor,
        act.action,
        done.target or act.target,
        reason=act.reason,
        filter=plain(act.filter),
        before=plain(done.before),
        after=plain(done.after),
        result=done.result,
    )


def _claim(request: HttpRequest, actor: Actor, key: str) -> idempotency.Claim | idempotency.Kept:
    try:
        return idempotency.claim(actor=actor.name, key=key, route=quote(request.path)[:200], body=request.body)
    except idempotency.BadKey as error:
        raise ApiError("bad_idempotency_key", str(error), status=400) from error
    except idempotency.Conflict as error:
        message = "This Idempotency-Key was used for another request. Use a fresh key for a fresh request."
        raise ApiError("idempotency_conflict", message, status=409) from error
    except idempotency.InProgress as error:
        message = "The first request with this key is still being answered. Repeat this one in a moment."
        raise ApiError("in_progress", message, status=409) from error
