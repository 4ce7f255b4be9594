"""Which routes are told what about an incident, and when: the first notice, reminders, the second channel, the end.

A notice is a row of `Delivery`, written with what it tells of in one transaction; sending is another room's work.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.db import IntegrityError, transaction
from django.db.models import Q

from control.incidents.models import AlertRoute, Delivery, Incident, IncidentNote, Severity, State
from control.incidents.transports import TRANSPORTS

# While an incident is open it is looked at this often, so that routes that change meanwhile are heeded.
LOOK_EVERY = timedelta(minutes=5)
_FIRST = Delivery.Action.TRIGGER


def plan(incident: Incident, action: Delivery.Action, now: datetime) -> None:
    """Write the notices that this action means, once per route."""
    if action == Delivery.Action.TRIGGER:
        if not _is_silent(incident, now):
            for route in routes_of(incident):
                if route.after_minutes == 0:
                    _write(incident, route, action, incident.round, due=_first_due(incident, route, now), now=now)
        return
    for route in _told(incident):
        if action.value in TRANSPORTS[route.transport].takes and (
            action != Delivery.Action.RESOLVE or route.send_resolved
        ):
            _write(incident, route, action, incident.round, due=now, now=now)
    if action == Delivery.Action.RESOLVE:
        why = "resolved before it was sent"
        _drop(incident.deliveries.filter(action=_FIRST, state=Delivery.State.DUE), why, now)


def _is_silent(incident: Incident, now: datetime) -> bool:
    return incident.snoozed_until is not None and incident.snoozed_until > now


def routes_of(incident: Incident) -> list[AlertRoute]:
    """The enabled routes that this incident takes, oldest first."""
    return [route for route in AlertRoute.objects.filter(enabled=True).order_by("id") if matches(route, incident)]


def matches(route: AlertRoute, incident: Incident) -> bool:
    if Severity(incident.severity).rank > Severity(route.least).rank or route.transport not in TRANSPORTS:
        return False
    wanted = ((route.rules, incident.rule), (route.agents, incident.agent), (route.projects, incident.project))
    # What is about the fleet as a whole has neither agent nor project; a route for some of them leaves it out.
    return all(not names or value in names for names, value in wanted)


def _told(incident: Incident) -> list[AlertRoute]:
    """Routes that have had a notice since it last opened, or are having it. One that was tried without an answer may
    have arrived too."""
    states = [Delivery.State.DELIVERED, Delivery.State.SENDING]
    maybe = Q(state=Delivery.State.DUE) & ~Q(tries=[])
    had = incident.deliveries.filter(Q(state__in=states) | maybe, action=_FIRST, number__gte=incident.round)
    return list(AlertRoute.objects.filter(enabled=True, pk__in=had.values("route_id")).order_by("id"))


def _write(
    incident: Incident, route: AlertRoute, action: Delivery.Action, number: int, *, due: datetime, now: datetime
) -> bool:
    """False if this very notice is there already."""
    try:
        with transaction.atomic():
            Delivery.objects.create(
                route=route,
                incident=incident,
                action=action,
                number=number,
                key=incident.key[:255],
                created_at=now,
                due_at=due,
            )
    except IntegrityError:
        return False
    return True


def _drop(found: "Iterable[Delivery]", why: str, now: datetime) -> None:
    for delivery in found:
        Delivery.objects.filter(pk=delivery.pk, state=Delivery.State.DUE).update(
            state=Delivery.State.DROPPED, why=why, done_at=now
        )


# --- when -----------------------------------------------------------------------------------------------------


def _first_due(incident: Incident, route: AlertRoute, now: datetime) -> datetime:
    """Critical ones at once, at any hour. Others wait a little for company, and in quiet hours for their end."""
    if incident.severity == Severity.CRITICAL:
        return now
    due = now + timedelta(seconds=route.group_seconds)
    return quiet_until(route, due) or due


def quiet_until(route: AlertRoute, moment: datetime) -> datetime | None:
    """The end of the quiet hours that `moment` falls into, in UTC; None outside of them."""
    if route.quiet_from is None or route.quiet_to is None or route.quiet_from == route.quiet_to:
        return None
    zone = ZoneInfo(route.zone)
    local = moment.astimezone(zone)
    begin, end = route.quiet_from, route.quiet_to
    clock = local.time().replace(tzinfo=None)
    inside = begin <= clock < end if begin < end else clock >= begin or clock < end
    if not inside:
        return None
    day = local.date() if clock < end else local.date() + timedelta(days=1)
    return datetime.combine(day, end, tzinfo=zone).astimezone(moment.tzinfo)


# --- once more ------------------------------------------------------------------------------------------------


def remind(now: datetime) -> int:
    """Look at the open incidents whose time has come; how many notices were written."""
    due = Incident.objects.exclude(state=State.RESOLVED).filter(remind_at__lte=now).order_by("remind_at")[:200]
    return sum(_remind_of(incident, now) for incident in due)


def _remind_of(incident: Incident, now: datetime) -> int:
    """Nobody has acknowledged it: the second channel, and the first ones again after their hours."""
    with transaction.atomic():
        if incident.state != State.OPEN or _is_silent(incident, now):
            Incident.objects.filter(pk=incident.pk).update(remind_at=now + LOOK_EVERY)
            return 0
        written, at = 0, [now + LOOK_EVERY]
        since = _since(incident)
        for route in routes_of(incident):
            last = _last(incident, route)
            if last is not None and last.created_at >= since:
                if incident.snoozed_until is not None and last.created_at < incident.snoozed_until:
                    # It was put off, and the time is over.
                    written += _due(incident, route, now, now, at, "reminded")
                elif route.repeat_hours:
                    again = last.created_at + timedelta(hours=route.repeat_hours)
                    written += _due(incident, route, again, now, at, "reminded")
            elif route.after_minutes:
                then = since + timedelta(minutes=route.after_minutes)
                written += _due(incident, route, then, now, at, "escalated")
        Incident.objects.filter(pk=incident.pk).update(remind_at=min(at))
        return written


def _due(incident: Incident, route: AlertRoute, then: datetime, now: datetime, at: list[datetime], kind: str) -> int:
    """Write it if its time has come, else look again then."""
    if then > now:
        at.append(then)
        return 0
    last = _last(incident, route)
    number = max(incident.round, last.number + 1 if last is not None else 0)
    due = now if incident.severity == Severity.CRITICAL else quiet_until(route, now) or now
    if not _write(incident, route, _FIRST, number, due=due, now=now):
        return 0
    IncidentNote.objects.create(incident=incident, at=now, kind=kind, text=route.name)
    return 1


def next_round(incident: Incident) -> int:
    """The number of its next first notice: behind all that it has had, reminders too."""
    last = incident.deliveries.order_by("-number").values_list("number", flat=True).first()
    return max(incident.round, -1 if last is None else last) + 1


def _since(incident: Incident) -> datetime:
    """Since when it stands open: from its opening, or its last return."""
    back = incident.notes.filter(kind__in=("returned", "reopened", "flapping")).order_by("-at", "-id").first()
    return back.at if back is not None else incident.opened_at


def _last(incident: Incident, route: AlertRoute) -> Delivery | None:
    return incident.deliveries.filter(route=route, action=_FIRST).order_by("-number").first()


def hurry(incident: Incident, now: datetime) -> int:
    """A first channel has failed for good, so the second one does not wait. How many were written."""
    if incident.state != State.OPEN or _is_silent(incident, now):
        return 0
    unheard = [route for route in routes_of(incident) if route.after_minutes and _last(incident, route) is None]
    return sum(_due(incident, route, now, now, [], "escalated") for route in unheard)
