"""Leases: one holder at a time, by conditional updates in database time."""

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django.fixtures import Settings

from agents import kinds
from agents.spec import Status
from control.runs import leases, log
from control.runs.leases import RunLease, WorkerLease
from control.runs.models import Run
from tests.control.records import batch, drafts, make_run, write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("quiet")]


def _row(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)


def test_a_claim_takes_a_queued_run_and_moves_its_epoch_on() -> None:
    run = make_run(held=False)
    claimed = leases.claim(run.pk, "w-1")
    assert claimed is not None
    row = _row(run)
    assert (row.status, row.epoch, row.attempts, row.worker, row.host) == ("running", 1, 1, "w-1", leases.this_host())
    assert row.lease_until is not None and claimed.epoch == 1


@pytest.mark.case("A4-03")
def test_a_message_that_comes_twice_finds_the_run_claimed() -> None:
    run = make_run(held=False)
    assert leases.claim(run.pk, "w-1") is not None
    assert leases.claim(run.pk, "w-1") is None
    assert leases.claim(run.pk, "w-2") is None
    assert _row(run).epoch == 1


def test_of_two_workers_that_race_for_a_run_one_gets_it() -> None:
    run = make_run(held=False)
    start = threading.Barrier(6)
    won: list[str] = []

    def race(worker: str) -> None:
        start.wait()
        if leases.claim(run.pk, worker) is not None:
            won.append(worker)
        connection.close()

    threads = [threading.Thread(target=race, args=(f"w-{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert _row(run).worker == won[0]


@pytest.mark.parametrize("status", [Status.WAITING, Status.COMPLETED, Status.INTERRUPTED])
def test_only_queued_runs_are_claimed(status: Status) -> None:
    assert leases.claim(make_run(held=False, status=status).pk, "w-1") is None


def test_a_run_whose_workspace_is_on_another_host_is_left_to_that_host() -> None:
    claimed = leases.claim(make_run(held=False, host="elsewhere").pk, "w-1")
    # With SQLite there is no other host: the machine's name has changed.
    assert (claimed is None) == (connection.vendor != "sqlite")


def test_an_attached_child_is_claimed_only_by_adoption() -> None:
    child = make_run(parent=make_run(), held=False)
    assert leases.claim(child.pk, "w-1") is None
    assert leases.claim(child.pk, "w-1", adopt=True) is not None


def test_a_detached_child_is_claimed_like_any_run() -> None:
    child = make_run(parent=make_run(), held=False, detached=True)
    assert leases.claim(child.pk, "w-1") is not None


def test_one_renewal_serves_all_runs_of_a_worker_and_says_which_it_holds() -> None:
    mine = [make_run(), make_run()]
    Run.objects.filter(pk__in=[run.pk for run in mine]).update(lease_until=timezone.now() + timedelta(seconds=1))
    other = make_run()
    Run.objects.filter(pk=other.pk).update(worker="w-2")
    assert leases.renew("w-1") == {run.pk: 1 for run in mine}
    assert all(_row(run).lease_until > timezone.now() + timedelta(seconds=5) for run in mine)  # type: ignore[operator]


@pytest.mark.case("A4-11")
def test_a_lease_that_lapsed_is_never_renewed() -> None:
    run = make_run()
    lapsed = timezone.now() - timedelta(seconds=1)
    Run.objects.filter(pk=run.pk).update(lease_until=lapsed)
    assert leases.renew("w-1") == {}
    assert _row(run).lease_until == lapsed


def test_a_requeued_run_is_free_and_its_former_holder_is_fenced() -> None:
    run = make_run()
    assert leases.requeue(run.pk, 1, "worker_lost")
    row = _row(run)
    assert (row.status, row.epoch, row.worker, row.lease_until) == ("queued", 2, None, None)
    assert log.append([batch(run, *drafts(kinds.TurnStarted(), turn=1))])[0].fenced
    assert not leases.requeue(run.pk, 1, "worker_lost")


def test_a_shutdown_gives_the_attempt_back() -> None:
    run = make_run(held=False)
    leases.claim(run.pk, "w-1")
    assert leases.requeue(run.pk, 1, "shutdown", count_attempt=False)
    assert _row(run).attempts == 0


def test_a_final_run_is_held_by_nobody_and_is_not_requeued() -> None:
    run = make_run()
    write(run, kinds.RunCompleted(final="done"))
    assert _row(run).lease_until is None
    assert not leases.requeue(run.pk, 1, "worker_lost")


def test_parking_lets_go_of_a_run_that_waits_for_a_person() -> None:
    run = make_run()
    assert not leases.park(run.pk, 1)
    write(run, kinds.RunWaiting(reason="question", text="which one?"))
    assert leases.park(run.pk, 1)
    row = _row(run)
    assert (row.status, row.lease_until) == ("waiting", None)


@pytest.mark.case("A4-11")
def test_a_worker_that_slept_past_its_lease_knows_it_by_its_own_clock(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.LEASE_SECONDS = 15
    now = 1000.0
    monkeypatch.setattr(leases, "clock_s", lambda: now)
    worker = WorkerLease()
    one, fenced = RunLease(worker), RunLease(worker)
    fenced.lost = True
    assert one.held() and not fenced.held()
    now = 1014.9
    assert one.held()
    now = 1015.1
    assert not one.held()
