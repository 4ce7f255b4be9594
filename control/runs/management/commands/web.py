"""`manage.py web`: Daphne with our application; without Redis it also serves the bus to the processes beside it."""

# Daphne installs Twisted's reactor on an asyncio loop when it is imported, which has to come first.
from daphne.server import Server  # isort: skip

import asyncio
import os
import signal
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from twisted.internet import reactor

from control import logs
from control.runs import collector, parentage, ports, tasks
from control.runs.bus import bus
from control.runs.bus_unix import UnixBusServer, socket_path

# A request gives the interpreter away at each row that it reads, and waits this long to have it back while another
# thread computes: at Python's own 5 ms a page of 40 ms took 600 beside rows that were being written for a socket.
SWITCH_S = 0.001


class Command(BaseCommand):
    help = "Serves the console and the API."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default=settings.HOST)
        parser.add_argument("--port", type=int, default=settings.PORT)
        parentage.add_argument(parser)

    def handle(self, *args: Any, host: str, port: int, with_parent: bool, **options: Any) -> None:
        logs.configure("web")
        sys.setswitchinterval(SWITCH_S)
        if (problem := ports.taken(host, port)) is not None:
            raise CommandError(problem)
        settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
        from control.asgi import application

        server = Server(
            application=application,
            endpoints=[ports.endpoint(host, port)],
            signal_handlers=False,
            ready_callable=self._ready,
            http_timeout=None,
            websocket_timeout=-1,
            application_close_timeout=2,
            server_name="pilothouse",
            verbosity=0,
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: reactor.callFromThread(server.stop))
        if with_parent:
            parentage.end_with_parent()
        self.stdout.write(f"web on http://{ports.shown(host)}:{port}")
        self.stdout.flush()
        server.run()
        tasks.flush(0.5)
        bus().close(0.3)
        sys.stdout.flush()
        # Request threads that still wait for something must not hold up the end.
        os._exit(0)

    def _ready(self) -> None:
        loop: asyncio.AbstractEventLoop = reactor._asyncioEventloop
        if not settings.REDIS_URL:
            server = UnixBusServer(socket_path(settings.BUS_SOCKET))
            self._serving = loop.create_task(server.start(), name="bus server")
        tasks.warm_up()
        collector.leave_out_what_is_loaded()
