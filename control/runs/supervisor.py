"""The supervisor of `up`: starts the children, starts again what dies, and ends them all, leaving nothing behind."""

import logging
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from django.conf import settings

logger = logging.getLogger(__name__)

# Workers need up to five seconds to hand their runs back; then whoever is left is killed.
STOP_S = 8.0
FIRST_REST_S = 0.5
LONGEST_REST_S = 15.0
# A child that lived this long starts again without much rest.
PROVEN_S = 30.0
READY_S = 60.0
LOOK_S = 0.1


@dataclass(slots=True, kw_only=True)
class Child:
    """One process to keep running. `answers` is a URL that answers once it is ready."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    answers: str | None = None
    # What asks it to end. A worker takes SIGTERM for time to hand over, but here all go at once.
    end_by: signal.Signals = signal.SIGTERM
    process: "subprocess.Popen[bytes] | None" = None
    rest_s: float = FIRST_REST_S
    started_at: float = 0.0
    start_again_at: float = 0.0

    @classmethod
    def module(cls, name: str, *words: str) -> "Child":
        return cls(name=name, command=(sys.executable, "-m", *words))

    def start(self) -> None:
        self.started_at = time.monotonic()
        self.process = subprocess.Popen(
            self.command,
            cwd=settings.BASE_DIR,
            env={**os.environ, **self.environment},
            # Its end of a pipe that nobody else writes to: when we are gone, however we went, the child notices.
            stdin=subprocess.PIPE,
            # A session of its own: Ctrl-C in the terminal reaches us alone, and we stop them in order.
            start_new_session=True,
            preexec_fn=_end_with_us,  # this process has one thread
        )


def manage(name: str, *words: str, environment: Mapping[str, str] | None = None, answers: str | None = None) -> Child:
    """A child that is a command of ours and watches the pipe."""
    command = (sys.executable, str(settings.BASE_DIR / "manage.py"), *words, "--with-parent")
    end_by = signal.SIGINT if words[0] == "worker" else signal.SIGTERM
    return Child(name=name, command=command, environment=environment or {}, answers=answers, end_by=end_by)


def _end_with_us() -> None:
    """On Linux the kernel tells a child when its parent dies, which serves those that watch no pipe."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


class Supervisor:
    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._children: list[Child] = []
        self._stopping = False

    def run(self, children: Sequence[Child], ready: Callable[[], None]) -> None:
        """Until SIGINT or SIGTERM. `ready` is called once, when those that can be asked have answered."""
        self._children = list(children)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        try:
            for child in self._children:
                if not self._stopping:
                    child.start()
            waiting: list[Child] | None = [child for child in self._children if child.answers]
            give_up_at = time.monotonic() + READY_S
            while not self._stopping:
                self._look()
                if waiting is not None and all(_answers(child) for child in waiting):
                    ready()
                    waiting = None
                elif waiting is not None and time.monotonic() > give_up_at:
                    self._say(f"The console does not answer after {READY_S:.0f} s; still trying. See the log above.")
                    give_up_at = time.monotonic() + READY_S
                time.sleep(LOOK_S)
        finally:
            self._end()

    def _on_signal(self, number: int, frame: object) -> None:
        if self._stopping:
            for child in self._children:
                _signal(child, signal.SIGKILL)
        self._stopping = True

    def _look(self) -> None:
        """Start again what has died: at once-ish the first time, then more and more slowly."""
        now = time.monotonic()
        for child in self._children:
            if child.process is not None and child.process.poll() is not None:
                if now - child.started_at > PROVEN_S:
                    child.rest_s = FIRST_REST_S
                code = child.process.returncode
                why = f"signal {-code}" if code < 0 else f"exit code {code}"
                self._say(f"{child.name} ended ({why}); starting it again in {child.rest_s:g} s")
                child.process = None
                child.start_again_at = now + child.rest_s
                child.rest_s = min(child.rest_s * 2, LONGEST_REST_S)
            elif child.process is None and now >= child.start_again_at:
                child.start()

    def _end(self) -> None:
        """All are asked at once, so that workers hand back while web and desk end; KILL whoever is left."""
        for child in self._children:
            _signal(child, child.end_by)
        kill_at = time.monotonic() + STOP_S
        while left := [c for c in self._children if c.process is not None and c.process.poll() is None]:
            if time.monotonic() > kill_at:
                for child in left:
                    logger.warning("%s did not end in %g s; killing it", child.name, STOP_S)
                    _signal(child, signal.SIGKILL)
                kill_at += 1.0
            time.sleep(0.02)


def _signal(child: Child, number: int) -> None:
    if child.process is not None and child.process.poll() is None:
        child.process.send_signal(number)


def _answers(child: Child) -> bool:
    """Whether its URL gives any answer that is not an error of the server."""
    if child.process is None or child.process.poll() is not None:
        return False
    try:
        with urllib.request.urlopen(str(child.answers), timeout=1.0) as answer:  # our own address
            return bool(answer.status < 500)
    except urllib.error.HTTPError as error:
        return error.code < 500
    except OSError:
        return False
