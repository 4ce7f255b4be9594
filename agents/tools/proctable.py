"""The machine's processes as one look at the table shows them: who belongs to whom, and who carries which mark."""

import os
import re
import resource
import signal
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import psutil

_PROC = "/proc"
_OURS, _NONE = b"PILOTHOUSE_", frozenset[bytes]()
_STAMP = re.compile(rb"Max realtime timeout +(\d+) ")
_HAS_PROC = os.path.exists("/proc/self/stat")


@dataclass(frozen=True, slots=True)
class Proc:
    """One live process; `born` tells it from a later one with the same number, whatever else changes."""

    pid: int
    parent: int = field(compare=False)
    group: int = field(compare=False)
    session: int = field(compare=False)
    born: float


class Table(dict[int, Proc]):
    """All processes but zombies, by number, and what was read of them since: many who end tools at once share it."""

    def __init__(self, found: Iterable[Proc | None]) -> None:
        super().__init__((proc.pid, proc) for proc in found if proc is not None)
        self._marks: dict[int, frozenset[bytes]] | None = None
        self._reading = threading.Lock()  # guards _marks

    def marks(self) -> Mapping[int, frozenset[bytes]]:
        """What of our own each process has in its environment; one that cannot be read is not ours."""
        with self._reading:
            if self._marks is None:
                self._marks = {pid: _marks_of(pid) for pid in self}
            return self._marks


class _Looks:
    """Looks at the table, shared: who asks while somebody looks takes the next look, with all who wait for it."""

    def __init__(self) -> None:
        self._looking = threading.Lock()  # guards the other two
        self._began = -1.0
        self._table = Table(())

    def look(self) -> Table:
        asked = time.monotonic()
        with self._looking:
            if self._began <= asked:
                self._began, self._table = time.monotonic(), Table(_processes())
            return self._table


_looks = _Looks()


def look() -> Table:
    """The table as it is now, or was at a moment after the call began."""
    return _looks.look()


def _processes() -> Iterable[Proc | None]:
    return (_from_proc(int(name)) for name in os.listdir(_PROC) if name.isdigit()) if _HAS_PROC else _from_psutil()


def marked(procs: Table, name: str, value: str) -> set[int]:
    """Those whose environment holds exactly `name=value`."""
    mark = f"{name}={value}".encode()
    return {pid for pid, marks in procs.marks().items() if mark in marks}


def stamp(pid: int, number: int) -> None:
    """Put a number on a process which its children inherit and cannot shed, whatever environment they give themselves.

    It is a limit on the time of real-time tasks, of decades. Where there is no such thing, nothing happens.
    """
    try:
        resource.prlimit(pid, resource.RLIMIT_RTTIME, (number, resource.RLIM_INFINITY))
    except (AttributeError, OSError, ValueError):
        pass  # another system, a lower limit, or it has ended already


def stamped(procs: Iterable[Proc], number: int) -> set[int]:
    """Those that carry this number."""
    return {proc.pid for proc in procs if _stamp_of(proc.pid) == number}


def born(pid: int) -> float:
    """When a process of ours was started, as `Proc.born` tells it; 0 if that cannot be told."""
    try:
        with open(f"{_PROC}/{pid}/stat", "rb") as file:
            text = file.read()
        return float(text[text.rindex(b")") + 2 :].split()[19])
    except OSError:
        return 0.0


def descendants(procs: Mapping[int, Proc], roots: set[int]) -> set[int]:
    """The roots that live and all that descend from them."""
    children: dict[int, list[int]] = {}
    for proc in procs.values():
        children.setdefault(proc.parent, []).append(proc.pid)
    found: set[int] = set()
    todo = list(roots)
    while todo:
        pid = todo.pop()
        if pid not in found:
            found.add(pid)
            todo += children.get(pid, [])
    return found & procs.keys()


def send(proc: Proc, number: int) -> None:
    """Signal exactly this process, not a later one that got its number. One that is gone or foreign is left alone."""
    try:
        if not hasattr(os, "pidfd_open"):
            os.kill(proc.pid, number)
            return
        descriptor = os.pidfd_open(proc.pid)
        try:
            if _from_proc(proc.pid) == proc:
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)
    except OSError:
        pass  # whoever is still there at the next look is counted then


def lineage() -> set[int]:
    """This process and its ancestors: never to be ended by itself."""
    pid, found = os.getpid(), set[int]()
    while pid > 0 and pid not in found:
        found.add(pid)
        proc = _from_proc(pid) if _HAS_PROC else look().get(pid)
        pid = proc.parent if proc is not None else 0
    return found


def _from_proc(pid: int) -> Proc | None:
    try:
        with open(f"{_PROC}/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:  # it ended, or another user hides it
        return None
    # The name in brackets may hold anything, so fields count from the last bracket.
    fields = text[text.rindex(b")") + 2 :].split()
    if fields[0] in (b"Z", b"X"):
        return None
    return Proc(pid, int(fields[1]), int(fields[2]), int(fields[3]), float(fields[19]))


def _from_psutil() -> Iterable[Proc | None]:
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                pid = process.pid
                yield Proc(pid, process.ppid(), os.getpgid(pid), os.getsid(pid), process.create_time())
        except (psutil.Error, OSError):
            continue


def _stamp_of(pid: int) -> int | None:
    try:
        with open(f"{_PROC}/{pid}/limits", "rb") as file:
            found = _STAMP.search(file.read())
    except OSError:
        return None
    return int(found[1]) if found else None


def _marks_of(pid: int) -> frozenset[bytes]:
    try:
        if not _HAS_PROC:
            words = [f"{name}={value}".encode() for name, value in psutil.Process(pid).environ().items()]
        else:
            with open(f"{_PROC}/{pid}/environ", "rb") as file:
                text = file.read()
            words = text.split(b"\x00") if _OURS in text else []
    except (psutil.Error, OSError):
        return _NONE
    return frozenset(word for word in words if word.startswith(_OURS)) or _NONE
