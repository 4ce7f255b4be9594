"""Whose clock decides: the database's alone, so that machines whose clocks differ agree; and two sweepers at once."""

import ast
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from agents.ids import new_id
from control.runs import leases, sessions, sweeper
from control.runs.models import Run, Worker
from tests.control.records import make_run
from tests.control.runs.test_sweeper import _free_pid, _kinds

# What decides who holds a run, who lost it, and what is done about it.
DECIDE = [
    *("chores", "dbtime", "dispatch", "handover", "inbox", "leases", "line", "log", "reclaim", "receipts", "renewal"),
    *("roster", "slots", "spawning", "starts", "sweeper", "unheld", "waits", "ledger/book", "ledger/orphans"),
]
# Wall clocks of this machine, by the last two words of the call.
WALL = {"time.time", "datetime.now", "datetime.utcnow", "timezone.now", "datetime.today", "date.today"}


def _calls(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found.add(".".join(ast.unparse(node.func).split(".")[-2:]))
    return found


@pytest.mark.parametrize("name", DECIDE)
def test_no_decision_about_a_lease_reads_the_clock_of_its_machine(name: str) -> None:
    path = settings.BASE_DIR / "control" / "runs" / f"{name}.py"
    assert _calls(path) & WALL == set()


@pytest.mark.django_db(transaction=True)
# SQLite means one machine, whose clock is the only one.
@pytest.mark.postgres
@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("wrong_by", [timedelta(hours=-1), timedelta(hours=1)])
def test_a_machine_whose_clock_is_an_hour_wrong_takes_and_keeps_runs_as_any_other(
    monkeypatch: pytest.MonkeyPatch, wrong_by: timedelta
) -> None:
    sessions.forget_losses()
    run = make_run(held=False, agent="default")
    right = datetime.now(UTC)
    monkeypatch.setattr(timezone, "now", lambda: right + wrong_by)
    claimed = leases.claim(run.pk, "w-1")
    assert claimed is not None
    row = Run.objects.get(pk=run.pk)
    assert row.lease_until is not None
    assert abs((row.lease_until - right).total_seconds() - settings.LEASE_SECONDS) < 5
    assert leases.renew("w-1") == {run.pk: claimed.epoch}
    sweeper.sweep_elsewhere()
    assert Run.objects.get(pk=run.pk).epoch == claimed.epoch


@pytest.mark.django_db(transaction=True)
def test_two_sweepers_at_once_take_each_run_from_a_dead_worker_once(published: list[str], hinted: object) -> None:
    sessions.forget_losses()
    now = timezone.now()
    worker = Worker.objects.create(
        id=new_id(), host=leases.this_host(), boot=leases.this_boot(), pid=_free_pid(), pid_started=1.0,
        started_at=now, seen_at=now,
    )  # fmt: skip
    runs = [make_run() for _ in range(12)]
    Run.objects.filter(pk__in=[run.pk for run in runs]).update(worker=worker.pk, attempts=1)
    start = threading.Barrier(2)

    def sweep() -> None:
        start.wait()
        sweeper.sweep_here()
        connection.close()

    threads = [threading.Thread(target=sweep) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [Run.objects.get(pk=run.pk).epoch for run in runs] == [2] * 12
    assert [_kinds(run) for run in runs] == [["run.queued", "run.requeued"]] * 12
    assert sorted(published) == sorted(run.pk for run in runs)
