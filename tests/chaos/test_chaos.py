"""Everything breaks while runs go on: workers, Redis, PostgreSQL, messages. What must hold holds all the same."""

import random
import signal
import subprocess
import time
from collections.abc import Callable

import pytest

from control.celery import RUNS
from control.runs import tasks
from control.runs.leases import this_host
from tests.chaos.conftest import FULL, Trial
from tests.chaos.fleet import LEASE_S, Fleet
from tests.chaos.load import Load
from tests.control.runs.processes import until

pytestmark = [pytest.mark.chaos, pytest.mark.servers]
MakeTrial = Callable[..., Trial]
ALIVE = 20 if FULL else 6


def size(small: int, full: int) -> int:
    return full if FULL else small


def _busy(fleet: Fleet, least: int = 3) -> None:
    """Wait until at least so many runs are being driven."""

    def driven() -> bool:
        return bool(fleet.sql("SELECT count(*) FROM runs_run WHERE status = 'running'")[0][0] >= least)

    until(driven, 60, f"{least} runs are driven")


def _a_moment(fleet: Fleet, longest: float = 1.0) -> None:
    """Some time, so that what comes next hits anything."""
    time.sleep(fleet.random.uniform(0.05, longest))


def test_workers_killed_at_any_moment(trial: MakeTrial) -> None:
    one = trial()
    one.begin(alive=ALIVE)
    for _ in range(size(3, 50)):
        _busy(one.fleet)
        _a_moment(one.fleet)
        one.fleet.kill_a_worker()
    assert one.settle(may_lose=True) == []


def test_redis_restarted_again_and_again_and_emptied(trial: MakeTrial) -> None:
    one = trial()
    one.begin(alive=ALIVE)
    for _ in range(size(2, 10)):
        _busy(one.fleet)
        _a_moment(one.fleet)
        one.fleet.redis.kill()
        _a_moment(one.fleet)
        one.fleet.redis.start()
        _a_moment(one.fleet)
        one.fleet.redis.empty()
    assert one.settle() == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
def test_postgresql_restarted(trial: MakeTrial, how: signal.Signals) -> None:
    one = trial()
    one.begin(alive=ALIVE)
    for _ in range(size(1, 3)):
        _busy(one.fleet)
        _a_moment(one.fleet)
        one.fleet.restart_postgres(how)
    assert one.settle() == []


def test_postgresql_away_for_longer_than_a_lease_again_and_again(trial: MakeTrial) -> None:
    """More often than a run may lose its worker: an outage is no failure of a run."""
    one = trial(pace_s=0.3)
    load = one.begin(alive=ALIVE, turns=25)
    _busy(one.fleet, ALIVE)
    load.stop()
    for _ in range(4):
        one.fleet.postgres.stop()
        time.sleep(1.4 * LEASE_S)
        one.fleet.postgres.start()
        _busy(one.fleet, 1)
        _a_moment(one.fleet)
    assert one.settle() == []


@pytest.mark.parametrize("where", ["anywhere", "in a transaction"])
def test_a_worker_frozen_past_its_lease_and_woken(trial: MakeTrial, where: str) -> None:
    """It is on another machine: nobody may end it, its runs go on elsewhere, and then it comes back."""
    one = trial(workers=1)
    one.begin(alive=ALIVE, turns=8)
    for _ in range(size(1, 5)):
        _freeze_and_wake(one.fleet, one.fleet.worker(elsewhere=True), where)
    assert one.settle() == []


def _freeze_and_wake(fleet: Fleet, far: "subprocess.Popen[bytes]", where: str) -> None:
    def held() -> dict[str, int]:
        sql = "SELECT id, epoch FROM runs_run WHERE lease_until IS NOT NULL AND worker = %s"
        return dict(fleet.sql(sql, fleet.worker_id(far)))

    def gone() -> bool:
        epochs = dict(fleet.sql("SELECT id, epoch FROM runs_run"))
        return all(epochs[run] > epoch for run, epoch in frozen.items())

    worker = fleet.inside(far)
    until(lambda: len(held()) >= 2, 60, "it holds runs")
    worker.suspend()
    give_up_at = time.monotonic() + 60
    while where == "in a transaction" and not fleet.in_a_transaction(far):
        assert time.monotonic() < give_up_at, "it is never caught in a transaction"
        worker.resume()
        # Awake for longer than asleep, or its leases would lapse by the search alone.
        until(held, 30, "it holds runs")
        time.sleep(fleet.random.uniform(0.05, 0.1))
        worker.suspend()
    frozen = held()
    until(gone, 12 * LEASE_S, "its runs are taken from it")
    worker.resume()
    until(lambda: fleet.logged(far, "the lease at epoch"), 10, "it knows that it has lost them")


def test_messages_doubled_and_out_of_order(trial: MakeTrial) -> None:
    one = trial()
    load = one.begin(alive=ALIVE)
    order = random.Random(3)
    for _ in range(size(5, 60)):
        _busy(one.fleet, 2)
        known = [run for (run,) in one.fleet.sql("SELECT id FROM runs_run")] + ["01900000-0000-7000-8000-000000000000"]
        messages = known * 2
        order.shuffle(messages)
        with one.fleet.broker() as broker:
            for run in messages:
                queue = order.choice([RUNS, tasks.queue_of(this_host())])
                tasks.drive.apply_async((run,), retry=False, connection=broker, queue=queue)
        _a_moment(one.fleet, 0.5)
    assert load.failed is None
    assert one.settle() == []


@pytest.mark.parametrize("how", ["silent", "gone"])
def test_the_bus_is_away_for_a_while(trial: MakeTrial, how: str) -> None:
    """Runs go on, and commands reach them by the poll."""
    one = trial()
    load = one.begin(alive=ALIVE)
    _busy(one.fleet)
    redis = one.fleet.redis
    redis.freeze() if how == "silent" else redis.kill()
    over_at = time.monotonic() + size(4, 60)
    stops = []
    while time.monotonic() < over_at:
        stops.append(_stop_one(one.fleet, load))
    redis.wake() if how == "silent" else redis.start()
    back_at = time.monotonic()
    run = load.begin()
    until(
        lambda: one.fleet.sql("SELECT 1 FROM runs_run WHERE id = %s AND started_at IS NOT NULL", run), 30, "it starts"
    )
    print(
        f"{how}: stops took up to {max(stops):.2f} s; the first new run began after {time.monotonic() - back_at:.2f} s"
    )
    assert time.monotonic() - back_at < 8.0
    assert max(stops) < 5.0, stops
    assert one.settle() == []


def _stop_one(fleet: Fleet, load: Load) -> float:
    """Interrupt a run that is being driven; the seconds until it has stopped."""
    found = fleet.sql("SELECT id FROM runs_run WHERE status = 'running' AND parent IS NULL ORDER BY id DESC LIMIT 1")
    if not found:
        time.sleep(0.1)
        return 0.0
    (run,) = found[0]
    began = time.monotonic()
    load.interrupt(run)
    until(lambda: fleet.sql("SELECT 1 FROM runs_run WHERE id = %s AND finished_at IS NOT NULL", run), 30, "it stops")
    return time.monotonic() - began
