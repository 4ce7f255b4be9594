"""Logs become incidents: each rule once, whatever dies in between."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from agents import kinds
from agents.spec import Status
from control.incidents import cases, fleet, intake
from control.incidents.models import Gauge, Incident, State
from control.runs.clock import database_now
from control.runs.models import Run
from tests.control.records import make_run, write

pytestmark = pytest.mark.django_db

TRIPPED = kinds.RunTripped(
    step=12,
    rule="repeats",
    verdict={"explanation": "8 times the same call", "count": 8, "evidence": [3, 4], "wasted_usd": "0.12"},
)
STOPPED = {"sockets": 0, "processes": 1, "children": 0, "abandoned": [], "seconds": 9.0, "verified": False, "why": "x"}


def tool(run: Run, number: int, args: str, *, status: str = "ok", result: str = "no such file") -> None:
    call = f"c{number}"
    if status != "blocked":
        write(run, kinds.CallStarted(operation="execute_tool", name="read_file", args=args), turn=1, call=call)
    body = kinds.CallCompleted(operation="execute_tool", name="read_file", status=status, args=args, result=result)
    write(run, body, turn=1, call=call)


def keys() -> list[tuple[str, str]]:
    return [
        (key.rpartition(":")[2], state) for key, state in Incident.objects.order_by("id").values_list("key", "state")
    ]


ENDS: list[tuple[kinds.Body, str]] = [
    (TRIPPED, "tripped"),
    (kinds.RunLost(worker="w-1", last_seen=None), "lost"),
    (kinds.RunFailedEvent(error={"reason": "billing", "message": "no money", "status": 402}), "failed"),
    (kinds.RunInterrupted(command=None, by="ann", reason="stop", stopped=STOPPED), "unverified"),
]


@pytest.mark.parametrize(("end", "rule"), ENDS, ids=[rule for _, rule in ENDS])
def test_a_bad_end_opens_one_incident_and_reading_again_none(end: kinds.Body, rule: str) -> None:
    run = make_run(agent="importer")
    write(run, end)
    assert intake.take_in() == 1
    intake.forget()
    assert intake.take_in() == 0
    incident = Incident.objects.get()
    assert incident.key == f"run:{run.pk}:{rule}" and incident.run_id == run.pk and incident.agent == "importer"
    assert incident.evidence and incident.facts and incident.state == State.OPEN


def test_good_ends_open_nothing() -> None:
    for end in (kinds.RunCompleted(final="done"), kinds.RunExhausted(limit="max_turns", final="", final_by="log")):
        write(make_run(), end)
    verified = kinds.RunInterrupted(command=None, by="ann", reason="", stopped=STOPPED | {"verified": True})
    write(make_run(), verified)
    assert intake.take_in() == 3 and not Incident.objects.exists()


def test_the_same_call_again_and_again_is_told_even_where_it_is_blocked() -> None:
    run = make_run()
    for number in range(4):
        tool(run, number, '{"path":"a"}', status="ok" if number < 2 else "blocked")
    intake.take_in()
    assert not Incident.objects.exists()
    # The desk is another one by now.
    intake.forget()
    tool(run, 4, '{"path":"a"}', status="blocked")
    intake.take_in()
    incident = Incident.objects.get()
    assert incident.rule == "repeats" and ["blocked", "3"] in incident.facts and len(incident.evidence) == 5
    # It resolves with the end of the run; what ended it is an incident of its own.
    write(run, TRIPPED)
    intake.take_in()
    assert keys() == [("repeats", "resolved"), ("tripped", "open")]


def test_a_call_whose_answer_changes_is_watching_and_not_repeating() -> None:
    run = make_run()
    for number in range(12):
        tool(run, number, '{"path":"log"}', result=f"line {number}")
    intake.take_in()
    assert not Incident.objects.exists()


def test_four_fifths_of_a_budget_are_told_until_it_is_raised() -> None:
    run = make_run()
    near: dict[str, Any] = {"detector": "fuses", "rung": "observe", "fingerprint": "", "step": 3, "count": 82}
    near |= {"evidence": [], "wasted_tokens": 0, "shadow": False}
    write(run, kinds.VerdictIssued(**near, rule="max_cost", explanation="82 % of max_cost is used"))
    # Turns are no budget.
    write(run, kinds.VerdictIssued(**near, rule="max_turns", explanation="80 % of max_turns is used"))
    intake.take_in()
    incident = Incident.objects.get()
    assert (incident.rule, incident.title, incident.severity) == ("budget", "82 % of max_cost is used", "warning")
    write(run, kinds.FuseRaised(limits={"max_cost": "9"}, by="ann", reason="it goes well"))
    intake.take_in()
    now = database_now()
    cases.settle(now)
    assert keys() == [("budget", "open")]
    cases.settle(now + cases.STEADY + timedelta(seconds=1))
    assert keys() == [("budget", "resolved")]


def test_who_waits_too_long_is_told_of_once_and_resolved_when_it_goes_on(settings: Settings) -> None:
    settings.ALERT_WAITING_MINUTES = 15
    run = make_run(status=Status.WAITING)
    long_ago = database_now() - timedelta(minutes=16)
    Run.objects.filter(pk=run.pk).update(waiting_for="question", last_activity_at=long_ago)
    paused = make_run(status=Status.WAITING)
    Run.objects.filter(pk=paused.pk).update(waiting_for="pause", last_activity_at=long_ago)
    intake.look_around()
    intake.look_around()
    incident = Incident.objects.get()
    assert incident.rule == "waiting" and "an answer" in incident.title
    # Whoever resolves it knows that it waits.
    cases.resolve(incident, database_now(), by="ann")
    intake.look_around()
    assert Incident.objects.get().state == State.RESOLVED
    Incident.objects.update(state=State.OPEN, resolved_at=None)
    Run.objects.filter(pk=run.pk).update(status=Status.RUNNING.value, waiting_for=None)
    intake.look_around()
    assert keys() == [("waiting", "resolved")]


def chat(run: Run, number: int, *, failed: bool, cost: str | None = None) -> None:
    call, until = f"m{number}", "2026-01-01T00:00:00Z"
    write(run, kinds.CallStarted(operation="chat", name="chat", provider="openai"), turn=1, call=call)
    if failed:
        error = {"reason": "overloaded", "status": 503, "message": "", "evidence": ""}
        write(run, kinds.CallRetried(error=error, action="retry", wait_s=1, until=until, attempt=1), turn=1, call=call)
    else:
        done = kinds.CallCompleted(operation="chat", name="chat", status="ok", cost_usd=cost)
        write(run, done, turn=1, call=call)


def test_a_provider_that_fails_half_the_time_is_one_incident_for_all_runs() -> None:
    first, second = make_run(), make_run()
    for number in range(6):
        chat(first, number, failed=True)
        chat(second, number, failed=number % 2 == 0)
    intake.take_in()
    intake.look_around()
    intake.look_around()
    incident = Incident.objects.get()
    assert incident.key == "provider:openai:errors" and "9 of 12" in incident.title
    # Resolved by a person it stays so, although nothing is better yet.
    cases.resolve(incident, database_now(), by="ann")
    intake.look_around()
    assert Incident.objects.get().state == State.RESOLVED


def test_a_spend_is_steep_only_against_what_is_usual() -> None:
    now = datetime(2026, 3, 1, 12, 4, tzinfo=UTC)
    here = fleet.slot_of(now)
    usual = [(here - back, 0.5, 5.0) for back in range(2, 200)]
    assert not fleet.spend([*usual, (here, 0.5, 5.0)], now).bad
    steep = fleet.spend([*usual, (here, 9.0, 50.0)], now)
    assert steep.bad and not steep.calm and "$6.00 is usual" in steep.title
    # With nothing to compare with, nothing is said; and cents are never steep.
    assert not fleet.spend([(here, 900.0, 9.0)], now).bad
    assert not fleet.spend([(here - 100, 0.001, 1.0), (here, 0.3, 1.0)], now).bad
    assert fleet.spend(usual, now + timedelta(minutes=15)).calm


def test_the_cost_of_every_attempt_is_counted_once() -> None:
    run = make_run()
    for number in range(3):
        chat(run, number, failed=False, cost="0.25")
    intake.take_in()
    intake.forget()
    chat(run, 3, failed=False, cost="0.25")
    intake.take_in()
    assert sum(point[1] for point in Gauge.objects.get(name=intake.SPEND).points) == pytest.approx(1.0)


def test_a_day_that_is_spent_is_one_incident_however_many_runs_it_stops() -> None:
    for agent, fuse in (("importer", "agent"), ("importer", "agent"), ("mailer", "agent"), ("mailer", "fleet")):
        limit = f"{fuse}_max_cost_per_day"
        write(make_run(agent=agent), kinds.RunTripped(step=3, fuse=limit, verdict={"explanation": f"{limit}: spent"}))
    write(make_run(agent="importer"), kinds.RunTripped(step=3, fuse="max_cost"))
    intake.take_in()
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    found = dict(Incident.objects.exclude(rule="tripped").values_list("key", "times"))
    assert found == {
        f"agent:importer:{day}:day_limit": 2,
        f"agent:mailer:{day}:day_limit": 1,
        f"fleet:{day}:day_limit": 1,
    }
    assert Incident.objects.filter(rule="tripped").count() == 1
    assert {one.agent for one in Incident.objects.filter(rule="day_limit")} == {"importer", "mailer", ""}
    # Nobody is sent to one run, nor told to stop it: there are many, and they have ended.
    assert not Incident.objects.filter(rule="day_limit", run_id__isnull=False).exists()
