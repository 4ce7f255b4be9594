"""What broke others in operation, on a real broker and a real database: doubled messages, queues behind one long run,
brokers that hang, publishes that fall between two chairs, connections that are cut."""

import asyncio
import contextlib
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import redis
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from control.accounts.models import Role, Token
from control.celery import app
from control.runs import starts
from control.runs.models import Run
from tests.control.runs.processes import House, answered, events, kinds, lines, reach, row, until
from tests.scripted_server import Response, ask_tools, say, stall, wait

MakeHouse = Callable[..., House]


def client(base_url: str) -> httpx.Client:
    _, secret = Token.issue(f"test {time.time_ns()}", Role.OPERATOR, timezone.now())
    return httpx.Client(base_url=base_url, headers={"Authorization": f"Bearer {secret}"}, timeout=20)


# --- the broker ------------------------------------------------------------------------------------------------------


@pytest.mark.case("A5-01")
@pytest.mark.postgres
@pytest.mark.redis
def test_a_long_run_is_acknowledged_before_it_is_driven_and_every_further_copy_ends_at_once(
    make_house: MakeHouse, tmp_path: Path
) -> None:
    side_effects = tmp_path / "effects"
    command = f"echo line >> {side_effects}; sleep 2"
    house = make_house(
        lambda request: say("done") if answered(request) else ask_tools(("run_command", {"command": command}))
    )
    house.worker()
    house.worker()
    run = house.begin()
    until(lambda: lines(side_effects), what="the tool has its effect")
    with redis.Redis.from_url(house.redis_url) as broker:
        # Nothing is outstanding, so there is nothing that a visibility timeout could hand out again.
        assert broker.hlen(f"{house.prefix}:unacked") == 0
        assert not app.conf.task_acks_late
        for _ in range(6):
            house.publish(run)
        until(lambda: broker.llen(f"{house.prefix}:runs") == 0, what="the copies are taken")
    assert row(run).epoch == 1 and row(run).status == "running"
    assert reach(run, "completed", "failed").status == "completed"
    assert (kinds(run).count("run.started"), row(run).attempts, lines(side_effects)) == (1, 1, ["line"])


@pytest.mark.case("A5-03")
@pytest.mark.postgres
@pytest.mark.redis
def test_short_runs_do_not_wait_behind_a_long_one_while_another_worker_is_free(make_house: MakeHouse) -> None:
    def script(request: Any) -> Response:
        task = request["messages"][1]["content"]
        return say("half", after=[stall()]) if task == "long" else say("done", before=[wait(0.1)])

    house = make_house(script)
    house.worker("--capacity", "1")
    house.worker("--capacity", "1")
    house.desk()
    long = house.begin("long")
    until(lambda: row(long).turns == 1, what="the long run is at work")
    short = [house.begin(f"short {n}") for n in range(3)]
    began = time.monotonic()
    for run in short:
        reach(run, "completed", within=10)
    assert time.monotonic() - began < 8
    assert row(long).status == "running"
    # The desk's chores have a queue of their own, and a stop needs none at all.
    base = house.web()
    assert client(base).post(f"/api/runs/{long}/interrupt", json={"reason": "enough"}).status_code == 202
    assert reach(long, "interrupted", within=5).exit_reason == "operator"


@contextlib.contextmanager
def broker_that(behaves: str) -> Iterator[int]:
    """The port of a Redis that refuses, accepts and says nothing, or drops whoever wants to connect."""
    with socket.socket() as server, contextlib.ExitStack() as held:
        server.bind(("127.0.0.1", 0))
        port = int(server.getsockname()[1])
        if behaves == "accepts and is silent":
            server.listen(64)
        elif behaves == "drops":
            # A full backlog drops the first packet of everybody else, like a firewall would.
            server.listen(0)
            for _ in range(4):
                filler = held.enter_context(contextlib.closing(socket.socket()))
                filler.setblocking(False)
                filler.connect_ex(("127.0.0.1", port))
        yield port


@pytest.mark.case("A5-05")
@pytest.mark.postgres
@pytest.mark.parametrize("behaves", ["refuses", "accepts and is silent", "drops"])
def test_starts_and_stops_are_taken_at_once_whatever_the_broker_does(make_house: MakeHouse, behaves: str) -> None:
    with broker_that(behaves) as port:
        house = make_house(lambda request: say("done"), REDIS_URL=f"redis://127.0.0.1:{port}/0")
        base = house.web()
        http = client(base)
        looks: list[float] = []
        over = threading.Event()

        def look() -> None:
            while not over.is_set():
                began = time.monotonic()
                if httpx.get(f"{base}/healthz", timeout=10).status_code == 200:
                    looks.append(time.monotonic() - began)

        looking = threading.Thread(target=look)
        looking.start()
        try:
            for number in range(3):
                asked = {"agent": "default", "task": f"t{number}", "model": "m", "base_url": house.model_url}
                began = time.monotonic()
                started = http.post("/api/runs", json=asked)
                assert (started.status_code, started.json()["status"]) == (201, "queued")
                stopped = http.post(f"/api/runs/{started.json()['id']}/interrupt", json={"reason": "no"})
                assert stopped.status_code in (200, 202)
                assert time.monotonic() - began < 2.0
                assert row(started.json()["id"]).status == "interrupted"
        finally:
            over.set()
            looking.join()
        assert looks and max(looks) < 1.0


@pytest.mark.case("A5-06")
@pytest.mark.postgres
@pytest.mark.redis
def test_a_message_before_the_row_and_a_row_without_a_message_both_come_to_a_good_end(
    make_house: MakeHouse, published: list[str]
) -> None:
    house = make_house(lambda request: say("done"))
    house.worker()
    request = starts.StartRequest(agent="default", task="t", model="m", base_url=house.model_url)
    with transaction.atomic():
        run = starts.start(request, by="ann").pk
        assert published == [], "nothing is published before the commit"
        house.publish(run)  # as if it were: the worker is told of a row that it cannot see
        with redis.Redis.from_url(house.redis_url) as broker:
            until(lambda: broker.llen(f"{house.prefix}:runs") == 0, what="the worker has taken the message")
        time.sleep(0.3)
    # Committed, and the web process dies before it publishes: the fixture has swallowed that.
    assert published == [run]
    assert row(run).status == "queued"
    house.desk()
    assert reach(run, "completed", "failed", within=30).status == "completed"
    assert kinds(run).count("run.started") == 1


# --- the database ----------------------------------------------------------------------------------------------------


async def _set(event: threading.Event) -> None:
    while not event.is_set():
        await asyncio.sleep(0.01)


def _cut_all_but_mine() -> int:
    """End every session of this database but our own, as a proxy or a restart does."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return int(cursor.fetchone()[0])


@pytest.mark.case("A5-14")
@pytest.mark.postgres
def test_an_answer_is_kept_though_every_connection_was_cut_while_the_model_spoke(make_house: MakeHouse) -> None:
    goes_on = threading.Event()
    asked: list[Any] = []

    async def script(request: Any) -> Response:
        asked.append(request)
        await _set(goes_on)
        return say("the whole answer")

    # A lease of ordinary length: it is not what is looked at here.
    house = make_house(script, LEASE_SECONDS="15")
    house.worker()
    run = house.begin()
    until(lambda: asked, what="the model is asked")
    until(lambda: "call.started" in kinds(run), what="the call is in the log")
    assert _cut_all_but_mine() >= 2
    goes_on.set()
    ended = reach(run, "completed", "failed", "lost")
    assert (ended.status, ended.final, ended.epoch, len(asked)) == ("completed", "the whole answer", 1, 1)
    assert [event["seq"] for event in events(run)] == list(range(1, ended.last_seq + 1))


@pytest.mark.case("A5-14")
@pytest.mark.postgres
def test_the_end_of_a_run_is_kept_while_the_database_takes_nobody_in(make_house: MakeHouse) -> None:
    goes_on = threading.Event()
    asked: list[Any] = []

    async def script(request: Any) -> Response:
        asked.append(request)
        await _set(goes_on)
        return say("done")

    # A lease of ordinary length: it is not what is looked at here.
    house = make_house(script, LEASE_SECONDS="15")
    house.worker()
    run = house.begin()
    until(lambda: asked and "call.started" in kinds(run), what="the model is asked")
    name = str(connection.settings_dict["NAME"])
    server = {**connection.get_connection_params(), "dbname": "postgres"}
    server = {key: value for key, value in server.items() if key in ("host", "port", "user", "password", "dbname")}
    with psycopg.connect(**server, autocommit=True) as outside:
        outside.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        try:
            _cut_all_but_mine()
            goes_on.set()
            time.sleep(0.8)
            assert row(run).status == "running"
        finally:
            outside.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    ended = reach(run, "completed", "failed", "lost")
    assert (ended.status, ended.final, len(asked)) == ("completed", "done", 1)


@pytest.mark.case("A5-13")
def test_on_one_machine_workers_pages_and_stops_share_sqlite_and_nothing_is_locked_out(make_house: MakeHouse) -> None:
    if connection.vendor != "sqlite":
        assert settings.DATABASE_URL, "this case is about SQLite; the pass without services plays it"
        return
    seconds = 6.0
    over = threading.Event()

    def script(request: Any) -> Response:
        if over.is_set():
            return say("done")
        return ask_tools(*[("list_files", {})] * 4)

    house = make_house(script, LEASE_SECONDS="15")
    for _ in range(3):
        house.worker()
    http = client(house.web())
    endless = {"policy": "off", "limits": {"max_turns": 90_000}}
    runs = [house.begin(f"go on {n}", **endless) for n in range(9)]
    faults: list[str] = []
    asks = [threading.Thread(target=_poll, args=(http, runs[n], over, faults)) for n in range(5)]
    over_at = time.monotonic() + seconds
    for ask in asks:
        ask.start()
    stopped = []
    while time.monotonic() < over_at:
        stopped.append(runs[len(stopped) % 9])
        assert http.post(f"/api/runs/{stopped[-1]}/interrupt", json={"reason": "x"}).status_code in (200, 202)
        time.sleep(1.0)
    over.set()
    for ask in asks:
        ask.join()
    for run in runs:
        ended = reach(run, "completed", "interrupted", "tripped", "failed", "lost", "exhausted", within=30)
        assert ended.status == ("interrupted" if run in stopped else "completed"), ended.exit_reason
        assert [event["seq"] for event in events(run)] == list(range(1, ended.last_seq + 1))
    assert sum(Run.objects.values_list("last_seq", flat=True)) > 50 * seconds
    assert faults == []
    assert not re.search("database is locked", house.output())


def _poll(http: httpx.Client, run: str, over: threading.Event, faults: list[str]) -> None:
    while not over.is_set():
        answer = http.get(f"/api/runs/{run}/events", params={"after": 0, "limit": 50})
        if answer.status_code != 200:
            faults.append(f"{answer.status_code}: {answer.text[:200]}")
        time.sleep(0.1)
