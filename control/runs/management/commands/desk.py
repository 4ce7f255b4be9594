"""`manage.py desk`: the chores that keep the house in order: sweeping, publishing again, and what other apps add."""

import signal
import threading
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import connection

from agents.ids import new_id
from control import logs
from control.celery import CHORES
from control.runs import parentage, roster
from control.runs.bus import bus
from control.runs.chores import Desk
from control.runs.consumer import Consumer
from control.runs.leases import this_host

SEEN_EVERY_S = 5.0


class Command(BaseCommand):
    help = "Does the chores: ends or requeues lost runs, publishes again what nobody claimed. Several may run."

    def add_arguments(self, parser: CommandParser) -> None:
        parentage.add_argument(parser)

    def handle(self, *args: Any, with_parent: bool, **options: Any) -> None:
        me = new_id()
        logs.configure("desk", me)
        roster.join("desk", worker=me)
        desk = Desk(me, this_host())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: desk.stop())
        if with_parent:
            parentage.end_with_parent()
        consumer = Consumer([CHORES], f"desk-{me[-12:]}@{this_host()}")
        consumer.start()
        threading.Thread(target=_show, args=(me,), name="roster", daemon=True).start()
        self.stdout.write(f"desk {me} ready on {this_host()}")
        self.stdout.flush()
        desk.run()
        consumer.stop(0.5)
        parentage.farewell(me)
        bus().close(0.3)


def _show(me: str) -> None:
    """Say every few seconds that this desk is there. Whether its chores go on, their own rows tell."""
    while True:
        time.sleep(SEEN_EVERY_S)
        try:
            roster.seen(me)
        except Exception:
            connection.close()
