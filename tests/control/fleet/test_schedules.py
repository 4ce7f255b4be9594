"""Schedules: due at the right times in their zone, started once, made up for as they say, stopped by their trips."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from agents.spec import Status
from control.accounts.models import AuditEntry, Role, User
from control.fleet import schedules, scheduling
from control.fleet.agents import ensure_default
from control.fleet.models_schedules import Schedule, ScheduledRun
from control.fleet.policies import ensure_shipped
from control.fleet.schedules import BadSchedule
from control.runs.models import Block, Command, Run
from tests.control.api.callers import caller
from tests.control.conftest import hinted, published, quiet
from tests.control.dashboard.pages import page

__all__ = ["hinted", "published", "quiet"]
UTC_DAY = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# --- times: pure ----------------------------------------------------------------------------------------------------


def test_an_expression_is_read_in_its_zone_on_both_sides_of_a_change_of_the_clock() -> None:
    """Berlin goes to summer time on 2026-03-29 at 02:00: there is no 02:30, and 03:30 comes an hour earlier."""
    found = schedules.coming("30 3 * * *", "Europe/Berlin", at("2026-03-28T00:00"), 3)
    assert found == [at("2026-03-28T02:30"), at("2026-03-29T01:30"), at("2026-03-30T01:30")]
    skipped = schedules.coming("30 2 * * *", "Europe/Berlin", at("2026-03-28T12:00"), 2)
    assert skipped == [at("2026-03-29T01:00"), at("2026-03-30T00:30")]
    # And back on 2026-10-25 at 03:00: 02:30 is shown twice and comes once.
    twice = schedules.coming("30 2 * * *", "Europe/Berlin", at("2026-10-24T12:00"), 2)
    assert [one.date().isoformat() for one in twice] == ["2026-10-25", "2026-10-26"]


@pytest.mark.parametrize(
    ("cron", "zone", "field"),
    [
        ("61 * * * *", "UTC", "cron"),
        ("* * * *", "UTC", "cron"),
        ("0 0 30 2 *", "UTC", "cron"),
        ("0 1 * * *", "Mars", "zone"),
    ],
)
def test_what_never_comes_or_cannot_be_read_is_refused_with_its_field(cron: str, zone: str, field: str) -> None:
    with pytest.raises(BadSchedule) as refused:
        schedules.check(cron, zone)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("missed", "starts", "passed"), [("skip", [], 3), ("once", ["2026-03-02T11:00"], 2), ("all", None, 0)]
)
def test_times_that_nobody_saw_are_made_up_for_as_the_schedule_says(missed: str, starts: Any, passed: int) -> None:
    now = at("2026-03-02T11:30")
    found = schedules.due("0 * * * *", "UTC", at("2026-03-02T09:00"), now, missed)
    every = [at(f"2026-03-02T{hour:02}:00") for hour in (9, 10, 11)]
    assert list(found.starts) == (every if starts is None else [at(one) for one in starts])
    assert found.missed == passed


def test_a_time_on_time_is_started_alone_and_the_late_ones_before_it_are_passed_over() -> None:
    found = schedules.due("0 * * * *", "UTC", at("2026-03-02T09:00"), at("2026-03-02T11:00:20"), "once")
    assert list(found.starts) == [at("2026-03-02T11:00")] and found.missed == 2


def test_a_year_without_a_desk_is_made_up_for_ten_times_at_most() -> None:
    found = schedules.due("*/5 * * * *", "UTC", at("2025-03-02T09:00"), at("2026-03-02T09:01"), "all")
    assert len(found.starts) == schedules.MOST_MADE_UP


# --- with the database -----------------------------------------------------------------------------------------------


@pytest.fixture
def clock(db: None, quiet: None, settings: Any, monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """`clock[0]` is the time."""
    settings.DRILL_URL_GIVEN = True
    ensure_shipped()
    ensure_default()
    now = [UTC_DAY]
    monkeypatch.setattr(scheduling, "database_now", lambda: now[0])
    return now


def nightly(**given: Any) -> Schedule:
    fields = {"agent": "default", "task": "tidy up", "cron": "0 1 * * *", **given}
    return scheduling.save("nightly", fields, by="ann")[0]


def pass_night(clock: list[datetime]) -> int:
    clock[0] = (clock[0] + timedelta(days=1)).replace(hour=1, minute=0, second=5)
    return scheduling.turn()


def end(status: Status, reason: str | None = None) -> None:
    active = Run.objects.filter(status="queued")
    active.update(status=status.value, exit_reason=reason)


def test_a_time_is_started_once_also_by_two_desks(clock: list[datetime]) -> None:
    row = nightly(limits={"max_steps": "7"}, labels={"team": "ops"})
    assert row.next_at == at("2026-03-03T01:00") and scheduling.turn() == 0
    stale = Schedule.objects.get()
    assert pass_night(clock) == 1
    assert scheduling._take_up(stale, clock[0]) == 0
    run = Run.objects.get()
    assert (run.owner, run.labels) == ("schedule:nightly", {"team": "ops", "schedule": "nightly"})
    assert run.spec["limits"]["max_steps"] == {"value": "7", "source": "request"}
    time = ScheduledRun.objects.get()
    assert (time.outcome, time.run_id, time.due_at) == ("started", run.pk, at("2026-03-03T01:00"))
    assert Schedule.objects.get().next_at == at("2026-03-04T01:00")


@pytest.mark.parametrize(
    ("overlap", "runs", "outcome"), [("skip", 1, "overlap"), ("allow", 2, "started"), ("interrupt", 2, "started")]
)
def test_a_run_that_still_goes_on_is_met_as_the_schedule_says(
    clock: list[datetime], overlap: str, runs: int, outcome: str
) -> None:
    nightly(overlap=overlap)
    pass_night(clock)
    pass_night(clock)
    assert Run.objects.count() == runs
    assert ScheduledRun.objects.order_by("-due_at")[0].outcome == outcome
    assert Command.objects.filter(kind="interrupt").count() == (overlap == "interrupt")


def test_a_schedule_whose_last_runs_tripped_stops_itself_and_goes_on_when_somebody_says_so(
    clock: list[datetime],
) -> None:
    row = nightly(stop_after_trips=2)
    pass_night(clock)
    end(Status.TRIPPED, "fuse:max_identical_calls")
    pass_night(clock)
    end(Status.COMPLETED)
    pass_night(clock)
    end(Status.TRIPPED, "fuse:max_steps")
    assert pass_night(clock) == 1, "one of the last two had completed"
    end(Status.TRIPPED, "fuse:max_steps")
    assert pass_night(clock) == 0
    row.refresh_from_db()
    assert (row.enabled, row.stopped_by, row.next_at) == (False, "", None)
    assert row.stopped_why == "Its last 2 runs tripped (fuse:max_steps)"
    assert scheduling.switch(row, on=True, by="ann")
    # The runs are of this very minute, by the real clock; the schedule's clock is behind it.
    Schedule.objects.update(trips_since=datetime.now(UTC))
    assert pass_night(clock) == 1


def test_a_start_that_is_refused_is_told_and_the_next_one_tried(clock: list[datetime]) -> None:
    nightly()
    block = Block.objects.create(filter={}, reason="the night of the 3rd", by="ann", created_at=clock[0])
    pass_night(clock)
    assert ScheduledRun.objects.get().why.startswith("starts_blocked")
    block.lifted_at = clock[0]
    block.save()
    assert pass_night(clock) == 1


def test_agent_policy_and_limits_are_checked_when_it_is_saved(clock: list[datetime]) -> None:
    who = caller("operator")
    good = {"task": "tidy up", "cron": "0 1 * * *", "zone": "Europe/Berlin", "limits": {"max_steps": 9}}
    reply = who.put("/api/schedules/nightly", good)
    assert reply.status == 201 and reply.body["fuses"]["max_steps"] == {"value": "9", "source": "request"}
    assert len(reply.body["coming"]) == 3 and reply.body["words"]
    assert who.put("/api/schedules/nightly", good).body["changed"] is False
    for wrong, code in (
        ({"cron": "often"}, "bad_schedule"),
        ({"agent": "nobody"}, "unknown_agent"),
        ({"policy": "no"}, "unknown_policy"),
    ):
        assert who.put("/api/schedules/nightly", {**good, **wrong}).code == code
    started = who.post("/api/schedules/nightly/run")
    assert started.status == 201 and Run.objects.get().pk == started.body["run"]
    assert who.post("/api/schedules/nightly/switch", {"enabled": False, "reason": "holidays"}).body["changed"] is True
    told = who.get("/api/schedules/nightly").body
    assert (told["enabled"], told["stopped_why"], told["times"][0]["outcome"]) == (False, "holidays", "started")
    assert who.delete("/api/schedules/nightly").body["changed"] is True
    assert who.get("/api/schedules/nightly").code == "not_found"
    done = list(AuditEntry.objects.exclude(result__contains="_").values_list("action", flat=True))
    assert {"write_schedule", "switch_schedule", "delete_schedule", "start"} <= set(done)


def test_the_page_shows_fuses_and_times_and_saves_a_form(clock: list[datetime], client: Client) -> None:
    client.force_login(User.objects.create(username="op", role=Role.OPERATOR))
    form = {
        "name": "nightly",
        "agent": "default",
        "task": "<b>tidy</b>",
        "cron": "0 1 * * 1-5",
        "zone": "UTC",
        "max_steps": "12",
        "max_cost": "",
        "stop_after_trips": "3",
    }
    bad = client.post("/schedules/-/new/", {**form, "cron": "later"})
    assert bad.status_code == 400 and "five fields" in bad.content.decode() and "&lt;b&gt;tidy" in bad.content.decode()
    assert client.post("/schedules/-/new/", form).status_code == 302
    html = page(client, "/schedules/")
    for word in ("nightly", "12 steps", "Monday through Friday", "stops after 3 trips in a row", "&lt;b&gt;tidy"):
        assert word in html, word
    assert client.post("/schedules/nightly/", {**form, "max_steps": "15"}).status_code == 302
    assert Schedule.objects.get().limits == {"max_steps": "15"}
    client.post("/schedules/nightly/act", {"do": "off"})
    assert "Stopped" in page(client, "/schedules/") and not Schedule.objects.get().enabled
    client.post("/schedules/nightly/act", {"do": "delete"})
    assert not Schedule.objects.exists()
