"""Which run is taken next: by priority, fairly by agent, within the limits, by as many workers as there are."""

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from agents.spec import Status
from control.fleet.models import Agent
from control.runs import dispatch, leases, line
from control.runs.models import Run, Worker
from tests.control.records import make_run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("quiet")]

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _fresh(settings: Settings) -> Iterator[None]:
    settings.FLEET_MAX_RUNNING = 0
    dispatch.forget_served()
    line.forget()
    yield
    line.forget()


def _agent(name: str, **limits: int) -> None:
    Agent.objects.filter(name=name).delete()
    Agent.objects.create(name=name, prompt="x", limits=limits, created_at=BEGAN, created_by="ann")


def _queue(agent: str, number: int = 1, *, priority: int = 0, since: int = 0) -> list[str]:
    """Queued runs of an agent, `since` seconds after the beginning and a second apart."""
    made = [
        make_run(
            held=False, agent=agent, priority=priority, created_at=BEGAN + timedelta(seconds=since + n), path=f"{agent}"
        )
        for n in range(number)
    ]
    return [run.pk for run in made]


def _agents_taken(times: int, *, end: bool = False) -> list[str]:
    taken = []
    for _ in range(times):
        claimed = dispatch.claim_next("w-1")
        if claimed is None:
            break
        taken.append(claimed.run.agent)
        if end:
            Run.objects.filter(pk=claimed.run.pk).update(status=Status.COMPLETED.value, lease_until=None)
    return taken


def test_nothing_is_taken_where_nothing_waits() -> None:
    assert dispatch.claim_next("w-1") is None


def test_a_look_at_an_empty_line_counts_for_whoever_asked_before_it() -> None:
    before = time.monotonic()
    assert not dispatch.was_empty(before)
    assert dispatch.claim_next("w-1") is None
    assert dispatch.was_empty(before) and not dispatch.was_empty(time.monotonic())
    _agent("tight", max_running=1)
    _queue("tight", 2)
    between = time.monotonic()
    assert dispatch.claim_next("w-1") is not None and not dispatch.was_empty(between)


def test_the_higher_priority_goes_first_then_whoever_waited_longest() -> None:
    _agent("one")
    late, early = _queue("one", since=50), _queue("one", since=10)
    urgent = _queue("one", priority=5, since=90)
    order = [dispatch.claim_next("w-1") for _ in range(3)]
    assert [claimed.run.pk for claimed in order if claimed] == [*urgent, *early, *late]


def test_the_many_runs_of_one_agent_do_not_keep_out_anothers_one() -> None:
    _agent("many")
    _agent("few")
    _queue("many", 30)
    _queue("few", since=500)
    assert _agents_taken(4) == ["many", "few", "many", "many"]


def test_in_a_worker_of_one_slot_agents_take_turns() -> None:
    _agent("many")
    _agent("few")
    _queue("many", 30)
    _queue("few", 2, since=500)
    assert _agents_taken(5, end=True) == ["many", "few", "many", "few", "many"]


def test_an_agent_has_no_more_at_work_than_its_limit() -> None:
    _agent("tight", max_running=2)
    _agent("free")
    _queue("tight", 5)
    _queue("free", 2, since=500)
    assert sorted(_agents_taken(9)) == ["free", "free", "tight", "tight"]
    first = Run.objects.filter(agent="tight", status="running").first()
    Run.objects.filter(pk=first.pk).update(status=Status.COMPLETED.value, lease_until=None)  # type: ignore[union-attr]
    assert _agents_taken(9) == ["tight"]


def test_a_run_that_waits_for_a_person_or_is_parked_takes_no_place() -> None:
    _agent("tight", max_running=1)
    make_run(agent="tight", status=Status.WAITING)
    parked = make_run(agent="tight", status=Status.WAITING)
    Run.objects.filter(pk=parked.pk).update(lease_until=None)
    _queue("tight", 2)
    assert _agents_taken(9) == ["tight"]


def test_an_attached_sub_agent_shares_its_parents_place_and_a_detached_one_has_its_own() -> None:
    _agent("tight", max_running=2)
    parent = make_run(agent="tight")
    make_run(parent=parent, agent="tight")
    make_run(parent=parent, agent="tight", held=False)
    detached = make_run(parent=parent, agent="tight", held=False, detached=True)
    claimed = dispatch.claim_next("w-1")
    assert claimed is not None and claimed.run.pk == detached.pk
    assert dispatch.claim_next("w-1") is None


def test_the_fleet_has_no_more_at_work_than_its_limit(settings: Settings) -> None:
    settings.FLEET_MAX_RUNNING = 3
    _agent("one")
    _agent("two")
    _queue("one", 5)
    _queue("two", 5)
    assert sorted(_agents_taken(9)) == ["one", "one", "two"]


@pytest.mark.postgres
def test_a_run_whose_workspace_is_on_another_machine_is_left_to_it() -> None:
    _agent("one")
    there, here = _queue("one", 2)
    Run.objects.filter(pk=there).update(host="elsewhere")
    claimed = dispatch.claim_next("w-1")
    assert claimed is not None and claimed.run.pk == here
    assert dispatch.claim_next("w-1") is None


@pytest.mark.parametrize("fleet", [0, 5])
def test_workers_that_race_never_go_past_a_limit_and_take_nothing_twice(settings: Settings, fleet: int) -> None:
    settings.FLEET_MAX_RUNNING = fleet
    _agent("tight", max_running=5)
    _agent("free")
    _queue("tight", 12)
    _queue("free", 12)
    start = threading.Barrier(6)
    won: list[str] = []

    def race(worker: str) -> None:
        start.wait()
        while (claimed := dispatch.claim_next(worker)) is not None:
            won.append(claimed.run.pk)
        connection.close()

    threads = [threading.Thread(target=race, args=(f"w-{n}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == len(set(won)) == (5 if fleet else 17)
    assert Run.objects.filter(agent="tight", status="running").count() <= 5


def test_a_claim_out_of_five_hundred_is_quick(django_assert_max_num_queries: object) -> None:
    for number in range(5):
        _agent(f"agent-{number}")
        _queue(f"agent-{number}", 20)
    with django_assert_max_num_queries(3):  # type: ignore[operator]
        assert dispatch.claim_next("w-1") is not None


def test_the_age_of_the_line_and_what_is_held_back_in_it() -> None:
    assert line.queue_age() == line.QueueAge(runs=0, since=None, oldest_s=0.0, held_back=0)
    _agent("tight", max_running=1)
    _agent("free")
    _queue("tight", 3)
    free = _queue("free")[0]
    now = datetime.now(UTC)
    Run.objects.filter(pk=free).update(last_activity_at=now - timedelta(seconds=90))
    assert dispatch.claim_next("w-1").run.agent == "tight"  # type: ignore[union-attr]
    age = line.queue_age()
    assert (age.runs, age.held_back) == (3, 2)
    assert 89 < age.oldest_s < 100


def test_a_row_says_what_its_run_waits_for(settings: Settings) -> None:
    settings.DATABASE_URL = "given"
    _agent("tight", max_running=1)
    _agent("free")
    tight = _queue("tight", 2)
    free = _queue("free")[0]
    assert _told(free) == "waiting: no worker is there"
    now = datetime.now(UTC)
    Worker.objects.create(id="w-1", host="here", pid=1, started_at=now, seen_at=now, capacity=2)
    assert _told(free) == "waiting for a worker"
    Run.objects.filter(pk=free).update(host="there")
    assert _told(free) == "waiting for a worker on there, where its workspace is"
    Run.objects.filter(pk=free).update(host=None)
    assert leases.claim(tight[0], "w-1") is not None
    assert _told(tight[1]) == "waiting for a slot: agent limit"
    assert _told(tight[0]) is None
    Worker.objects.filter(pk="w-1").update(capacity=1)
    assert _told(free) == "waiting for a slot: workers full"
    settings.FLEET_MAX_RUNNING = 1
    assert _told(free) == "waiting for a slot: fleet limit"


def _told(run: str) -> str | None:
    line.forget()
    return line.waits_for(Run.objects.get(pk=run))
