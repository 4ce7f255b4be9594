"""Incidents as lists and rows: which ones a filter means, page by page, and one with all that happened around it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, QuerySet

from control.incidents.models import Delivery, Incident, State
from control.incidents.rules import rule_of, runbook

PAGE = 50
OPEN = (State.OPEN, State.ACKNOWLEDGED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Empty ones mean all; `state` may be `unresolved`."""

    state: str = ""
    severity: str = ""
    rule: str = ""
    run: str = ""


def select(filters: Filters) -> "QuerySet[Incident]":
    found = Incident.objects.all()
    if filters.state == "unresolved":
        found = found.filter(state__in=OPEN)
    elif filters.state:
        found = found.filter(state=filters.state)
    named = {"severity": filters.severity, "rule": filters.rule, "run_id": filters.run}
    return found.filter(**{name: value for name, value in named.items() if value})


def page_of(found: "QuerySet[Incident]", before: str, limit: int = PAGE) -> tuple[list[Incident], str]:
    """The newest first (ids are ordered by time), and the id to give as `before` for the next page."""
    ordered = found.order_by("-id")
    if before:
        ordered = ordered.filter(id__lt=before)
    rows = list(ordered[: limit + 1])
    return (rows[:limit], rows[limit - 1].pk) if len(rows) > limit else (rows, "")


def counts() -> dict[str, int]:
    """How many there are in each state."""
    return dict(Incident.objects.values_list("state").annotate(n=Count("id")).order_by())


def unresolved() -> dict[str, int]:
    """For the strip above the fleet: open ones, those of them that are critical, and acknowledged ones."""
    rows = Incident.objects.filter(state__in=OPEN).values_list("state", "severity").annotate(n=Count("id")).order_by()
    found = {"open": 0, "critical": 0, "acknowledged": 0}
    for state, severity, number in rows:
        found[state] += number
        if state == State.OPEN and severity == "critical":
            found["critical"] += number
    return found


# --- one incident ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of an incident's history: what the desk or a person did, or how a notice fared."""

    at: datetime
    kind: str
    by: str = ""
    text: str = ""
    delivery: Delivery | None = None


def history(incident: Incident) -> list[Line]:
    """In order; notices stand where they were delivered or given up."""
    lines = [Line(at=note.at, kind=note.kind, by=note.by, text=note.text) for note in incident.notes.all()]
    for delivery in deliveries(incident):
        # That a first notice could not be delivered has a line already.
        told = delivery.state == Delivery.State.FAILED and delivery.action == Delivery.Action.TRIGGER
        if delivery.done_at is not None and delivery.state != Delivery.State.DROPPED and not told:
            lines.append(Line(at=delivery.done_at, kind=f"notice_{delivery.state}", delivery=delivery))
    return sorted(lines, key=lambda line: line.at)


def deliveries(incident: Incident) -> list[Delivery]:
    return list(incident.deliveries.select_related("route").order_by("id"))


def times(incident: Incident) -> Mapping[str, float | None]:
    """Seconds from the event to the desk, from there to the first person, and to the end."""
    opened = incident.opened_at
    ends = {"acknowledge": incident.acknowledged_at, "resolve": incident.resolved_at}
    until = {name: (end - opened).total_seconds() if end else None for name, end in ends.items()}
    return {"detect": (opened - incident.happened_at).total_seconds(), **until}


def row(incident: Incident) -> dict[str, Any]:
    """As the API tells it."""
    names = ("id", "key", "rule", "severity", "state", "title", "summary", "evidence", "agent", "project", "labels")
    times_ = ("happened_at", "opened_at", "last_at", "acknowledged_at", "resolved_at", "snoozed_until")
    people = ("assignee", "acknowledged_by", "resolved_by", "resolution")
    return {
        **{name: getattr(incident, name) for name in (*names, *times_)},
        **{name: getattr(incident, name) or None for name in people},
        "run": incident.run_id,
        "root": incident.root,
        "facts": [{"name": name, "value": value} for name, value in incident.facts],
        "times": incident.times,
        "returns": incident.returns,
        "flapping": incident.flapping,
        "next_step": rule_of(incident.rule).next_step,
        "runbook": runbook(incident.rule),
        "url": f"/incidents/{incident.id}/",
    }


def whole(incident: Incident) -> dict[str, Any]:
    """A row with its history and its deliveries."""
    notes = incident.notes.order_by("at", "id")
    return {
        **row(incident),
        "history": [{"at": note.at, "kind": note.kind, "by": note.by or None, "text": note.text} for note in notes],
        "deliveries": [delivery_row(one) for one in deliveries(incident)],
    }


def delivery_row(delivery: Delivery) -> dict[str, Any]:
    names = ("id", "message", "action", "number", "key", "state", "code", "created_at", "due_at", "done_at")
    return {
        **{name: getattr(delivery, name) for name in names},
        "route": {"id": delivery.route.pk, "name": delivery.route.name, "transport": delivery.route.transport},
        "incident": delivery.incident_id,
        "tries": delivery.tries,
        "why": delivery.why or None,
    }
