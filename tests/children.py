"""Processes that tests start: none outlives the tests, however these end, and on Redis each house is by itself."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Sequence
from typing import Any

import redis

# Looked up before any fork: between fork and exec a child should do as little as it can.
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1


def start(command: Sequence[str], **more: Any) -> "subprocess.Popen[bytes]":
    """`Popen` of a child in a session of its own that the kernel kills when this process is gone, also by SIGKILL, and
    also while it is stopped. Its own children are its business: those of the product watch a pipe."""
    parent = os.getpid()

    def end_with_parent() -> None:
        if _prctl is not None:
            _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
            if os.getppid() != parent:
                os._exit(1)  # it went before we could ask

    more = {"stdin": subprocess.DEVNULL, "start_new_session": True, "preexec_fn": end_with_parent, **more}
    return subprocess.Popen(list(command), **more)


def redis_prefix(what: str) -> str:
    """A REDIS_PREFIX that nobody else has."""
    return f"test-{what}-{uuid.uuid4().hex[:12]}"


def forget_redis(url: str, prefix: str) -> None:
    """Delete what is kept under this prefix, if the server is there."""
    with contextlib.suppress(redis.RedisError), redis.Redis.from_url(url, socket_timeout=2) as server:
        if keys := list(server.scan_iter(f"{prefix}:*", count=1000)):
            server.delete(*keys)
