"""Routes of incidents: found, read, and handled by people; and of the rules that open them."""

from typing import Any, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Router

from control.api.acts import Act, Done, actor_of, perform
from control.api.answers import answer
from control.api.auth import Needs
from control.api.errors import ApiError, not_found
from control.api.outputs import Out
from control.api.schemas import Body, Clean
from control.incidents import listing
from control.incidents.cases import SNOOZES, CannotBe
from control.incidents.handling import ACTS, said
from control.incidents.listing import Filters
from control.incidents.models import Incident
from control.incidents.rules import RULES, runbook
from control.runs.clock import database_now
from control.runs.selection import as_id

router = Router(tags=["incidents"])
MOST = 200
_STATUS = {"already_resolved": 409, "opened_again": 409}


class IncidentOut(Out):
    id: str
    key: str
    rule: str
    severity: str
    state: str
    title: str
    run: str | None
    opened_at: str
    assignee: str | None
    url: str


class IncidentsOut(Out):
    """`next`: what to give as `cursor` for the following page; null at the end."""

    incidents: list[IncidentOut]
    next: str | None


class HandledOut(Out):
    changed: bool
    reason: str | None
    incident: IncidentOut


class RulesOut(Out):
    rules: list[dict[str, Any]]


class SaidIn(Body):
    text: Clean = ""


class AssignIn(Body):
    to: Clean = ""


class SnoozeIn(Body):
    term: Literal["30m", "2h", "8h", "1d"]


class NothingIn(Body):
    pass


assert set(SNOOZES) == {"30m", "2h", "8h", "1d"}


@router.get("/incidents", auth=Needs("view"), response=IncidentsOut, summary="Incidents, the newest first")
def incidents(
    request: HttpRequest,
    state: Literal["", "unresolved", "open", "acknowledged", "resolved"] = "",
    severity: Literal["", "critical", "error", "warning", "info"] = "",
    rule: str = "",
    run: str = "",
    cursor: str = "",
    limit: int = 50,
) -> HttpResponse:
    before = as_id(cursor) if cursor else ""
    wanted = as_id(run) if run else ""
    if before is None or wanted is None or not 1 <= limit <= MOST:
        message = f"Give ids as they came, and a limit from 1 to {MOST}."
        raise ApiError("bad_filter", message, status=400)
    filters = Filters(state=state, severity=severity, rule=rule[:40].replace("\x00", ""), run=wanted)
    rows, after = listing.page_of(listing.select(filters), before, limit)
    return answer({"incidents": [listing.row(row) for row in rows], "next": after or None})


@router.get("/incidents/{incident_id}", auth=Needs("view"), response=IncidentOut, summary="One incident, all of it")
def incident(request: HttpRequest, incident_id: str) -> HttpResponse:
    """With its `history` and its `deliveries`, each with response code and tries."""
    return answer(listing.whole(_find(incident_id)))


@router.get("/alert-rules", auth=Needs("view"), response=RulesOut, summary="What the desk looks out for")
def rules(request: HttpRequest) -> HttpResponse:
    rows = [
        {
            "name": rule.name,
            "word": rule.word,
            "severity": rule.severity.value,
            "means": rule.means,
            "next_step": rule.next_step,
            "checks": list(rule.checks),
            "lasting": rule.lasting,
            "runbook": runbook(rule.name),
        }
        for rule in RULES.values()
    ]
    return answer({"rules": rows})


@router.post(
    "/incidents/{incident_id}/acknowledge", auth=Needs("handle_incident"), response=HandledOut, summary="See to it"
)
def acknowledge(request: HttpRequest, incident_id: str, payload: NothingIn | None = None) -> HttpResponse:
    """No reminder and no second channel any more."""
    return _handle(request, incident_id, "acknowledge", {})


@router.post(
    "/incidents/{incident_id}/assign", auth=Needs("handle_incident"), response=HandledOut, summary="Give it to somebody"
)
def assign(request: HttpRequest, incident_id: str, payload: AssignIn) -> HttpResponse:
    """`to`: a person's name, empty for nobody."""
    return _handle(request, incident_id, "assign", payload.dict())


@router.post(
    "/incidents/{incident_id}/comment", auth=Needs("handle_incident"), response=HandledOut, summary="Write beside it"
)
def comment(request: HttpRequest, incident_id: str, payload: SaidIn) -> HttpResponse:
    return _handle(request, incident_id, "comment", payload.dict())


@router.post(
    "/incidents/{incident_id}/snooze",
    auth=Needs("handle_incident"),
    response=HandledOut,
    summary="No notice for a while",
)
def snooze(request: HttpRequest, incident_id: str, payload: SnoozeIn) -> HttpResponse:
    return _handle(request, incident_id, "snooze", payload.dict())


@router.post(
    "/incidents/{incident_id}/wake", auth=Needs("handle_incident"), response=HandledOut, summary="End a snooze"
)
def wake(request: HttpRequest, incident_id: str, payload: NothingIn | None = None) -> HttpResponse:
    return _handle(request, incident_id, "wake", {})


@router.post(
    "/incidents/{incident_id}/resolve", auth=Needs("handle_incident"), response=HandledOut, summary="It is over"
)
def resolve(request: HttpRequest, incident_id: str, payload: SaidIn | None = None) -> HttpResponse:
    """`text` says what was done. Whoever was told is told so."""
    return _handle(request, incident_id, "resolve", payload.dict() if payload else {})


@router.post(
    "/incidents/{incident_id}/reopen", auth=Needs("handle_incident"), response=HandledOut, summary="It is not over"
)
def reopen(request: HttpRequest, incident_id: str, payload: NothingIn | None = None) -> HttpResponse:
    return _handle(request, incident_id, "reopen", {})


def _handle(request: HttpRequest, given: str, verb: str, what: dict[str, str]) -> HttpResponse:
    reason = said(what.get("text", ""))[:500] or None

    def work() -> Done:
        found = _find(given)
        before = {"state": found.state, "assignee": found.assignee}
        try:
            changed = ACTS[verb](found, what, actor_of(request).name, database_now())
        except CannotBe as error:
            raise ApiError(error.code, error.message, status=_STATUS.get(error.code, 400)) from error
        found.refresh_from_db()
        why = None if changed else "unchanged"
        return Done(
            body={"changed": changed, "reason": why, "incident": listing.row(found)},
            status=200,
            result=why or "ok",
            before=before,
            after={"state": found.state, "assignee": found.assignee},
        )

    return perform(request, Act(action=f"{verb}_incident", target=f"incident:{given[:36]}", reason=reason), work)


def _find(given: str) -> Incident:
    known = as_id(given)
    found = Incident.objects.filter(pk=known).first() if known else None
    if found is None:
        raise not_found("incident", given)
    return found
