"""`manage.py worker`: one process that drives runs. SIGTERM, or `manage.py drain`, hands them over at their next call
borders within DRAIN_SECONDS; Ctrl-C, or a second SIGTERM, cuts them off and hands them back within five seconds, and
another Ctrl-C ends it at once."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from agents.ids import new_id
from control import logs
from control.celery import RUNS
from control.runs import collector, parentage, roster, tasks
from control.runs.bus import bus
from control.runs.consumer import Consumer
from control.runs.host import Host
from control.runs.leases import this_host

logger = logging.getLogger(__name__)

# How often the roster is asked whether this worker shall go.
LOOK_S = 1.0


class Command(BaseCommand):
    help = "Drives runs: takes them from the queue, holds hundreds at once in one loop, hands them back when stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--capacity", type=int, default=settings.WORKER_MAX_RUNS, help="runs held at once")
        parentage.add_argument(parser)

    def handle(self, *args: Any, capacity: int, with_parent: bool, **options: Any) -> None:
        worker = new_id()
        logs.configure("worker", worker)
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

        def stop(within_s: float, impatient: bool = False) -> None:
            if impatient and host.cutting:
                os._exit(1)  # at once; the guardian ends the tools, the sweeper finds the runs
            stopping.append(asyncio.ensure_future(self._stop(host, consumer, within_s)))

        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop, settings.DRAIN_SECONDS)
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop, 0.0, True)
        ready = asyncio.Event()
        serving = asyncio.create_task(host.serve(ready))
        first = asyncio.create_task(ready.wait())
        await asyncio.wait({serving, first}, return_when=asyncio.FIRST_COMPLETED)
        if ready.is_set():
            collector.leave_out_what_is_loaded()
            consumer.start()
            self.stdout.write(f"worker {worker} ready on {this_host()}, {capacity} runs at once")
            self.stdout.flush()
            watching = asyncio.create_task(self._until_asked(host, lambda: stop(settings.DRAIN_SECONDS)))
            watching.set_name("watch for a drain")
        await serving
        await asyncio.gather(*stopping)

    async def _until_asked(self, host: Host, then: Callable[[], None]) -> None:
        """Until `manage.py drain` has named this worker, or it goes for another reason."""
        while not host.draining:
            if await host.database.patiently(roster.is_asked_to_drain, host.worker):
                then()
                return
            await asyncio.sleep(LOOK_S)

    async def _stop(self, host: Host, consumer: Consumer, within_s: float) -> None:
        stopped = asyncio.get_running_loop().run_in_executor(None, consumer.stop, 1.0)
        await host.drain(within_s)
        await stopped
