"""What stands on top of every page until it is over: blocks on new starts, and kill switches at work."""

from datetime import timedelta
from typing import Any

from agents.commands import CommandKind
from control.dashboard import bulk_form
from control.runs.clock import database_now
from control.runs.models import Block, Bulk

MOST = 5
# A kill switch that hangs for longer is told by its own page and by the runs that it could not stop.
AT_WORK = timedelta(minutes=30)


def blocks() -> list[dict[str, Any]]:
    """In force, the oldest first: who, when, why and for what."""
    found = Block.objects.filter(lifted_at=None).order_by("created_at")[:MOST]
    return [{"row": row, "words": bulk_form.words(row.filter)} for row in found]


def stopping() -> list[dict[str, Any]]:
    """Kill switches that are not over."""
    found = Bulk.objects.filter(finished_at=None, kind=CommandKind.INTERRUPT.value)
    recent = found.filter(issued_at__gte=database_now() - AT_WORK).order_by("issued_at")[:MOST]
    return [{"row": row, "words": bulk_form.words(row.filter)} for row in recent]
