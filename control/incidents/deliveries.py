"""Sends what is due: one message at a time on each route, in threads of their own, so that a slow service holds up
nobody else.

A row is claimed before it is sent and settled after; a desk that dies between the two leaves a claim that lapses, and
the message, whose id stays the same, goes out again. That is at least once; a receiver knows repeats by key and id.
"""

import logging
import random
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction

from agents.events import stamp
from agents.ids import new_id
from control.incidents import cases, notices, sealing, telling
from control.incidents.models import AlertRoute, Delivery, Incident, State
from control.incidents.transports import TRANSPORTS
from control.incidents.transports.ports import Outcome, Result
from control.runs.chores import do_soon
from control.runs.clock import database_now

logger = logging.getLogger(__name__)

CHORE = "alerts"
AT_ONCE = 8
# Longer than any try takes.
CLAIM = timedelta(seconds=60)
FIRST_REST_S = 2.0
LONGEST_REST_S = 900.0
GIVE_UP = timedelta(hours=6)
MOST_TOGETHER = 20
TRIES_KEPT = 40
_DUE, _SENDING = Delivery.State.DUE, Delivery.State.SENDING


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flight:
    """One message under way. `future` comes to the outcome and the seconds that it took."""

    route: AlertRoute
    message: str
    future: "Future[tuple[Outcome, float]]"


class Sender:
    """One per desk. `turn` neither waits for a network nor raises for one."""

    def __init__(self) -> None:
        self._me = new_id()
        self._pool = ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="alerts")
        self._flights: dict[str, _Flight] = {}
        self._paced: dict[str, float] = {}

    def turn(self) -> int:
        """Settle what has come back, begin what is due; how many messages were begun."""
        now = database_now()
        self._settle(now)
        Delivery.objects.filter(state=_SENDING, claimed_until__lt=now).update(state=_DUE, sender="")
        if len(self._flights) >= AT_ONCE or not Delivery.objects.filter(state=_DUE, due_at__lte=now).exists():
            return 0
        waiting = Delivery.objects.filter(state=_DUE, due_at__lte=now).values("route_id").distinct()
        begun = 0
        for route in AlertRoute.objects.filter(pk__in=waiting).order_by("id"):
            if route.pk in self._flights or time.monotonic() < self._paced.get(route.pk, 0.0):
                continue
            if len(self._flights) < AT_ONCE and (route.rest_until is None or route.rest_until <= now):
                begun += self._begin(route, now)
        return begun

    def wait(self, timeout_s: float) -> None:
        """Until everything under way has been settled: for an end in order, and for tests."""
        give_up_at = time.monotonic() + timeout_s
        while self._flights and time.monotonic() < give_up_at:
            for flight in tuple(self._flights.values()):
                try:
                    flight.future.result(max(0.0, give_up_at - time.monotonic()))
                except TimeoutError:
                    return
            self._settle(database_now())

    def _begin(self, route: AlertRoute, now: datetime) -> int:
        group = _next_group(route, now)
        if not group:
            return 0
        message = group[0].message or new_id()
        claimed = Delivery.objects.filter(pk__in=[one.pk for one in group], state=_DUE).update(
            state=_SENDING, sender=self._me, message=message, claimed_until=now + CLAIM
        )
        if not claimed:
            return 0
        ours = Delivery.objects.filter(message=message, sender=self._me, state=_SENDING).order_by("id")
        rows = list(ours.select_related("incident", "route"))
        transport = TRANSPORTS[route.transport]
        try:
            secrets = sealing.opened(route.sealed)
        except sealing.Unreadable as error:
            self._apply(route, message, Outcome(result=Result.FINAL, why=str(error)), 0.0, now)
            return 1
        send = partial(transport.send, telling.message_of(rows, message, now), route.options, secrets)
        future = self._pool.submit(_timed, send, secrets)
        self._paced[route.pk] = time.monotonic() + transport.pace_s
        self._flights[route.pk] = _Flight(route=route, message=message, future=future)
        future.add_done_callback(lambda _: do_soon(CHORE))
        return 1

    def _settle(self, now: datetime) -> None:
        for flight in [flight for flight in self._flights.values() if flight.future.done()]:
            outcome, seconds = flight.future.result()
            self._apply(flight.route, flight.message, outcome, seconds, now)
            del self._flights[flight.route.pk]

    def _apply(self, route: AlertRoute, message: str, outcome: Outcome, seconds: float, now: datetime) -> None:
        """Write down how it went, in one transaction with what follows from it."""
        with transaction.atomic():
            rows = Delivery.objects.filter(message=message, sender=self._me, state=_SENDING).select_related("incident")
            rest_s = 0.0
            for row in rows:
                rest_s = max(rest_s, _settle_row(row, outcome, seconds, now))
            if outcome.rests:
                AlertRoute.objects.filter(pk=route.pk).update(rest_until=now + timedelta(seconds=rest_s))


def _timed(send: partial[Outcome], secrets: dict[str, str]) -> tuple[Outcome, float]:
    began = time.monotonic()
    try:
        outcome = send()
    except Exception as error:
        # A fault of ours: what was to be sent is at fault too, and trying again helps only after a new release.
        logger.exception("an alert could not be written")
        outcome = Outcome(result=Result.FINAL, why=f"It could not be written: {type(error).__name__}.")
    why = outcome.why
    for secret in secrets.values():
        why = why.replace(secret, sealing.HIDDEN) if secret else why
    shown = Outcome(result=outcome.result, code=outcome.code, why=why, after_s=outcome.after_s, rests=outcome.rests)
    return shown, time.monotonic() - began


def _next_group(route: AlertRoute, now: datetime) -> list[Delivery]:
    """What goes out next on a route: the oldest that is due, with what may go with it."""
    due = Delivery.objects.filter(route=route, state=_DUE).select_related("incident").order_by("id")
    for head in due.filter(due_at__lte=now)[:200]:
        if head.message:
            return list(due.filter(message=head.message))
        if not _needed(head, route, now):
            continue
        if not TRANSPORTS[route.transport].groups or head.incident is None:
            return [head]
        company = due.filter(action=head.action, message=None, incident__isnull=False)
        company = company.filter(due_at__lte=now + timedelta(seconds=_company_s(head, route)))
        alike = [one for one in company[: 5 * MOST_TOGETHER] if telling.is_reminder(one) == telling.is_reminder(head)]
        return [head, *(one for one in alike if one.pk != head.pk and _needed(one, route, now))][:MOST_TOGETHER]
    return []


def _company_s(head: Delivery, route: AlertRoute) -> float:
    """A grave one takes along what is due now; one that has waited for company takes what has come meanwhile."""
    grave = head.incident is not None and head.incident.severity == "critical"
    return 0.0 if grave else float(route.group_seconds)


def _needed(delivery: Delivery, route: AlertRoute, now: datetime) -> bool:
    """Whether it still says something that somebody should hear; else it is dropped, with why."""
    why = _why_not(delivery, route, now)
    if why:
        Delivery.objects.filter(pk=delivery.pk, state=_DUE).update(state=Delivery.State.DROPPED, why=why, done_at=now)
    return not why


def _why_not(delivery: Delivery, route: AlertRoute, now: datetime) -> str:
    incident: Incident | None = delivery.incident
    if delivery.action == Delivery.Action.TEST or incident is None:
        return ""
    if not route.enabled:
        return "the route is switched off"
    if delivery.action != Delivery.Action.TRIGGER:
        return ""
    if incident.state == State.RESOLVED:
        return "resolved before it was sent"
    if incident.state == State.ACKNOWLEDGED:
        return "acknowledged before it was sent"
    if incident.snoozed_until is not None and incident.snoozed_until > now:
        return "snoozed before it was sent"
    return ""


def _settle_row(row: Delivery, outcome: Outcome, seconds: float, now: datetime) -> float:
    """The row as the outcome leaves it; for how many seconds it rests."""
    tries = [
        *row.tries,
        {"at": stamp(now), "code": outcome.code, "error": outcome.why[:300], "seconds": round(seconds, 3)},
    ]
    row.tries, row.code, row.why, row.claimed_until = tries[-TRIES_KEPT:], outcome.code, outcome.why[:300], None
    rest_s = 0.0
    if outcome.result is Result.RETRY and now - row.created_at < GIVE_UP:
        rest_s = rest_of(len(tries), outcome.after_s)
        row.state, row.due_at = _DUE, now + timedelta(seconds=rest_s)
    else:
        good = outcome.result is Result.DELIVERED
        row.state, row.done_at = Delivery.State.DELIVERED if good else Delivery.State.FAILED, now
    row.save(update_fields=["tries", "code", "why", "claimed_until", "state", "due_at", "done_at"])
    if row.state == Delivery.State.FAILED and row.incident is not None and row.action == Delivery.Action.TRIGGER:
        code = f" ({row.code})" if row.code else ""
        cases.note(row.incident, "undelivered", now, text=f"{row.route.name}{code}: {row.why}")
        notices.hurry(row.incident, now)
    return rest_s


def rest_of(tries: int, after_s: float | None) -> float:
    """Longer each time, a little at random, so that many do not come back at once; never before a service wants it."""
    rest: float = min(FIRST_REST_S * 2 ** min(tries - 1, 20), LONGEST_REST_S)
    return max(rest * random.uniform(1.0, 1.25), after_s or 0.0)
