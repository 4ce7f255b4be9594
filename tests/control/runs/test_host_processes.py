"""The host in real processes: killed, frozen, doubled, drained; over real HTTP to a scripted model."""

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from agents.commands import CommandKind, Scope
from control.runs import inbox
from control.runs.models import Run
from tests.control.runs.processes import (
    House,
    answered,
    events,
    holder_pid,
    kinds,
    lines,
    marked,
    reach,
    row,
    until,
)
from tests.scripted_server import Response, ask_tools, say, stall, wait

pytestmark = [pytest.mark.chaos]
MakeHouse = Callable[..., House]


def _interrupt(run: str) -> inbox.Issued:
    return inbox.issue(run_id=run, kind=CommandKind.INTERRUPT, by="ann", scope=Scope.SUBTREE, reason="enough")


def test_a_run_is_taken_driven_and_given_back(make_house: MakeHouse) -> None:
    house = make_house(
        lambda request: say("done") if answered(request) else ask_tools(("run_command", {"command": "echo hi"}))
    )
    house.worker()
    run = house.begin()
    ended = reach(run, "completed", "failed")
    assert (ended.status, ended.final, ended.lease_until, ended.attempts) == ("completed", "done", None, 1)
    assert kinds(run)[:2] == ["run.queued", "run.started"]


@pytest.mark.case("A4-03")
def test_a_run_interrupted_before_any_worker_started_never_reaches_the_model(make_house: MakeHouse) -> None:
    asked: list[Any] = []

    def script(request: Any) -> Response:
        asked.append(request)
        return say("done")

    house = make_house(script)
    stopped, other = house.begin("one"), house.begin("two")
    assert _interrupt(stopped).changed
    assert row(stopped).status == "interrupted"
    house.worker()
    reach(other, "completed")
    house.publish(stopped)
    last = house.begin("three")
    reach(last, "completed")
    assert "one" not in [request["messages"][1]["content"] for request in asked]
    assert kinds(stopped) == ["run.queued", "command.received", "run.interrupted"]


@pytest.mark.case("A4-03")
def test_a_message_that_waits_behind_a_full_worker_finds_its_run_interrupted(make_house: MakeHouse) -> None:
    asked: list[str] = []

    def script(request: Any) -> Response:
        asked.append(request["messages"][1]["content"])
        return say("half", after=[stall()]) if asked[-1] == "long" else say("done")

    house = make_house(script)
    full = house.worker("--capacity", "1")
    first = house.begin("long")
    until(lambda: asked == ["long"], what="the first run asks its model")
    second = house.begin("short")
    assert _interrupt(second).changed
    assert row(second).status == "interrupted"
    full.kill()
    house.worker()
    house.desk()
    reach(first, "running")
    until(lambda: len(asked) == 2, what="the first run goes on")
    assert "short" not in asked


def test_a_message_that_comes_twice_is_driven_once(make_house: MakeHouse) -> None:
    house = make_house(lambda request: say("done", before=[wait(0.3)]))
    house.worker()
    house.worker()
    run = house.begin()
    for _ in range(5):
        house.publish(run)
    reach(run, "completed")
    last = house.begin("another")
    reach(last, "completed")
    assert kinds(run).count("run.started") == 1
    assert row(run).epoch == 1


@pytest.mark.case("A4-04")
@pytest.mark.case("A4-11")
def test_a_killed_worker_leaves_no_tool_and_its_run_goes_on_elsewhere(make_house: MakeHouse, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    command = f"echo $$ >> {pids}; (setsid sleep 300 &) ; sleep 300"
    house = make_house(
        lambda request: say("done") if answered(request) else ask_tools(("run_command", {"command": command}))
    )
    house.worker()
    house.desk()
    run = house.begin()
    until(lambda: lines(pids), what="the tool runs")
    worker = row(run).worker
    until(lambda: len(marked("PILOTHOUSE_RUN", run)) >= 3, what="the tool's processes are there")
    os.kill(holder_pid(run), signal.SIGKILL)
    killed_at = time.monotonic()
    until(lambda: not marked("PILOTHOUSE_WORKER", str(worker)), 5, "the guardian has ended the tools")
    second = house.worker()
    ended = reach(run, "completed", "failed", "lost")
    assert ended.status == "completed"
    assert time.monotonic() - killed_at < 15
    assert ended.epoch == 3 and ended.attempts == 2
    completed = [e["data"] for e in events(run) if e["kind"] == "call.completed" and e["data"]["name"] == "run_command"]
    assert [data["status"] for data in completed] == ["effect_unknown"]
    assert len(lines(pids)) == 1
    assert second.poll() is None


@pytest.mark.case("A4-11")
def test_a_frozen_worker_is_ended_before_its_run_goes_on(make_house: MakeHouse, tmp_path: Path) -> None:
    ticks = tmp_path / "ticks"
    command = f"while true; do echo tick >> {ticks}; sleep 0.05; done"
    house = make_house(
        lambda request: say("done") if answered(request) else ask_tools(("run_command", {"command": command}))
    )
    frozen = house.worker()
    house.desk()
    run = house.begin()
    until(lambda: lines(ticks), what="the tool ticks")
    worker = str(row(run).worker)
    frozen.send_signal(signal.SIGSTOP)
    house.worker()
    until(lambda: row(run).epoch > 1, 20, "the run is reclaimed")
    assert marked("PILOTHOUSE_WORKER", worker) == []
    assert frozen.wait(5) == -signal.SIGKILL
    count = len(lines(ticks))
    assert reach(run, "completed", "lost").status == "completed"
    assert len(lines(ticks)) == count


@pytest.mark.case("A4-11")
def test_a_worker_that_wakes_after_its_lease_stops_and_its_words_are_not_taken(make_house: MakeHouse) -> None:
    asked = threading.Event()

    def script(request: Any) -> Response:
        if asked.is_set():
            return say("second")
        asked.set()
        return say("first", before=[wait(4.0)])

    house = make_house(script)
    frozen = house.worker()
    run = house.begin()
    until(asked.is_set, what="the model is asked")
    frozen.send_signal(signal.SIGSTOP)
    # No desk here: nobody ends the sleeper, as on another machine. It is fenced by the lease alone.
    until(lambda: Run.objects.filter(pk=run, lease_until__lt=_database_now()).exists(), 10, "the lease lapses")
    frozen.send_signal(signal.SIGCONT)
    ended = reach(run, "completed")
    assert ended.final == "second"
    assert ended.epoch >= 3
    assert [e["data"]["why"] for e in events(run) if e["kind"] == "run.requeued"] == ["lease_lapsed"]
    assert frozen.poll() is None


def _database_now() -> Any:
    from control.runs.clock import database_now

    return database_now()


@pytest.mark.case("A4-04")
def test_an_interrupt_of_a_run_whose_worker_was_just_killed_is_told_within_the_lease(
    make_house: MakeHouse, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    command = f"echo $$ > {started}; sleep 300"
    house = make_house(lambda request: ask_tools(("run_command", {"command": command})))
    house.worker()
    house.desk()
    run = house.begin()
    until(lambda: lines(started), what="the tool runs")
    os.kill(holder_pid(run), signal.SIGKILL)
    _interrupt(run)
    ended = reach(run, "interrupted", within=8)
    assert ended.stopped["verified"] is True
    assert marked("PILOTHOUSE_RUN", run) == []


def test_a_shutdown_hands_runs_back_within_five_seconds_and_counts_no_attempt(
    make_house: MakeHouse, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    command = f"trap '' TERM; echo $$ > {started}; sleep 300"
    house = make_house(
        lambda request: say("done") if answered(request) else ask_tools(("run_command", {"command": command}))
    )
    first = house.worker()
    run = house.begin()
    until(lambda: lines(started), what="the tool runs")
    asked_at = time.monotonic()
    first.send_signal(signal.SIGTERM)
    assert first.wait(10) == 0
    assert time.monotonic() - asked_at < 5.5
    handed = row(run)
    assert (handed.status, handed.attempts, handed.lease_until) == ("queued", 0, None)
    assert kinds(run)[-1] == "run.requeued"
    assert marked("PILOTHOUSE_RUN", run) == []
    house.worker()
    house.desk()
    assert reach(run, "completed").attempts == 1


def test_a_second_signal_ends_the_worker_at_once(make_house: MakeHouse, tmp_path: Path) -> None:
    started = tmp_path / "started"
    command = f"trap '' TERM; echo $$ > {started}; sleep 300"
    house = make_house(lambda request: ask_tools(("run_command", {"command": command})))
    worker = house.worker()
    run = house.begin()
    until(lambda: lines(started), what="the tool runs")
    worker.send_signal(signal.SIGINT)
    time.sleep(0.1)
    worker.send_signal(signal.SIGINT)
    assert worker.wait(1) == 1
    until(lambda: not marked("PILOTHOUSE_RUN", run), 5, "the guardian has ended the tools")


@pytest.mark.case("A4-11")
def test_a_run_that_kills_its_workers_is_lost_after_three_attempts(make_house: MakeHouse) -> None:
    house = make_house(lambda request: say("half", after=[stall()]))
    house.desk()
    run = house.begin()
    for attempt in (1, 2, 3):
        house.worker()
        until(lambda n=attempt: row(run).attempts == n and row(run).status == "running", 20, f"attempt {attempt}")
        os.kill(holder_pid(run), signal.SIGKILL)
        until(lambda: row(run).lease_until is None, 20, "it is reclaimed")
    assert (row(run).status, row(run).exit_reason) == ("lost", "attempts")


def test_an_attached_child_is_adopted_by_the_next_holder_of_its_parent(make_house: MakeHouse) -> None:
    from agents.spec import Status

    child_asked: list[float] = []

    def script(request: Any) -> Response:
        task = request["messages"][1]["content"]
        if task == "part":
            child_asked.append(time.monotonic())
            return say("the part is done") if len(child_asked) > 1 else say("half", after=[stall()])
        results = answered(request)
        return say(f"got: {results[0]}") if results else ask_tools(("delegate", {"task": "part"}))

    house = make_house(script)
    house.worker()
    house.desk()
    run = house.begin("whole")
    until(lambda: child_asked, what="the child asks its model")
    child = Run.objects.get(parent=run)
    os.kill(holder_pid(run), signal.SIGKILL)
    house.worker()
    ended = reach(run, "completed", "failed", "lost")
    assert ended.final == "got: the part is done"
    child.refresh_from_db()
    assert child.status == Status.COMPLETED.value
    assert Run.objects.filter(parent=run).count() == 1


@pytest.mark.case("A2-16")
@pytest.mark.parametrize("moment", ["before the call", "after the effect", "after the result"])
def test_a_tool_with_an_effect_never_runs_twice(make_house: MakeHouse, tmp_path: Path, moment: str) -> None:
    journal = tmp_path / "journal"
    asked: list[int] = []
    slow = "sleep 300" if moment == "after the effect" else "true"

    def script(request: Any) -> Response:
        results = answered(request)
        asked.append(len(results))
        first = asked.count(len(results)) == 1
        if not results:
            call = ("run_command", {"command": f"echo line >> {journal}; {slow}"})
            return say("hm", after=[stall()]) if moment == "before the call" and first else ask_tools(call)
        return say("hm", after=[stall()]) if moment == "after the result" and first else say("done")

    house = make_house(script)
    house.worker()
    house.desk()
    run = house.begin()
    match moment:
        case "before the call":
            until(lambda: asked == [0], what="the model is asked")
        case "after the effect":
            until(lambda: lines(journal), what="the effect is there")
        case _:
            until(lambda: asked == [0, 1] and "turn.completed" in kinds(run), what="the result is on disk")
    os.kill(holder_pid(run), signal.SIGKILL)
    house.worker()
    assert reach(run, "completed", "failed", "lost").status == "completed"
    assert len(lines(journal)) == 1
    statuses = [
        e["data"]["status"]
        for e in events(run)
        if e["kind"] == "call.completed" and e["data"]["operation"] == "execute_tool"
    ]
    assert statuses == (["effect_unknown"] if moment == "after the effect" else ["ok"])


@pytest.mark.case("A2-16")
def test_of_a_batch_the_finished_calls_stay_and_the_untouched_ones_run(make_house: MakeHouse, tmp_path: Path) -> None:
    journal = tmp_path / "journal"

    def call(number: int) -> tuple[str, dict[str, str]]:
        rest = "; sleep 300" if number == 3 else ""
        return ("run_command", {"command": f"echo {number} >> {journal}{rest}"})

    house = make_house(lambda request: say("done") if answered(request) else ask_tools(*map(call, (1, 2, 3, 4))))
    house.worker()
    house.desk()
    run = house.begin()
    until(lambda: list(lines(journal)) == ["1", "2", "3"], what="the third call is under way")
    os.kill(holder_pid(run), signal.SIGKILL)
    house.worker()
    assert reach(run, "completed", "failed", "lost").status == "completed"
    assert list(lines(journal)) == ["1", "2", "3", "4"]


def test_a_run_that_waits_for_a_person_is_held_by_nobody_until_the_answer(make_house: MakeHouse) -> None:
    question = ("clarify", {"question": "Which branch?"})
    house = make_house(
        lambda request: say(f"on {answered(request)[0]}") if answered(request) else ask_tools(question),
        PARK_AFTER_SECONDS="0.3",
    )
    first = house.worker()
    run = house.begin()
    until(lambda: row(run).status == "waiting" and row(run).lease_until is None, what="the run is parked")
    assert row(run).attempts == 0
    first.send_signal(signal.SIGTERM)
    assert first.wait(10) == 0
    assert row(run).status == "waiting"
    call = row(run).waiting_call
    inbox.issue(run_id=run, kind=CommandKind.ANSWER, by="ann", args={"call": call, "text": "main"})
    assert row(run).status == "queued"
    house.worker()
    house.publish(run)
    ended = reach(run, "completed", "failed")
    assert ended.final is not None and "main" in ended.final
    assert ended.attempts == 1


@pytest.mark.postgres
def test_a_database_that_drops_every_connection_again_and_again_loses_no_event(make_house: MakeHouse) -> None:
    turns = 15

    def script(request: Any) -> Response:
        return say("done") if len(answered(request)) == turns else ask_tools(("list_files", {}))

    house = make_house(lambda request: script(request))
    house.worker()
    house.desk()
    # No guard: a model that looks at the same list fifteen times would be stopped for it.
    runs = [house.begin(f"task {number}", policy="off") for number in range(4)]

    def written() -> int:
        return sum(row(run).last_seq for run in runs)

    def over() -> bool:
        return all(row(run).status not in ("queued", "running") for run in runs)

    while not over():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        # On a busy machine no connection would ever live long enough if they were cut by the clock.
        before = written()
        until(lambda before=before: written() > before or over(), 60, "something gets through")
    for run in runs:
        assert row(run).status == "completed", (row(run).status, row(run).exit_reason, row(run).activity)
        found = events(run)
        assert [event["seq"] for event in found] == list(range(1, len(found) + 1))
        assert [event["turn"] for event in found if event["kind"] == "turn.completed"] == list(range(1, turns + 2))
        assert kinds(run).count("run.completed") == 1
