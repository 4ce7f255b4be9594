"""Ends a worker's tool processes when the worker is gone, however it went.

`python -m agents.tools.guardian --worker ID` holds the read end of a pipe whose write end only the worker has. End of
file means that the worker has ended, was killed or let go; then every process that carries its mark is ended.
"""

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path

from agents.tools.processes import GRACE_S, WORKER_MARK, clean_environment, end_marked

# What a process forked at the very end may slip through; each round is one look at the table when all is quiet.
_ROUNDS = 5
_ROOT = str(Path(__file__).resolve().parents[2])


def start_guardian(worker: str) -> "subprocess.Popen[bytes]":
    """Start the guardian of this process. Keep the result: closing its `stdin` tells the guardian to act and end."""
    return subprocess.Popen(
        [sys.executable, "-m", "agents.tools.guardian", "--worker", worker],
        stdin=subprocess.PIPE,
        cwd=_ROOT,
        env=clean_environment({}),
        start_new_session=True,
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m agents.tools.guardian", description=__doc__)
    parser.add_argument("--worker", required=True, help="the worker id whose marked processes end with it")
    parser.add_argument("--grace", type=float, default=GRACE_S, help="seconds between TERM and KILL")
    chosen = parser.parse_args(arguments)
    _outlive_the_group()
    _wait_for_end(sys.stdin.fileno())
    left = 0
    for _ in range(_ROUNDS):
        report = end_marked(WORKER_MARK, chosen.worker, chosen.grace)
        left = report.left
        if not report.processes and not left:
            break
    return 1 if left else 0


def _outlive_the_group() -> None:
    """Signals meant for the worker's group or terminal must not end the one who cleans up after it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    try:
        os.setsid()
    except PermissionError:
        pass  # it leads a session already


def _wait_for_end(descriptor: int) -> None:
    while os.read(descriptor, 4096):
        pass


if __name__ == "__main__":
    sys.exit(main())
