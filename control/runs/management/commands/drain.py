"""`manage.py drain`: workers take no more runs, hand over those they hold, and end; other workers go on with them."""

import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from control.runs import roster
from control.runs.models import Worker

# Beyond the deadline: until a worker looks, and for what it has to cut off.
GRACE_S = 10.0
LOOK_S = 0.2


class Command(BaseCommand):
    help = (
        "Workers take no more runs and hand over those they hold, each at its next border between calls, at the latest "
        "after DRAIN_SECONDS; then they end. Waits until they have. Start the new ones first, or one by one."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("workers", nargs="*", metavar="WORKER", help="ids, or their last letters")
        parser.add_argument("--all", action="store_true", dest="everyone", help="all that are on the roster now")
        parser.add_argument("--no-wait", action="store_true", help="only ask them")

    def handle(self, *args: Any, workers: list[str], everyone: bool, no_wait: bool, **options: Any) -> None:
        if bool(workers) == everyone:
            raise CommandError("Name the workers, or say --all. They are:\n" + self._listing())
        asked = roster.ask_to_drain(None if everyone else [self._named(word) for word in workers])
        for worker in asked:
            self.stdout.write(f"{worker.pk} on {worker.host}: asked, {worker.runs} runs")
        if not no_wait:
            self._wait({worker.pk for worker in asked})

    def _named(self, word: str) -> str:
        found = list(Worker.objects.filter(kind="worker", gone_at=None, pk__endswith=word).values_list("pk", flat=True))
        if len(found) != 1:
            raise CommandError(f"{len(found)} workers are called {word!r}. They are:\n{self._listing()}")
        return found[0]

    def _listing(self) -> str:
        there = Worker.objects.filter(kind="worker", gone_at=None).order_by("started_at")
        lines = [f"  {one.pk} on {one.host}, {one.runs} runs{', draining' if one.draining else ''}" for one in there]
        return "\n".join(lines) or "  none"

    def _wait(self, waiting: set[str]) -> None:
        give_up_at = time.monotonic() + settings.DRAIN_SECONDS + GRACE_S
        while waiting:
            for worker in Worker.objects.filter(pk__in=waiting, gone_at__isnull=False):
                self.stdout.write(f"{worker.pk}: gone")
                waiting.remove(worker.pk)
            if waiting and time.monotonic() > give_up_at:
                raise CommandError(f"Still there: {', '.join(sorted(waiting))}. Look into their output.")
            if waiting:
                time.sleep(LOOK_S)
