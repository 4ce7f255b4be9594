"""One command in a session of its own: from its start to its verified end, on the event loop, without blocking it."""

import asyncio
import contextlib
import fcntl
import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from agents.ports import StopReport
from agents.tools import proctable
from agents.tools.captured import Captured
from agents.tools.processes import CALL_MARK, GRACE_S, end_session, new_stamp

OUTPUT_CAP = 8 * 1024 * 1024
_CHUNK = 256 * 1024
_SET_PIPE_SIZE = getattr(fcntl, "F_SETPIPE_SZ", None)
# Beyond the cap output is only counted; a command that floods must not keep the loop from its other runs.
_FLOOD_PAUSE_S = 0.005
# How long output may still come after the command ended: what it wrote is in the pipe already, what keeps the pipe
# open is a process that it left behind.
_DRAIN_S = 0.2
# The command begins when its process is stamped: what it started before that could not be told as its own. If this
# worker dies first, it never begins.
_GATED = ("/bin/sh", "-c", 'read -r go && exec "$@" </dev/null', "sh")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """`exit_code` is negative for a signal, None if the command was ended from here. `ended`: what was left."""

    exit_code: int | None
    timed_out: bool
    output: str
    total: int
    ended: StopReport


async def run_in_session(
    command: Sequence[str],
    *,
    cwd: str,
    environment: Mapping[str, str],
    timeout_s: float,
    stopped: Callable[[StopReport], None],
    cap: int = OUTPUT_CAP,
    grace_s: float = GRACE_S,
) -> Finished:
    """Run a command to its end, its timeout or the cancel of this task, and leave no process of it behind.

    Standard input is the null device and there is no terminal. `stopped` is told what was ended, before a cancel goes
    on. Raises OSError or ValueError if the command cannot be started.
    """
    output = Captured(cap)
    stamp = new_stamp()
    process, pipe = _start(command, cwd, environment, stamp)
    reader = _Reader(pipe, output)
    timed_out = False
    cancel: asyncio.CancelledError | None = None
    try:
        try:
            async with asyncio.timeout(timeout_s):
                await exited(process)
        except TimeoutError:
            timed_out = True
        else:
            await reader.at_end(_DRAIN_S)
    except asyncio.CancelledError as error:
        cancel = error
    try:
        report, later = await to_the_end(lambda: finish(process, environment.get(CALL_MARK), stamp, grace_s))
        cancel = cancel or later
        if cancel is not None or report.processes or report.left:
            stopped(report)
        if cancel is not None:
            raise cancel
        reader.read_what_is_there()
    finally:
        reader.close()
    code = None if timed_out else process.returncode
    return Finished(exit_code=code, timed_out=timed_out, output=output.text(), total=output.total, ended=report)


def _start(
    command: Sequence[str], cwd: str, environment: Mapping[str, str], stamp: int
) -> tuple["subprocess.Popen[bytes]", int]:
    """The command in a session of its own, and the end of a pipe that has its output."""
    ours, theirs = os.pipe()
    held, gate = os.pipe()
    try:
        if _SET_PIPE_SIZE is not None:
            with contextlib.suppress(OSError):  # a user's pipes may be limited; a small one works too
                fcntl.fcntl(ours, _SET_PIPE_SIZE, _CHUNK)
        os.set_blocking(ours, False)
        process = subprocess.Popen(
            [*_GATED, *command],
            cwd=cwd,
            env=dict(environment),
            stdin=held,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        proctable.stamp(process.pid, stamp)
        with contextlib.suppress(BrokenPipeError):  # it has ended already
            os.write(gate, b"\n")
    except BaseException:
        os.close(ours)
        raise
    finally:
        for descriptor in (theirs, held, gate):
            os.close(descriptor)
    return process, ours


async def exited(process: "subprocess.Popen[bytes]") -> None:
    """Wait until the process has ended, without reaping it: while it is a zombie its number stays its own."""
    loop = asyncio.get_running_loop()
    if not hasattr(os, "pidfd_open"):
        while not _is_zombie(process.pid):  # noqa: ASYNC110 - a state of the kernel, which sets no event
            await asyncio.sleep(0.02)
        return
    descriptor = os.pidfd_open(process.pid)
    over = loop.create_future()
    try:
        loop.add_reader(descriptor, lambda: None if over.done() else over.set_result(None))
        await over
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _is_zombie(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def finish(process: "subprocess.Popen[bytes]", mark: str | None, stamp: int, grace_s: float) -> StopReport:
    report = end_session(process.pid, mark, grace_s, stamp=stamp)
    with contextlib.suppress(subprocess.TimeoutExpired):  # stuck in the kernel: counted as left
        process.wait(timeout=1.0)
    return report


async def to_the_end(work: Callable[[], StopReport]) -> tuple[StopReport, asyncio.CancelledError | None]:
    """Run it in a thread of its own, since the shared ones may be held by deaf work, and see it through any cancel.

    The second value is a cancel that came meanwhile, for the caller to raise.
    """
    loop = asyncio.get_running_loop()
    over: asyncio.Future[StopReport] = loop.create_future()

    def settle(report: StopReport) -> None:
        if not over.done():
            over.set_result(report)

    def body() -> None:
        report = StopReport(left=1)  # if even the look fails, nothing is known to have ended
        try:
            report = work()
        finally:
            with contextlib.suppress(RuntimeError):  # the loop may be closed by now
                loop.call_soon_threadsafe(settle, report)

    threading.Thread(target=body, name="end-session", daemon=True).start()
    cancelled: asyncio.CancelledError | None = None
    while not over.done():
        try:
            await asyncio.shield(over)
        except asyncio.CancelledError as error:
            cancelled = error
    return over.result(), cancelled


class _Reader:
    """Reads the pipe as the loop finds it readable."""

    def __init__(self, pipe: int, output: Captured) -> None:
        self._pipe = pipe
        self._output = output
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self._pause: asyncio.TimerHandle | None = None
        self._loop.add_reader(pipe, self._readable)

    async def at_end(self, within_s: float) -> None:
        """Wait for the end of the output, but not longer than this."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._over.wait()

    def read_what_is_there(self) -> None:
        """All that is in the pipe now; whoever wrote it has been ended, so this comes to an end."""
        while not self._over.is_set() and self._read():
            pass

    def close(self) -> None:
        self._loop.remove_reader(self._pipe)
        if self._pause is not None:
            self._pause.cancel()
        os.close(self._pipe)

    def _readable(self) -> None:
        if self._read() and self._output.full:
            self._loop.remove_reader(self._pipe)
            self._pause = self._loop.call_later(_FLOOD_PAUSE_S, self._go_on)

    def _go_on(self) -> None:
        self._loop.add_reader(self._pipe, self._readable)

    def _read(self) -> bool:
        """Whether something came."""
        try:
            chunk = os.read(self._pipe, _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self._loop.remove_reader(self._pipe)
            self._over.set()
            return False
        self._output.add(chunk)
        return True
