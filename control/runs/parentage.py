"""How a process of ours begins and ends in order.

A child of `up` ends with it, also when `up` is killed: it holds one end of a pipe and stops at its end of file, in
order if it can and in any case soon.
"""

import faulthandler
import logging
import os
import signal
import sys
import threading
import time

from django.core.management.base import CommandParser
from django.db import connection

from control.runs import roster
from control.runs.outages import AWAY

logger = logging.getLogger(__name__)

# Longer than any of us takes to end in order once nobody is left to hand over to.
END_WITHIN_S = 12.0


def add_argument(parser: CommandParser) -> None:
    parser.add_argument("--with-parent", action="store_true", help="stop when standard input is closed")


def end_with_parent() -> None:
    """Watch standard input in a thread and, at its end, send this process SIGINT: nobody is left to hand over to."""
    threading.Thread(target=_watch, name="parent watch", daemon=True).start()


def farewell(worker: str) -> None:
    """Leave the roster; if the database does not answer now, the sweeper strikes us off."""
    # This thread's connection has been idle since the start and may be dead.
    connection.close()
    try:
        roster.leave(worker)
    except AWAY as error:
        logger.warning("not struck off the roster: %s", error)


def _watch() -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGINT)
    # Whatever holds the end up, nothing of a house stays behind when its head is gone; where it hung is said.
    time.sleep(END_WITHIN_S)
    faulthandler.dump_traceback()
    os._exit(1)
