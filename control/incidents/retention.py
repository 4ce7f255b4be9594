"""Retention of the desk's own rows: what is over and old enough goes; what is open stays, however old it is."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from control.incidents.models import (
    Backtest,
    BacktestPiece,
    BacktestResult,
    Delivery,
    Incident,
    IncidentNote,
    Postmortem,
    ShareLink,
    State,
)

AT_ONCE = 500


def _incidents(before: datetime) -> QuerySet[Incident]:
    """One that nobody has resolved is somebody's still, also when its run is gone."""
    return Incident.objects.filter(state=State.RESOLVED, resolved_at__lt=before)


def _tests(before: datetime) -> QuerySet[Delivery]:
    """Deliveries that told of no incident."""
    return Delivery.objects.filter(incident=None, done_at__lt=before)


def _backtests(before: datetime) -> QuerySet[Backtest]:
    over = Backtest.objects.exclude(state=Backtest.State.RUNNING)
    return over.filter(Q(finished_at__lt=before) | Q(finished_at=None, created_at__lt=before))


def count(before: datetime) -> dict[str, int]:
    """What `drop` would take away now."""
    told = Delivery.objects.filter(incident__in=_incidents(before).values("pk"))
    return {
        "incidents": _incidents(before).count(),
        "deliveries": told.count() + _tests(before).count(),
        "backtests": _backtests(before).count(),
    }


def drop(before: datetime) -> dict[str, int]:
    """Delete what is over, some at a time, so that no transaction is long; how much of each."""
    gone = {"incidents": 0, "deliveries": 0, "backtests": 0}
    for part in _parts(_incidents(before)):
        with transaction.atomic():
            # One that was reopened meanwhile stays.
            still = Incident.objects.select_for_update().filter(pk__in=part, state=State.RESOLVED)
            over = list(still.values_list("pk", flat=True))
            IncidentNote.objects.filter(incident_id__in=over).delete()
            gone["deliveries"] += Delivery.objects.filter(incident_id__in=over).delete()[0]
            gone["incidents"] += Incident.objects.filter(pk__in=over).delete()[0]
    for part in _parts(_tests(before)):
        gone["deliveries"] += Delivery.objects.filter(pk__in=part).delete()[0]
    for part in _parts(_backtests(before)):
        for backtest in part:
            with transaction.atomic():
                BacktestResult.objects.filter(backtest_id=backtest).delete()
                BacktestPiece.objects.filter(backtest_id=backtest).delete()
                gone["backtests"] += Backtest.objects.filter(pk=backtest).delete()[0]
    ShareLink.objects.filter(expires_at__lt=before).delete()
    return gone


def postmortems_of(runs: Sequence[str]) -> int:
    """How many of these runs have one that people have written in."""
    return Postmortem.objects.filter(run_id__in=runs).count()


def drop_postmortems(runs: Sequence[str]) -> int:
    """With a run goes what people wrote about it, in the caller's transaction: it is shown beside the log alone."""
    ShareLink.objects.filter(run_id__in=runs).delete()
    number = postmortems_of(runs)
    Postmortem.objects.filter(run_id__in=runs).delete()
    return number


def _parts(found: QuerySet[Any]) -> Iterator[list[str]]:
    keys = list(found.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(keys), AT_ONCE):
        yield keys[start : start + AT_ONCE]
