"""The Celery tasks: hand a run to this worker's loop, do a chore now; and the one way to publish the first of them."""

import logging
import queue
import re
import threading
from collections.abc import Callable

from django.conf import settings

from control.celery import RUNS, app

logger = logging.getLogger(__name__)

_ODD = re.compile(r"[^A-Za-z0-9.-]")

# The host of this process, once it is ready. It registers itself: whoever only publishes must not load the engine.
_taker: Callable[[str], None] | None = None


def take_with(taker: Callable[[str], None] | None) -> None:
    global _taker
    _taker = taker


@app.task(name="control.runs.tasks.drive", ignore_result=True)  # type: ignore[untyped-decorator]
def drive(run_id: str) -> None:
    """Hand the run to the loop of this process. A copy that comes twice finds it claimed and does nothing."""
    if _taker is None:
        logger.error("run %s reached a process without a loop; start workers with 'manage.py worker'", run_id)
    else:
        _taker(run_id)


@app.task(name="control.runs.tasks.do_chore", ignore_result=True)  # type: ignore[untyped-decorator]
def do_chore(name: str) -> None:
    """Do one of the desk's chores now instead of at its next turn."""
    from control.runs import chores

    chores.do_soon(name)


class _Publisher:
    """One thread that publishes: a request never waits for a broker, and one that is down costs nothing but a retry
    by the sweeper, which publishes again what nobody claimed."""

    LIMIT = 10_000

    def __init__(self) -> None:
        self._queue: queue.Queue[tuple[str, str]] = queue.Queue(self.LIMIT)
        self._lock = threading.Lock()  # guards the start of the one thread
        self._thread: threading.Thread | None = None

    def put(self, run_id: str, name: str = RUNS) -> None:
        try:
            self._queue.put_nowait((run_id, name))
        except queue.Full:
            logger.warning("run %s not published now: the broker takes too little; the sweeper will", run_id)
            return
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)
                    self._thread.start()

    def flush(self, timeout_s: float) -> None:
        """Wait until all is published or given up, at most `timeout_s`."""
        done = self._queue.all_tasks_done
        with done:
            done.wait_for(lambda: not self._queue.unfinished_tasks, timeout_s)

    def _run(self) -> None:
        while True:
            run_id, where = self._queue.get()
            try:
                if run_id:
                    drive.apply_async((run_id,), queue=where, retry=False)
                else:
                    with app.producer_pool.acquire(block=False) as producer:
                        producer.channel  # noqa: B018  # connects
            except Exception as error:
                # Whatever the broker's client raises: the row stays queued and is published again.
                logger.warning("run %s not published (%s); the sweeper will", run_id, error)
            finally:
                self._queue.task_done()


_publisher = _Publisher()


def queue_of(host: str) -> str:
    """The queue of one machine's workers, for runs whose workspace is there; without Redis there is one machine."""
    return f"{RUNS}-{_ODD.sub('_', host)}" if settings.REDIS_URL else RUNS


def publish(run_id: str, host: str | None = None) -> None:
    """Tell the workers, or those of one machine, that a queued run is there. Call after commit; never blocks."""
    _publisher.put(run_id, queue_of(host) if host else RUNS)


def warm_up() -> None:
    """Connect to the broker now, so that the first start does not wait for that."""
    _publisher.put("")


def flush(timeout_s: float = 1.0) -> None:
    """For short-lived processes, before they exit."""
    _publisher.flush(timeout_s)
