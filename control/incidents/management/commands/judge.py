"""`manage.py judge`: one process that judges pieces of backtests, and ends when there are none for a while."""

import os
import signal
import threading
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import connection

from agents.ids import new_id
from control import logs
from control.celery import BACKTESTS
from control.incidents import tasks
from control.incidents.backtest import work
from control.incidents.models_backtest import Backtest
from control.runs import parentage
from control.runs.consumer import Consumer
from control.runs.leases import this_host
from control.runs.outages import AWAY

IDLE_S = 20.0
LOOK_S = 1.0
# Live runs come first: a question about old ones takes what they leave of the machine.
NICE = 10


class Command(BaseCommand):
    help = "Judges pieces of backtests; ends by itself when none is open. The desk starts as many as there are cores."

    def add_arguments(self, parser: CommandParser) -> None:
        parentage.add_argument(parser)

    def handle(self, *args: Any, with_parent: bool, **options: Any) -> None:
        me = new_id()
        logs.configure("judge", me)
        os.nice(NICE)
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        if with_parent:
            parentage.end_with_parent()
        tasks.judge_as(me)
        consumer = Consumer([BACKTESTS], f"judge-{me[-12:]}@{this_host()}")
        consumer.start()
        _until_idle(stop)
        consumer.stop(0.5)
        try:
            work.give_back(me)
        except AWAY:
            pass  # its claim ends by itself
        # A piece that is being judged must not hold up the end.
        os._exit(0)


def _until_idle(stop: threading.Event) -> None:
    busy_at = time.monotonic()
    while not stop.wait(LOOK_S) and time.monotonic() - busy_at < IDLE_S:
        try:
            if Backtest.objects.filter(state=Backtest.State.RUNNING).exists():
                busy_at = time.monotonic()
        except AWAY:
            connection.close()
