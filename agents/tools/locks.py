"""Locks on files by real path, for all threads and processes of this machine that write through these tools.

The key is the real path of the file, or of its directory plus its name while it does not exist, in one case and one
Unicode form: on a file system that folds case `REAL.txt` is `real.txt`, on any other the two merely wait for each
other. A lock is an advisory `flock` on one of a fixed set of files outside every workspace, so nothing is left behind
and a lock ends with its process.
"""

import fcntl
import hashlib
import os
import stat
import time
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from agents.errors import ToolError
from agents.ports import CancelToken

# Two paths that share a lock wait for each other needlessly; with this many that is rare, and they take little room.
_STRIPES = 4096
_WAIT_S = 30.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.001, 0.02


class Cancelled(Exception):
    """The call must end; nothing was done."""


@contextmanager
def locked(paths: Iterable[str], cancel: CancelToken) -> Iterator[None]:
    """Hold the locks of these real paths, all or none.

    They are taken in one fixed order, so that two calls with several paths cannot wait for each other for ever. Raises
    ToolError (kind `locked`) after 30 s and Cancelled when the call must end.
    """
    stripes = {_stripe(path): path for path in paths}
    with ExitStack() as held:
        for stripe in sorted(stripes):
            held.enter_context(_held(stripe, stripes[stripe], cancel))
        yield


@contextmanager
def _held(stripe: int, path: str, cancel: CancelToken) -> Iterator[None]:
    # Opened anew each time: flock belongs to the open file, so threads of one process exclude each other too.
    descriptor = os.open(
        os.path.join(_directory(), f"{stripe:03x}"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
    )
    try:
        _wait_for(descriptor, path, cancel)
        yield
    finally:
        os.close(descriptor)


def _wait_for(descriptor: int, path: str, cancel: CancelToken) -> None:
    """A blocking flock cannot be cancelled, so it is tried again and again."""
    until, pause = time.monotonic() + _WAIT_S, _FIRST_PAUSE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            pass
        if cancel.cancelled:
            raise Cancelled
        if time.monotonic() >= until:
            name = os.path.basename(path)
            raise ToolError(
                f"{name!r} has been held by another call for {_WAIT_S:.0f} s. Nothing was changed; try again.",
                kind="locked",
            )
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE_S)


def _stripe(path: str) -> int:
    key = unicodedata.normalize("NFC", path).casefold()
    digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:4], "big") % _STRIPES


def _directory() -> str:
    """The same for every process of this user: a place that a changed TMPDIR would move would lock nothing."""
    path = os.environ.get("PILOTHOUSE_LOCKS") or f"/tmp/pilothouse-locks-{os.getuid()}"
    os.makedirs(path, mode=0o700, exist_ok=True)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise ToolError(f"{path} must be a directory of this user; remove it or set PILOTHOUSE_LOCKS.", kind="locks")
    return path
