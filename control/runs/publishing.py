"""Tells the workers of a queued run after commit. Only a hint: the sweeper publishes again what nobody claimed."""

from django.conf import settings
from django.db import transaction

from control.runs.models import Run


def publish_later(run_id: str) -> None:
    """Publish once the transaction has committed. Never blocks: `tasks.publish` has a thread of its own."""
    transaction.on_commit(lambda: _publish(run_id))


def _publish(run_id: str) -> None:
    # Imported late: Celery is loaded only by processes that start runs.
    from control.runs import tasks

    # A run whose workspace is on one machine goes to the workers there; without Redis there is one machine.
    host = Run.objects.values_list("host", flat=True).filter(pk=run_id).first() if settings.REDIS_URL else None
    tasks.publish(run_id, host)
