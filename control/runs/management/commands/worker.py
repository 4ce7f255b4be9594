"""`manage.py worker`: one process that drives runs. SIGTERM or Ctrl-C hands them back within five seconds."""

import asyncio
import logging
import os
import signal
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from agents.ids import new_id
from control.celery import RUNS
from control.runs import collector, parentage, roster, tasks
from control.runs.bus import bus
from control.runs.consumer import Consumer
from control.runs.host import Host
from control.runs.leases import this_host

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Drives runs: takes them from the queue, holds hundreds at once in one loop, hands them back when stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--capacity", type=int, default=settings.WORKER_CAPACITY, help="runs held at once")
        parentage.add_argument(parser)

    def handle(self, *args: Any, capacity: int, with_parent: bool, **options: Any) -> None:
        logging.basicConfig(level=logging.WARNING, format="%(asctime)s worker %(levelname)s %(name)s: %(message)s")
        worker = new_id()
        roster.join("worker", worker=worker, capacity=capacity)
        if with_parent:
            parentage.end_with_parent()
        failed = 0
        try:
            asyncio.run(self._serve(worker, capacity))
        except Exception:
            logger.exception("the worker failed")
            failed = 1
        parentage.farewell(worker)
        tasks.flush(0.5)
        bus().close(0.3)
        sys.stdout.flush()
        sys.stderr.flush()
        # Threads that a tool left deaf, or a broker that does not answer, must not hold up the end.
        os._exit(failed)

    async def _serve(self, worker: str, capacity: int) -> None:
        host = Host(worker, bus(), capacity)
        consumer = Consumer(sorted({RUNS, tasks.queue_of(this_host())}), f"worker-{worker[-12:]}@{this_host()}")
        stopping: list[asyncio.Task[None]] = []

        def stop() -> None:
            if stopping:
                os._exit(1)  # asked twice: at once; the guardian ends the tools, the sweeper finds the runs
            stopping.append(asyncio.ensure_future(self._stop(host, consumer)))

        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop)
        ready = asyncio.Event()
        serving = asyncio.create_task(host.serve(ready))
        first = asyncio.create_task(ready.wait())
        await asyncio.wait({serving, first}, return_when=asyncio.FIRST_COMPLETED)
        if ready.is_set():
            collector.leave_out_what_is_loaded()
            consumer.start()
            self.stdout.write(f"worker {worker} ready on {this_host()}, {capacity} runs at once")
            self.stdout.flush()
        await serving

    async def _stop(self, host: Host, consumer: Consumer) -> None:
        stopped = asyncio.create_task(asyncio.to_thread(consumer.stop, 1.0))
        await host.drain()
        await stopped
