"""Chores: recurring work of the desk; several desks may run, and each chore is done by one of them at a time.

An app registers its chores in a module `chores.py`, which the desk finds by itself.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from django.db import connection
from django.utils.module_loading import autodiscover_modules

from control.runs.dbtime import ahead_sql, now_sql
from control.runs.models import Chore as ChoreRow

logger = logging.getLogger(__name__)

# So long after a desk has died others take over its chores. One that takes longer than this may be begun by another
# desk as well; chores bear that.
HOLD_S = 6.0

Work = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chore:
    """`local` ones are about the machine itself: each host has its own claim on them. `urgent` ones never wait for
    others to end; `apart` ones speak with other machines and hold up nobody when those are slow."""

    name: str
    every_s: float
    work: Work
    local: bool = False
    urgent: bool = False
    apart: bool = False


_chores: dict[str, Chore] = {}
_soon: set[str] = set()
_wakes: set[threading.Event] = set()


def chore(
    name: str, *, every_s: float, local: bool = False, urgent: bool = False, apart: bool = False
) -> Callable[[Work], Work]:
    """Register a function without arguments as a chore, done every `every_s` seconds by one desk."""

    def register(work: Work) -> Work:
        _chores[name] = Chore(name=name, every_s=every_s, work=work, local=local, urgent=urgent, apart=apart)
        return work

    return register


def do_soon(name: str) -> None:
    """Have this process's desk do a chore at once."""
    _soon.add(name)
    for wake in tuple(_wakes):
        wake.set()


def claim(name: str, owner: str, hold_s: float = HOLD_S) -> bool:
    """Take the chore, or keep it; False while another owner has it."""
    ChoreRow.objects.get_or_create(name=name)
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE runs_chore SET owner = %s, until = {ahead_sql(connection)} "
            f"WHERE name = %s AND (until IS NULL OR until < {now_sql(connection)} OR owner = %s)",
            [owner, hold_s, name, owner],
        )
        return bool(cursor.rowcount)


class _Lane:
    """Does some of the chores, one after the other, in the thread that calls `run`."""

    def __init__(self, chores: list[Chore], owner: str, host: str) -> None:
        self._chores = chores
        self._owner = owner
        self._host = host
        self._due: dict[str, float] = {}
        self._ours_until: dict[str, float] = {}
        self._wake = threading.Event()
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True
        self._wake.set()

    def run(self) -> None:
        _wakes.add(self._wake)
        while not self._stopped:
            self._turn()
            next_at = min(self._due.values(), default=time.monotonic() + 1.0)
            self._wake.wait(min(max(next_at - time.monotonic(), 0.01), 1.0))
            self._wake.clear()
        _wakes.discard(self._wake)
        self._give_back()
        connection.close()

    def _turn(self) -> None:
        for one in self._chores:
            now = time.monotonic()
            if self._stopped or (one.name not in _soon and now < self._due.get(one.name, 0.0)):
                continue
            _soon.discard(one.name)
            self._do(one)
            self._due[one.name] = time.monotonic() + one.every_s

    def _do(self, one: Chore) -> None:
        try:
            if self._is_ours(one):
                one.work()
        except Exception:
            # The next turn tries again; a database that is away must not end the desk.
            logger.exception("chore %s failed", one.name)
            connection.close()

    def _is_ours(self, one: Chore) -> bool:
        """A claim is renewed when half of it is over, not at each turn: most turns find nothing to do."""
        key = self._key(one)
        began = time.monotonic()
        if self._ours_until.get(key, 0.0) - began > HOLD_S / 2:
            return True
        if not claim(key, self._owner):
            self._ours_until.pop(key, None)
            return False
        self._ours_until[key] = began + HOLD_S
        return True

    def _key(self, one: Chore) -> str:
        return f"{one.name}@{self._host}"[:60] if one.local else one.name

    def _give_back(self) -> None:
        try:
            ChoreRow.objects.filter(owner=self._owner, name__in=list(self._ours_until)).update(until=None)
        except Exception as error:
            logger.warning("chores not given back (%s); they are free again in %g s", error, HOLD_S)


class Desk:
    """All chores in lanes: the urgent ones (sweeping), each that stands apart, and the others, so that a long one
    delays no sweep."""

    def __init__(self, owner: str, host: str) -> None:
        from control.runs import counters, reclaim, sweeper  # noqa: F401  # they register their chores
        from control.runs.ledger import orphans  # noqa: F401
        from control.runs.traces import sender  # noqa: F401

        autodiscover_modules("chores")
        found = tuple(_chores.values())
        self._urgent = _Lane([one for one in found if one.urgent], owner, host)
        self._others = [_Lane([one for one in found if not one.urgent and not one.apart], owner, host)]
        self._others += [_Lane([one], owner, host) for one in found if one.apart and not one.urgent]

    def stop(self) -> None:
        for lane in (self._urgent, *self._others):
            lane.stop()

    def run(self) -> None:
        """Until `stop`."""
        others = [threading.Thread(target=lane.run, name="chores", daemon=True) for lane in self._others]
        for other in others:
            other.start()
        self._urgent.run()
        give_up_at = time.monotonic() + 2.0
        for other in others:
            other.join(max(0.0, give_up_at - time.monotonic()))
