"""A database whose disk is full: what is too large ends its run with a reason, a log waits for room; nothing hangs.

The server itself raises the error of a full disk, by a trigger on the table that is to have no room.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from tests.control.runs.processes import House, answered, events, kinds, marked, reach, row, until
from tests.scripted_server import Response, ask_tools, say

pytestmark = [pytest.mark.chaos, pytest.mark.postgres]
MakeHouse = Callable[..., House]


@contextmanager
def no_room(table: str, condition: str) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"IF {condition} THEN RAISE EXCEPTION 'No space left on device' USING ERRCODE = '53100'; END IF; "
            "RETURN NEW; END $$"
        )
        cursor.execute(f"CREATE TRIGGER no_room BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION no_room()")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION no_room CASCADE")


def test_a_result_that_finds_no_room_ends_its_run_with_a_reason_and_other_runs_go_on(make_house: MakeHouse) -> None:
    def script(request: Any) -> Response:
        if "large" not in request["messages"][1]["content"] or answered(request):
            return say("done")
        return ask_tools(("run_command", {"command": "seq 1 40000"}))

    house = make_house(script)
    house.worker()
    with no_room("runs_artifact", "NEW.size > 100000"):
        large, small = house.begin("large"), house.begin("small")
        assert reach(small, "completed", "failed").status == "completed"
        ended = reach(large, "completed", "failed", within=30)
    assert (ended.status, ended.exit_reason) == ("failed", "error:disk_full")
    said = events(large)[-1]["data"]["error"]["message"]
    assert "disk of the database is full" in said and "prune" in said
    assert marked("PILOTHOUSE_RUN", large) == []


def test_a_log_without_room_waits_for_it_and_goes_on(make_house: MakeHouse) -> None:
    house = make_house(
        lambda request: say("done") if answered(request) else ask_tools(("run_command", {"command": "sleep 0.5"}))
    )
    house.worker()
    house.desk()
    run = house.begin()
    until(lambda: "call.started" in kinds(run), what="it works")
    with no_room("runs_event", "true"):
        time.sleep(3.0)  # twice the lease
        assert row(run).status == "running"
    assert reach(run, "completed", "failed", within=30).status == "completed"
    found = events(run)
    assert [event["seq"] for event in found] == list(range(1, len(found) + 1))
