"""Counters of this one process, for `/metrics`: what a web process has sent to its viewers. They begin anew with it."""

import time


class Meter:
    """Written on one loop and read from threads; each is one number, so nothing is torn."""

    __slots__ = ("frame_bytes", "frames", "resyncs", "sockets", "started_at")

    def __init__(self) -> None:
        self.started_at = time.time()
        self.frames = 0
        self.frame_bytes = 0
        # Viewers that were too slow and were told to start again from where they stood.
        self.resyncs = 0
        # Open now.
        self.sockets = 0


METER = Meter()
