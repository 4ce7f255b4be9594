"""Runs that play recorded answers: they spend nothing that was not paid already, and their ends are rehearsals."""

from django.db.models import QuerySet

from control.runs.models import Run


def without_recorded(runs: QuerySet[Run]) -> QuerySet[Run]:
    return runs.exclude(replay_of__isnull=False, spec__recorded__run__isnull=False)
