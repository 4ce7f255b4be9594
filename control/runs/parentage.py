"""A child of `up` ends with it, also when `up` is killed: it holds one end of a pipe and stops at its end of file."""

import os
import signal
import sys
import threading

from django.core.management.base import CommandParser


def add_argument(parser: CommandParser) -> None:
    parser.add_argument("--with-parent", action="store_true", help="stop when standard input is closed")


def end_with_parent() -> None:
    """Watch standard input in a thread and, at its end, send this process SIGTERM."""
    threading.Thread(target=_watch, name="parent watch", daemon=True).start()


def _watch() -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
