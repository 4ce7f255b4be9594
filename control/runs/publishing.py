"""Tells the workers of a queued run after commit. Only a hint: the sweeper publishes again what nobody claimed."""

from django.db import transaction


def publish_later(run_id: str) -> None:
    """Publish once the transaction has committed. Never blocks: `tasks.publish` has a thread of its own."""
    transaction.on_commit(lambda: _publish(run_id))


def _publish(run_id: str) -> None:
    # Imported late: Celery is loaded only by processes that start runs.
    from control.runs import tasks

    tasks.publish(run_id)
