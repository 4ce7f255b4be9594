"""Celery's consumer in a thread: the solo pool, without its signal handlers: the main thread keeps those."""

import logging
import threading
import time
from typing import Any

from celery import signals
from celery.worker import WorkController, consumer, state

from control.celery import app

logger = logging.getLogger(__name__)

AGAIN_S = 1.0
LONGEST_REST_S = 1.0


@signals.setup_logging.connect  # type: ignore[untyped-decorator]
def _leave_logging_alone(**_: object) -> None:
    """A receiver is enough: Celery then leaves the handlers that our command has set."""


class _Prompt(consumer.Consumer):  # type: ignore[misc]
    """Back as soon as the broker is. Celery's own waits grow to half a minute, in which new runs would stand still."""

    def ensure_connected(self, conn: Any) -> Any:
        told = False

        def tell(error: Exception, rest_s: float) -> None:
            nonlocal told
            if not told:
                logger.warning("the broker cannot be reached (%s); trying again every second", error)
            told = True

        made = conn.ensure_connection(
            tell,
            None,
            interval_start=0.1,
            interval_step=0.1,
            interval_max=LONGEST_REST_S,
            callback=state.maybe_shutdown,
        )
        self.first_connection_attempt = False
        return made


class Consumer(threading.Thread):
    """Takes messages from these queues and runs their tasks, one at a time, until told to stop."""

    def __init__(self, queues: list[str], name: str) -> None:
        super().__init__(name="consumer", daemon=True)
        self._queues = queues
        self._hostname = name
        self._stopping = threading.Event()

    def run(self) -> None:
        app.finalize()
        app.set_current()
        app.set_default()
        while not self._stopping.is_set():
            try:
                self._controller().start()
            except Exception:
                logger.exception("the consumer ended; starting it again")
            if not self._stopping.wait(AGAIN_S):
                state.should_stop = None

    def _controller(self) -> WorkController:
        return WorkController(
            app=app,
            hostname=self._hostname,
            pool="solo",
            consumer_cls=_Prompt,
            concurrency=1,
            queues=self._queues,
            loglevel=logging.WARNING,
            without_heartbeat=True,
            without_mingle=True,
            without_gossip=True,
        )

    def stop(self, timeout_s: float) -> None:
        """Take no more messages. What was taken and not begun goes back, or is published again by the sweeper."""
        self._stopping.set()
        state.should_stop = 0
        give_up_at = time.monotonic() + timeout_s
        while self.is_alive() and time.monotonic() < give_up_at:
            self.join(0.05)
