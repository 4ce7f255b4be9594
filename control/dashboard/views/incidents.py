"""Incidents: what is open, who sees to it, one of them with its history and deliveries, and the rules with runbooks."""

from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from control.accounts import audit
from control.accounts.models import Role, User
from control.accounts.roles import of_request
from control.dashboard import incident_words as words
from control.dashboard import rooms
from control.incidents import cases, listing, telling
from control.incidents.cases import CannotBe
from control.incidents.handling import ACTS, said
from control.incidents.listing import Filters
from control.incidents.models import AlertRoute, Incident, Severity, State
from control.incidents.rules import RULES, rule_of, runbook
from control.runs.clock import database_now
from control.runs.models import Run
from control.runs.selection import as_id

DONE = {
    "acknowledge": "Acknowledged: no reminder and no second channel.",
    "assign": "Assigned.",
    "comment": "Comment kept.",
    "snooze": "Snoozed. Its rule is looked at as ever.",
    "wake": "The snooze is over.",
    "resolve": "Resolved. Whoever was told is told so.",
    "reopen": "Open again.",
}
TERMS = {"30m": "30 minutes", "2h": "2 hours", "8h": "8 hours", "1d": "a day"}


@login_required
def page(request: HttpRequest) -> HttpResponse:
    state = request.GET.get("state", "")
    severity, rule = request.GET.get("severity", ""), request.GET.get("rule", "")
    filters = Filters(
        state=state if state in State.values else "unresolved",
        severity=severity if severity in Severity.values else "",
        rule=rule if rule in RULES else "",
    )
    before = as_id(request.GET.get("before", "")) or ""
    rows, after = listing.page_of(listing.select(filters), before)
    kept = {name: value for name, value in (("state", state), ("severity", severity), ("rule", rule)) if value}
    counted = listing.counts()
    context: dict[str, Any] = {
        "section": "incidents",
        "rows": [_row(incident) for incident in rows],
        "filters": filters,
        "chips": _chips(filters, counted),
        "rules": list(RULES.values()),
        "severities": Severity.values,
        "next": f"?{urlencode({**kept, 'before': after})}" if after else "",
        "later": bool(before),
        "routes": AlertRoute.objects.filter(enabled=True, example=False).count(),
        "any": bool(filters.severity or filters.rule),
    }
    return render(request, "incidents/list.html", context)


def _chips(filters: Filters, counted: dict[str, int]) -> list[dict[str, Any]]:
    chips = [
        {"word": "Unresolved", "value": "unresolved", "count": counted.get("open", 0) + counted.get("acknowledged", 0)}
    ]
    chips += [
        {"word": state.word, "value": value, "count": counted.get(value, 0)} for value, state in words.STATES.items()
    ]
    more = {name: value for name, value in (("severity", filters.severity), ("rule", filters.rule)) if value}
    return [
        {**chip, "on": chip["value"] == filters.state, "href": f"?{urlencode({'state': chip['value'], **more})}"}
        for chip in chips
    ]


def _row(incident: Incident) -> dict[str, Any]:
    return {
        "incident": incident,
        "rule": rule_of(incident.rule),
        "severity": words.SEVERITIES[incident.severity],
        "state": words.STATES[incident.state],
    }


def _find(incident_id: object) -> Incident:
    incident = Incident.objects.filter(pk=str(incident_id)).first()
    if incident is None:
        raise Http404("There is no incident of this id.")
    return incident


@login_required
def one(request: HttpRequest, incident_id: object) -> HttpResponse:
    incident = _find(incident_id)
    now = database_now()
    run = Run.objects.filter(pk=incident.run_id).defer("spec").first() if incident.run_id else None
    snoozed = incident.snoozed_until is not None and incident.snoozed_until > now
    context: dict[str, Any] = {
        "section": "incidents",
        **_row(incident),
        "run": run,
        "under_way": telling.is_under_way(incident),
        "stop": telling.STOP,
        "runbook": runbook(incident.rule),
        "history": [
            {"line": line, "state": words.LINES.get(line.kind, words.OTHER)} for line in listing.history(incident)
        ],
        "deliveries": [
            {"row": row, "state": words.DELIVERIES[row.state], "action": words.ACTIONS[row.action]}
            for row in listing.deliveries(incident)
        ],
        "times": listing.times(incident),
        "snoozed": snoozed,
        "terms": TERMS,
        "people": _people(),
        "may_handle": rooms.may(request, "handle_incident"),
        "others": _others(incident),
    }
    return render(request, "incidents/one.html", context)


def _people() -> list[str]:
    """Who can be given an incident: whoever may act on it."""
    able = [role.value for role in Role if role.allows(Role.OPERATOR)]
    return list(
        User.objects.filter(is_active=True, role__in=able).order_by("username").values_list("username", flat=True)
    )


def _others(incident: Incident) -> list[dict[str, Any]]:
    """Other incidents of the same family of runs."""
    if not incident.root:
        return []
    found = Incident.objects.filter(root=incident.root).exclude(pk=incident.pk).order_by("-id")[:10]
    return [_row(other) for other in found]


@login_required
def act(request: HttpRequest, incident_id: object) -> HttpResponse:
    """`do` names the act; `text`, `to` and `term` are what it takes."""
    verb, back = request.POST.get("do", ""), f"/incidents/{incident_id}/"
    target = f"incident:{incident_id}"
    if answer := rooms.refused(request, "handle_incident", target, back):
        return answer
    incident = _find(incident_id)
    actor = of_request(request)
    if verb not in ACTS or actor is None:
        return rooms.told(request, "This form is of another release. Try again.", back, good=False)
    given = {name: request.POST.get(name, "") for name in ("text", "to", "term")}
    try:
        with transaction.atomic():
            before = {"state": incident.state, "assignee": incident.assignee}
            changed = ACTS[verb](incident, given, actor.name, database_now())
            incident.refresh_from_db()
            audit.record(
                request,
                f"{verb}_incident",
                target,
                reason=said(given["text"])[:500] or None,
                before=before,
                after={"state": incident.state, "assignee": incident.assignee},
                result="ok" if changed else "unchanged",
            )
    except CannotBe as error:
        audit.record(request, f"{verb}_incident", target, result=error.code)
        return rooms.told(request, error.message, back, good=False)
    return rooms.told(request, DONE[verb] if changed else "Somebody was faster; nothing was changed.", back)


@login_required
def rules(request: HttpRequest) -> HttpResponse:
    """Every rule: what it means, the next step and what to look at. Alerts link here."""
    context = {
        "section": "incidents",
        "rules": [{"rule": rule, "severity": words.SEVERITIES[rule.severity.value]} for rule in RULES.values()],
        "steady": int(cases.STEADY.total_seconds() // 60),
    }
    return render(request, "incidents/rules.html", context)
