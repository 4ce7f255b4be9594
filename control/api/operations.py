"""Routes of what runs depend on: workers and draining them, credentials and resting them by hand, the audit trail."""

from decimal import Decimal
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from agents.policy.credentials import KeyState, rest_of
from control.accounts import trail
from control.api.acts import Act, Done, perform
from control.api.answers import answer
from control.api.auth import Needs
from control.api.errors import ApiError, not_found
from control.api.outputs import ChangedOut, Out
from control.api.schemas import Body, Reason
from control.fleet import credentials, pool
from control.fleet.credentials import Credential, CredentialError
from control.runs import roster
from control.runs.models import Worker

router = Router(tags=["operations"])
LONGEST_REST_S = 31 * 86_400


class WorkersOut(Out):
    workers: list[dict[str, Any]]


class CredentialsOut(Out):
    credentials: list[dict[str, Any]]


class AuditOut(Out):
    """`next`: the id to give as `before` for the following page; null at the end."""

    entries: list[dict[str, Any]]
    next: int | None


class WhyIn(Body):
    reason: Reason | None = None


class RestIn(WhyIn):
    seconds: Annotated[int, Field(gt=0, le=LONGEST_REST_S)]


@router.get("/workers", auth=Needs("view"), response=WorkersOut, summary="Workers and desks on the roster")
def workers(request: HttpRequest) -> HttpResponse:
    names = ("id", "kind", "host", "pid", "version", "load", "runs", "capacity", "draining")
    times = ("started_at", "seen_at", "drain_asked_at")
    rows = Worker.objects.filter(gone_at=None).order_by("-kind", "host", "started_at")
    return answer({"workers": [{name: getattr(row, name) for name in (*names, *times)} for row in rows]})


@router.post("/workers/{worker_id}/drain", auth=Needs("drain"), response={202: ChangedOut}, summary="Drain a worker")
def drain(request: HttpRequest, worker_id: str, payload: WhyIn) -> HttpResponse:
    """It takes no more runs, hands over those it holds at their next call, and ends."""

    def work() -> Done:
        row = Worker.objects.filter(pk=worker_id[:36], kind="worker", gone_at=None).first()
        if row is None:
            raise not_found("worker", worker_id)
        changed = row.drain_asked_at is None
        roster.ask_to_drain([row.pk])
        why = None if changed else "already_draining"
        before = {"draining": row.draining, "runs": row.runs}
        body = {"changed": changed, "reason": why}
        return Done(body=body, result=why or "ok", before=before, after={"draining": True})

    return perform(request, Act(action="drain", target=f"worker:{worker_id[:36]}", reason=payload.reason), work)


@router.get("/credentials", auth=Needs("view"), response=CredentialsOut, summary="How each key fares; never a key")
def listed(request: HttpRequest) -> HttpResponse:
    known = _known()
    if not known:
        return answer({"credentials": []})
    found, now = pool.seen(list(known.values()))
    rows = []
    for label, one in known.items():
        rest = rest_of(found[label].state, now)
        rows.append(_row(one, found[label].state, found[label].total_usd) | {"rests": rest.why if rest else None})
    return answer({"credentials": rows})


@router.post(
    "/credentials/{label}/rest", auth=Needs("rest_credential"), response={202: ChangedOut}, summary="Let a key rest"
)
def rest(request: HttpRequest, label: str, payload: RestIn) -> HttpResponse:
    """New calls take another key or wait. A dead key and a longer rest stay as they are."""
    act = Act(action="rest_credential", target=f"credential:{label[:100]}", reason=payload.reason)
    return perform(request, act, lambda: _changed(*pool.lay_aside(_one(label), payload.seconds)))


@router.post(
    "/credentials/{label}/revive", auth=Needs("revive_credential"), response={202: ChangedOut}, summary="Wake a key"
)
def revive(request: HttpRequest, label: str, payload: WhyIn) -> HttpResponse:
    """Say that its cause is cured. What it has spent stays spent."""
    act = Act(action="revive_credential", target=f"credential:{label[:100]}", reason=payload.reason)
    return perform(request, act, lambda: _changed(*pool.revive(_one(label))))


@router.get("/audit", auth=Needs("read_audit"), response=AuditOut, summary="The audit trail, the newest first")
def audit(request: HttpRequest, q: str = "", since: str = "", until: str = "", before: str = "") -> HttpResponse:
    """`q` as on the page: `actor:ann action:interrupt target:run:… result:ok address:…` and words; days in UTC."""
    given = [text.replace("\x00", "")[:300] for text in (q, since, until)]
    rows, more = trail.page_of(trail.select(trail.Query(q=given[0], since=given[1], until=given[2])), before)
    return answer({"entries": [{name: getattr(row, name) for name in trail.COLUMNS} for row in rows], "next": more})


def _known() -> dict[str, Credential]:
    try:
        return credentials.all_of()
    except CredentialError as error:
        raise ApiError(error.code, error.message, status=503) from error


def _one(label: str) -> Credential:
    found = _known().get(label)
    if found is None:
        raise not_found("credential", label)
    return found


def _changed(before: KeyState, after: KeyState) -> Done:
    changed = before != after
    why = None if changed else "unchanged"
    body = {"changed": changed, "reason": why}
    return Done(body=body, result=why or "ok", before=_health(before), after=_health(after))


def _health(key: KeyState) -> dict[str, Any]:
    return {"health": key.health.value, "reason": key.reason, "until": key.cooldown_until, "said": key.said}


def _row(one: Credential, key: KeyState, total: Decimal) -> dict[str, Any]:
    return {
        "label": one.label,
        "provider": one.provider,
        "base_urls": list(one.base_urls),
        **_health(key),
        "spent_usd": key.spent_usd,
        "limit_usd": key.limit_usd,
        "per": one.per,
        "period_ends": key.period_ends,
        "total_usd": total,
        "last_used": key.last_used,
    }
