"""Renewal: a thread of its own keeps the leases of this worker, so that a busy loop does not lose them."""

import logging
import threading
from collections.abc import Callable, Mapping

from django.conf import settings
from django.db import connection

from control.runs import leases, roster
from control.runs.leases import WorkerLease, clock_s

logger = logging.getLogger(__name__)


class Renewal(threading.Thread):
    """Renews every third of a lease; after a failure sooner. `told` gets what is still held, from this thread."""

    def __init__(
        self,
        worker: str,
        lease: WorkerLease,
        state: Callable[[], tuple[int, bool]],
        told: Callable[[Mapping[str, int], float], None],
    ) -> None:
        """`state` says how many runs there are and whether the worker is draining; `told(held, since)`."""
        super().__init__(name="renewal", daemon=True)
        self._worker = worker
        self._lease = lease
        self._state = state
        self._told = told
        self._stop = threading.Event()

    def stop(self) -> None:
        self._stop.set()

    def run(self) -> None:
        rest = settings.LEASE_RENEW_SECONDS
        while not self._stop.wait(rest):
            rest = settings.LEASE_RENEW_SECONDS if self._renew() else min(0.5, settings.LEASE_RENEW_SECONDS)
        connection.close()

    def _renew(self) -> bool:
        since = clock_s()
        try:
            held = leases.renew(self._worker)
            runs, draining = self._state()
            roster.seen(self._worker, runs=runs, draining=draining)
        except Exception as error:
            logger.warning("leases not renewed: %s", error)
            connection.close()
            return False
        self._lease.renewed_at = since
        self._told(held, since)
        return True
