"""The sweeper: what a dead worker left is ended, requeued or interrupted; what nobody took up is told again."""

import os
from datetime import timedelta

import orjson
import psutil
import psycopg
import pytest
from django.db import connection
from django.utils import timezone
from pytest_django.fixtures import Settings

from agents import kinds
from agents.commands import CommandKind, Scope
from agents.events import stamp
from agents.ids import new_id
from agents.spec import Status
from control.fleet.models import Agent
from control.runs import inbox, leases, log, reclaim, roster, sessions, sweeper
from control.runs.models import Run, Worker
from tests.control.records import make_run, write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("hinted")]


@pytest.fixture(autouse=True)
def _no_outage() -> None:
    """Earlier tests may have closed this thread's connection, which looks like an outage just now."""
    sessions.forget_losses()


def _worker(**columns: object) -> Worker:
    """The row of a worker of this machine whose process is gone."""
    now = timezone.now()
    known = {
        "id": new_id(),
        "host": leases.this_host(),
        "boot": leases.this_boot(),
        "pid": _free_pid(),
        "pid_started": 1.0,
        "started_at": now,
        "seen_at": now,
    }
    return Worker.objects.create(**{**known, **columns})


def _free_pid() -> int:
    return next(pid for pid in range(3_000_000, 4_000_000) if not psutil.pid_exists(pid))


def _held_by(worker: Worker, **columns: object) -> Run:
    run = make_run(**columns)  # type: ignore[arg-type]
    Run.objects.filter(pk=run.pk).update(worker=worker.pk, attempts=columns.get("attempts", 1))
    return run


def _row(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)


def _kinds(run: Run) -> list[str]:
    return [orjson.loads(body)["kind"] for body in log.read_after(run.pk, 0, 100)]


@pytest.mark.case("A4-11")
def test_runs_of_a_dead_worker_go_back_into_the_queue_before_their_lease_is_over(published: list[str]) -> None:
    worker = _worker()
    run = _held_by(worker)
    sweeper.sweep_here()
    assert (_row(run).status, _row(run).epoch) == ("queued", 2)
    assert _kinds(run) == ["run.queued", "run.requeued"]
    assert published == [run.pk]
    assert Worker.objects.get(pk=worker.pk).gone_at is not None


@pytest.mark.case("A4-11")
def test_the_third_lost_attempt_is_the_last(published: list[str]) -> None:
    run = _held_by(_worker(), attempts=3)
    sweeper.sweep_here()
    assert (_row(run).status, _row(run).exit_reason) == ("lost", "attempts")
    assert _kinds(run)[-1] == "run.lost"
    assert published == []


@pytest.mark.case("A4-04")
def test_an_interrupt_that_the_worker_did_not_live_to_obey_is_carried_out_by_the_sweeper(published: list[str]) -> None:
    run = _held_by(_worker())
    issued = inbox.issue(run_id=run.pk, kind=CommandKind.INTERRUPT, by="ann", scope=Scope.SUBTREE, reason="wrong repo")
    assert _row(run).status == "running"
    sweeper.sweep_here()
    row = _row(run)
    assert (row.status, row.exit_reason) == ("interrupted", "operator")
    assert row.stopped["verified"] is True
    assert issued.command is not None
    issued.command.refresh_from_db()
    assert issued.command.state == "done"
    assert published == []


def test_a_living_worker_keeps_its_runs(published: list[str]) -> None:
    worker = _worker(pid=os.getpid(), pid_started=roster.process_started(os.getpid()))
    run = _held_by(worker)
    sweeper.sweep()
    assert _row(run).epoch == 1


def test_a_later_process_of_the_same_number_is_not_taken_for_the_worker() -> None:
    worker = _worker(pid=os.getpid(), pid_started=1.0)
    assert not roster.is_alive(worker)


def test_runs_of_another_machine_are_fenced_only_after_lease_and_grace(published: list[str]) -> None:
    worker = _worker(host="elsewhere", boot="other")
    run = _held_by(worker)
    sweeper.sweep()
    assert _row(run).epoch == 1
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    sweeper.sweep()
    assert _row(run).epoch == 1
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=60))
    sweeper.sweep()
    assert (_row(run).epoch, published) == (2, [run.pk])


@pytest.mark.postgres
def test_after_an_outage_of_the_database_other_machines_get_time_to_hand_their_runs_back(published: list[str]) -> None:
    run = _held_by(_worker(host="elsewhere", boot="other"))
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=60))
    connection.close()
    sweeper.sweep_elsewhere()
    assert (_row(run).epoch, published) == (1, [])
    sessions.forget_losses()
    sweeper.sweep_elsewhere()
    assert (_row(run).epoch, published) == (2, [run.pk])


@pytest.mark.postgres
def test_what_a_worker_that_is_past_its_lease_has_locked_is_set_free(published: list[str]) -> None:
    worker = _worker(host="elsewhere", boot="other")
    run = _held_by(worker)
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=60))
    where = connection.settings_dict
    name = f"pilothouse worker {worker.pk}"
    with psycopg.connect(
        host=where["HOST"], port=where["PORT"], dbname=where["NAME"], user=where["USER"], password=where["PASSWORD"],
        application_name=name,
    ) as frozen:  # fmt: skip
        frozen.execute("UPDATE runs_run SET activity = 'frozen here' WHERE id = %s", [run.pk])
        sweeper.sweep_elsewhere()
        assert (_row(run).epoch, _row(run).activity != "frozen here") == (2, True)
        with pytest.raises(psycopg.OperationalError):
            frozen.commit()


def test_an_interrupt_on_an_unreachable_machine_is_told_as_unverified(published: list[str]) -> None:
    run = _held_by(_worker(host="elsewhere", boot="other"))
    inbox.issue(run_id=run.pk, kind=CommandKind.INTERRUPT, by="ann")
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=60))
    sweeper.sweep_elsewhere()
    stopped = _row(run).stopped
    assert stopped["verified"] is False
    assert "could not be reached" in stopped["why"]


def test_an_attached_child_is_left_for_its_parent_to_adopt(published: list[str]) -> None:
    worker = _worker()
    parent = _held_by(worker)
    child = _held_by(worker, parent=parent)
    sweeper.sweep_here()
    assert (_row(parent).status, _row(child).status) == ("queued", "queued")
    assert published == [parent.pk]
    assert leases.claim(child.pk, "w-2") is None
    assert leases.claim(child.pk, "w-2", adopt=True) is not None


def test_an_attached_child_ends_when_its_parent_is_lost(published: list[str]) -> None:
    worker = _worker()
    parent = _held_by(worker, attempts=3)
    child = _held_by(worker, parent=parent)
    sweeper.sweep_here()
    reclaim.end_orphans()
    assert _row(parent).status == "lost"
    assert (_row(child).status, _row(child).exit_reason) == ("interrupted", "parent")


def test_a_queued_run_that_nobody_claimed_is_published_again(published: list[str]) -> None:
    fresh, old = make_run(held=False), make_run(held=False)
    for run, ago in ((fresh, 0.5), (old, 3)):
        moment = timezone.now() - timedelta(seconds=ago)
        Run.objects.filter(pk=run.pk).update(created_at=moment, published_at=moment)
    child = make_run(parent=make_run(), held=False)
    Run.objects.filter(pk=child.pk).update(created_at=timezone.now() - timedelta(seconds=9))
    reclaim.publish_unclaimed()
    assert published == []  # no worker has room
    _worker(capacity=5, runs=4)
    reclaim.publish_unclaimed()
    assert published == [old.pk]


def test_what_nobody_may_take_now_is_not_published_again(published: list[str], settings: Settings) -> None:
    settings.FLEET_MAX_RUNNING = 0
    Agent.objects.create(name="tight", prompt="x", limits={"max_running": 1}, created_at=timezone.now(), created_by="a")
    long_ago = timezone.now() - timedelta(minutes=5)
    first, limited, free = make_run(agent="tight"), make_run(agent="tight", held=False), make_run(held=False)
    Run.objects.update(created_at=long_ago, published_at=long_ago)
    _worker(capacity=5)
    reclaim.publish_unclaimed()
    assert published == [free.pk]
    Run.objects.filter(pk=first.pk).update(status=Status.COMPLETED.value, lease_until=None)
    settings.FLEET_MAX_RUNNING = 1
    make_run()
    reclaim.publish_unclaimed()
    assert published == [free.pk]
    settings.FLEET_MAX_RUNNING = 0
    reclaim.publish_unclaimed()
    assert published == [free.pk, limited.pk]


def test_a_parked_run_whose_answer_slipped_in_between_is_woken(published: list[str]) -> None:
    run = make_run()
    write(run, kinds.CallStarted(operation="execute_tool", name="clarify"), turn=1, call=(call := new_id()))
    write(run, kinds.RunWaiting(reason="question", call=call, text="which?"), turn=1, call=call)
    inbox.issue(run_id=run.pk, kind=CommandKind.ANSWER, by="ann", args={"call": call, "text": "the first"})
    Run.objects.filter(pk=run.pk).update(lease_until=None)
    reclaim.wake_parked()
    assert _row(run).status == Status.QUEUED.value
    assert published == [run.pk]


@pytest.mark.parametrize(("ahead_s", "woken"), [(-1, True), (600, False), (None, False)])
def test_a_parked_run_that_waits_for_quota_goes_on_at_the_named_time(
    published: list[str], ahead_s: int | None, woken: bool
) -> None:
    run = make_run()
    until = None if ahead_s is None else stamp(timezone.now() + timedelta(seconds=ahead_s))
    write(run, kinds.RunWaiting(reason="quota", until=until, text="daily limit reached"), turn=1)
    Run.objects.filter(pk=run.pk).update(lease_until=None)
    reclaim.wake_rested()
    assert (_row(run).status == Status.QUEUED.value) is woken
    assert published == ([run.pk] if woken else [])


def test_a_run_whose_only_machine_is_gone_ends_with_a_reason(published: list[str]) -> None:
    run = make_run(held=False)
    Run.objects.filter(pk=run.pk).update(host="elsewhere", last_activity_at=timezone.now() - timedelta(hours=1))
    reclaim.end_unreachable()
    assert (_row(run).status, _row(run).exit_reason) == ("failed", "workspace_unreachable")
