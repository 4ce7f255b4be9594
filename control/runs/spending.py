"""Which runs spend: what one costs that plays recorded answers was paid once, by the run that it plays."""

from django.db.models import QuerySet

from control.runs.models import Run


def without_recorded(runs: QuerySet[Run]) -> QuerySet[Run]:
    return runs.exclude(replay_of__isnull=False, spec__recorded__run__isnull=False)
