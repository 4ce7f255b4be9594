"""Chores: each is done by one desk at a time, a dead desk's are taken over, and one that fails is tried again."""

import threading
from collections.abc import Iterator

import pytest
from django.db import connection

from control.runs import chores
from control.runs.chores import Chore, Desk, _Lane
from control.runs.models import Chore as Row
from tests.control.runs.processes import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def no_others(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(chores, "_chores", {})
    yield


def test_a_chore_belongs_to_one_desk_until_its_hold_is_over() -> None:
    assert chores.claim("tidy", "desk-1")
    assert chores.claim("tidy", "desk-1")
    assert not chores.claim("tidy", "desk-2")
    assert chores.claim("tidy", "desk-1", hold_s=-1)
    assert chores.claim("tidy", "desk-2")


def test_of_desks_that_race_for_a_chore_one_gets_it() -> None:
    Row.objects.create(name="tidy")
    start, won = threading.Barrier(5), list[str]()

    def race(desk: str) -> None:
        start.wait()
        if chores.claim("tidy", desk):
            won.append(desk)
        connection.close()

    threads = [threading.Thread(target=race, args=(f"desk-{n}",)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1


def _running(lane: _Lane) -> threading.Thread:
    thread = threading.Thread(target=lane.run)
    thread.start()
    return thread


def test_a_stopped_desk_gives_its_chores_back_at_once() -> None:
    done: list[str] = []
    first = _Lane([Chore(name="tidy", every_s=0.01, work=lambda: done.append("first"))], "desk-1", "here")
    second = _Lane([Chore(name="tidy", every_s=0.01, work=lambda: done.append("second"))], "desk-2", "here")
    one = _running(first)
    until(lambda: len(done) > 2)
    two = _running(second)
    first.stop()
    one.join()
    until(lambda: "second" in done, 3, "the other desk takes over")
    second.stop()
    two.join()
    assert set(done[: done.index("second")]) == {"first"}


def test_a_chore_that_fails_is_tried_again_and_stops_no_other() -> None:
    tries: list[int] = []
    others: list[int] = []

    def fail() -> None:
        tries.append(1)
        raise RuntimeError("not today")

    lane = _Lane(
        [
            Chore(name="fails", every_s=0.01, work=fail),
            Chore(name="works", every_s=0.01, work=lambda: others.append(1)),
        ],
        "desk-1",
        "here",
    )
    thread = _running(lane)
    until(lambda: len(tries) > 2 and len(others) > 2)
    lane.stop()
    thread.join()


def test_a_long_chore_delays_no_urgent_one() -> None:
    swept: list[int] = []
    begun, end = threading.Event(), threading.Event()

    @chores.chore("long", every_s=60)
    def long() -> None:
        begun.set()
        end.wait(10)

    chores.chore("urgent", every_s=0.01, urgent=True)(lambda: swept.append(1))
    desk = Desk("desk-1", "here")
    thread = threading.Thread(target=desk.run)
    thread.start()
    assert begun.wait(5)
    count = len(swept)
    until(lambda: len(swept) > count + 5)
    end.set()
    desk.stop()
    thread.join()


def test_a_chore_that_stands_apart_holds_up_no_other_while_it_hangs() -> None:
    done: list[str] = []
    begun, end = threading.Event(), threading.Event()

    @chores.chore("far", every_s=60, apart=True)
    def far() -> None:
        begun.set()
        end.wait(10)

    chores.chore("near", every_s=0.01)(lambda: done.append("near"))
    desk = Desk("desk-1", "here")
    thread = threading.Thread(target=desk.run)
    thread.start()
    assert begun.wait(5)
    count = len(done)
    until(lambda: len(done) > count + 5)
    end.set()
    desk.stop()
    thread.join()


def test_each_host_has_its_own_claim_on_local_chores() -> None:
    done: list[str] = []
    lanes = [
        _Lane([Chore(name="sweep", every_s=0.01, local=True, work=lambda h=host: done.append(h))], f"desk-{host}", host)
        for host in ("a", "b")
    ]
    threads = [_running(lane) for lane in lanes]
    until(lambda: {"a", "b"} <= set(done))
    for lane, thread in zip(lanes, threads, strict=True):
        lane.stop()
        thread.join()
