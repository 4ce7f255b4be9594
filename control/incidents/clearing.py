"""Taking the guided example away again: its runs with all that grew from them, its route and the place that took its
letters. Nothing that anybody else has made is touched."""

import logging

from django.db import transaction

from agents.spec import FINAL
from control.incidents import example
from control.incidents.models import AlertRoute, Delivery, Incident
from control.incidents.trees import drop_trees

logger = logging.getLogger(__name__)


class UnderWay(Exception):
    """A night is not over yet; the text says what to do."""


def left() -> dict[str, int]:
    """How much of the example there is."""
    runs = list(example.all_runs().values_list("pk", flat=True))
    return {
        "runs": len(runs),
        "incidents": Incident.objects.filter(run_id__in=runs).count(),
        "routes": AlertRoute.objects.filter(example=True).count(),
    }


def clear() -> dict[str, int]:
    """Remove it; how much of what. Raises UnderWay while a night goes on."""
    if example.all_runs().exclude(status__in=[status.value for status in FINAL]).exists():
        raise UnderWay("A night is still under way. Wait for its end, or interrupt it, and press again.")
    found = left()
    roots = list(example.all_runs().filter(parent=None).values_list("root", flat=True))
    routes = list(AlertRoute.objects.filter(example=True))
    with transaction.atomic():
        Incident.objects.filter(run_id__in=list(example.all_runs().values_list("pk", flat=True))).delete()
        for route in routes:
            Delivery.objects.filter(route=route).delete()
            route.delete()
        drop_trees(roots)
    for route in routes:
        example.close(route)
    return found
