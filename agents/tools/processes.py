"""Ends processes, and all that they started, for sure: TERM, grace, KILL, and a look whether anything is left.

A command runs in a session of its own and carries its call's mark in its environment, which children inherit. So what
leaves the group or the session, or outlives its parent, is still found.
"""

import os
import random
import signal
import time
from collections.abc import Callable, Mapping

from agents.ports import StopReport
from agents.tools import proctable
from agents.tools.proctable import Proc, Table

RUN_MARK, CALL_MARK, WORKER_MARK = "PILOTHOUSE_RUN", "PILOTHOUSE_CALL", "PILOTHOUSE_WORKER"
GRACE_S = 1.0
# After KILL only processes stuck in the kernel remain; they are reported, not waited for.
_AFTER_KILL_S = 1.0
# Most processes end a few milliseconds after their TERM.
_FIRST_LOOK_S, _LOOK_EVERY_S = 0.004, 0.03

# Of what a worker has in its environment only this much is for its tools; keys and passwords are not.
_KEPT = (
    "PATH",
    "HOME",
    "LANG",
    "LANGUAGE",
    "TZ",
    "USER",
    "LOGNAME",
    "SHELL",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
)
_NOBODY_IS_THERE = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
}


def clean_environment(marks: Mapping[str, str]) -> dict[str, str]:
    """What a tool's process gets: a few harmless variables, nothing that waits for a person, and the marks."""
    # By name: reading all of the environment decodes all of it.
    names = (*_KEPT, *(name for name in os.environ if name.startswith("LC_")))
    kept = {name: value for name in names if (value := os.environ.get(name)) is not None}
    return {"PATH": os.defpath, "LANG": "C.UTF-8", **kept, **_NOBODY_IS_THERE, **marks}


def end_marked(name: str, value: str, grace_s: float = GRACE_S) -> StopReport:
    """End every process whose environment holds exactly `name=value`, and no other; never itself or an ancestor.

    Blocking, for at most the grace and a second.
    """
    return _end(lambda procs, _: proctable.marked(procs, name, value), grace_s)


def new_stamp() -> int:
    """A number for `proctable.stamp`, unlike any other."""
    return random.randrange(10**15, 10**18)


def end_session(leader: int, mark: str | None, grace_s: float = GRACE_S, *, stamp: int | None = None) -> StopReport:
    """End a command: its group, its session, everything that descends from these, and what carries the call's mark.

    A process that shed all of these, by a clean environment and a session and parent of its own, has the stamp still.

    `leader` must not have been reaped yet, or its number might be another's; nor signalled, or those of its children
    that shed group, session and mark can no longer be told from strangers. Blocking, as `end_marked`.
    """

    since = proctable.born(leader)

    def find(procs: Table, known: set[int]) -> set[int]:
        own = {pid for pid, proc in procs.items() if leader in (pid, proc.group, proc.session)}
        if mark:
            own |= proctable.marked(procs, CALL_MARK, mark)
        if stamp is not None:
            later = (proc for pid, proc in procs.items() if proc.born >= since and pid not in own)
            own |= proctable.stamped(later, stamp)
        return proctable.descendants(procs, own | known)

    return _end(find, grace_s)


def _end(find: Callable[[Table, set[int]], set[int]], grace_s: float) -> StopReport:
    """TERM whoever is found, also those born meanwhile; KILL who is there after the grace; count both.

    Once found, a process stays known though its parents are gone. `find` gets the table and who is known and alive.
    """
    spared = proctable.lineage()
    known: set[Proc] = set()
    told: set[Proc] = set()
    kill_at = time.monotonic() + grace_s
    give_up_at = kill_at + _AFTER_KILL_S
    pause = _FIRST_LOOK_S
    while True:
        now = time.monotonic()
        procs = proctable.look()
        still = {proc.pid for proc in known if procs.get(proc.pid) == proc}
        alive = {procs[pid] for pid in (find(procs, still) | still) - spared}
        known |= alive
        if not alive:
            return StopReport(processes=len(known))
        if now >= give_up_at:
            return StopReport(processes=len(known) - len(alive), left=len(alive))
        if now >= kill_at:
            _send(alive, signal.SIGKILL)
        else:
            _send(alive - told, signal.SIGTERM)
            _send(alive - told, signal.SIGCONT)  # one that is stopped would never see the TERM
            told |= alive
        time.sleep(pause)
        pause = min(pause * 2, _LOOK_EVERY_S)


def _send(procs: set[Proc], number: int) -> None:
    for proc in procs:
        proctable.send(proc, number)
