"""What the fleet's page and feed ask, render and keep. The times are measured by `make bench ONLY=fleet`."""

from collections.abc import Callable
from datetime import timedelta

import orjson
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from control.dashboard import fleet_feed, fleet_rows
from control.runs import line
from control.runs.clock import database_now
from control.runs.models import Run
from tests.control.records import make_run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]


def _asked(client: Client) -> int:
    line.forget()
    with CaptureQueriesContext(connection) as asked:
        assert client.get("/").status_code == 200
    return len(asked)


def test_the_page_asks_the_database_as_often_for_many_runs_as_for_few(operator: Client) -> None:
    make_run()
    operator.get("/")  # the first one of a session is noted
    fleet_rows.forget_strip()
    few = _asked(operator)
    for number in range(fleet_rows.PAGE + 5):
        make_run(agent=f"agent-{number}")
    fleet_rows.forget_strip()
    assert _asked(operator) == few <= 24


def test_pages_that_are_opened_within_a_moment_share_one_look_at_the_numbers(operator: Client) -> None:
    make_run()
    operator.get("/")
    fleet_rows.forget_strip()
    alone = _asked(operator)
    assert _asked(operator) <= alone - 8


def test_numbers_are_looked_at_anew_where_they_must_be_right_now() -> None:
    make_run()
    assert "<b>1</b> running" in fleet_rows.strip_html()
    make_run()
    assert "<b>1</b> running" in fleet_rows.strip_html()
    assert "<b>2</b> running" in fleet_rows.strip_html(0.0)
    # Whoever comes next gets what was found last.
    assert "<b>2</b> running" in fleet_rows.strip_html()


def test_a_row_is_written_once_for_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run()
    written: list[str] = []
    part: Callable[..., str] = fleet_rows.part
    monkeypatch.setattr(fleet_rows, "part", lambda name, context: written.append(name) or part(name, context))
    first = fleet_rows.row_html(run)
    assert fleet_rows.row_html(Run.objects.get(pk=run.pk), database_now() + timedelta(minutes=0.5)) == first
    assert len(written) == 1
    for name, value in {"turns": 7, "errors": 3, "activity": "edit_file a.py", "owner": "bob", "rung": "steer"}.items():
        setattr(run, name, value)
        changed = fleet_rows.row_html(run)
        assert changed != first, name
        first = changed


def test_a_row_tells_at_once_that_a_stop_was_verified() -> None:
    run = make_run(finished_at=database_now())
    run.status, run.stop_seconds, run.stopped = "interrupted", 0.4, {"verified": False}
    assert "unverified" in fleet_rows.row_html(run)
    run.stopped = {"verified": True}
    assert "unverified" not in fleet_rows.row_html(run)


def test_a_row_tells_of_a_lease_that_lapsed_without_an_event() -> None:
    run = make_run()
    assert "No contact" not in fleet_rows.row_html(run, database_now())
    assert "No contact" in fleet_rows.row_html(run, database_now() + timedelta(hours=1))


def test_the_feed_sees_a_lease_lapse_and_a_run_end() -> None:
    lapsing, ending = make_run(), make_run()
    before = fleet_feed._heads([])
    assert not before[lapsing.pk].seen[1] and before[ending.pk].active
    Run.objects.filter(pk=lapsing.pk).update(lease_until=database_now() - timedelta(seconds=1))
    Run.objects.filter(pk=ending.pk).update(status="completed", finished_at=database_now())
    after = fleet_feed._heads(list(before))
    assert after[lapsing.pk].seen[1] and not after[ending.pk].active


def test_whoever_begins_to_look_gets_the_numbers_and_what_moved_since_its_page() -> None:
    idle, lively, over = make_run(), make_run(), make_run()
    long_ago = database_now() - timedelta(hours=1)
    Run.objects.update(created_at=long_ago, last_activity_at=long_ago)
    Run.objects.filter(pk=lively.pk).update(last_activity_at=database_now())
    ended = {"status": "completed", "finished_at": database_now(), "last_activity_at": database_now()}
    Run.objects.filter(pk=over.pk).update(**ended)
    found = fleet_feed.since(database_now() - timedelta(seconds=5))
    assert set(found) == {"strip", lively.pk, over.pk}
    assert orjson.loads(found["strip"])["id"] == "strip"
    assert idle.pk not in found
