"""The desk in numbers, for `/metrics`: read from the rows at each scrape."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from django.db.models import Count, Min

from control.incidents.models import Delivery, Incident, Severity, State
from control.incidents.transports import TRANSPORTS

Samples = Iterable[tuple[Mapping[str, str], float]]
_UNDER_WAY = (Delivery.State.DUE, Delivery.State.SENDING)


def incidents() -> Samples:
    """Unresolved ones. Every pair is there from the beginning, so that an alarm can be set on any."""
    rows = Incident.objects.exclude(state=State.RESOLVED).values_list("severity", "state").annotate(n=Count("pk"))
    found = {(severity, state): n for severity, state, n in rows.order_by()}
    for severity in Severity:
        for state in (State.OPEN, State.ACKNOWLEDGED):
            yield {"severity": severity.value, "state": state.value}, found.get((severity.value, state.value), 0)


def unacknowledged_s(now: datetime) -> float:
    return _since(Incident.objects.filter(state=State.OPEN).aggregate(at=Min("opened_at"))["at"], now)


def deliveries() -> Samples:
    rows = Delivery.objects.values_list("route__transport", "state").annotate(n=Count("pk")).order_by()
    found = {(transport, state): n for transport, state, n in rows}
    for transport in sorted({*TRANSPORTS, *(name for name, _ in found)}):
        for state in Delivery.State:
            yield {"transport": transport, "result": state.value}, found.get((transport, state.value), 0)


def overdue_s(now: datetime) -> float:
    """How long the oldest delivery has been due; 0 while none is late."""
    late = Delivery.objects.filter(state__in=_UNDER_WAY, due_at__lt=now).aggregate(at=Min("due_at"))["at"]
    return _since(late, now)


def _since(at: datetime | None, now: datetime) -> float:
    return max(0.0, (now - at).total_seconds()) if at is not None else 0.0
