"""What a postmortem learns from other rows than the log: alerts, runs in the same place, policies as they stand now."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from control.fleet.models import Agent, Policy
from control.incidents.models import AlertRoute, Delivery, Incident, IncidentNote
from control.incidents.postmortem import exports, filing
from control.incidents.postmortem.filing import document_of
from control.runs.models import Run
from tests.control.conftest import hinted, published, quiet
from tests.control.incidents.looking_back import filed
from tests.control.incidents.pace import best_of
from tests.control.incidents.test_postmortem_fold import busy
from tests.fixtures.night import Pen, night

__all__ = ["hinted", "published", "quiet"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]
DIRECTORY = {"workspace": {"path": "/srv/billing", "kind": "directory"}}


def run_in(spec: dict[str, Any], begun: datetime, **columns: Any) -> Run:
    return filed(night(laps=6, at=begun), spec=spec, created_at=begun, **columns)


def codes(run: Run) -> dict[str, str]:
    return {one.code: one.evidence for one in document_of(run).report.factors}


def test_alerts_of_the_desk_are_in_the_timeline_and_a_new_one_shows_at_once() -> None:
    begun = datetime.now(UTC) - timedelta(hours=1)
    run = run_in({}, begun)
    assert "nobody_paged" in codes(run)
    at = begun + timedelta(minutes=2)
    incident = Incident.objects.create(
        key=f"run:{run.pk}:repeats", rule="repeats", severity="error", title="The same call again", run_id=run.pk,
        happened_at=at, opened_at=at, last_at=at,
    )  # fmt: skip
    IncidentNote.objects.create(incident=incident, at=at + timedelta(minutes=1), kind="acknowledged", by="m.ops")
    route = AlertRoute.objects.create(
        name="on call", transport="pagerduty", created_at=at, created_by="ann", changed_at=at, changed_by="ann"
    )
    Delivery.objects.create(
        route=route, incident=incident, action="trigger", key=incident.key, state="delivered", created_at=at, due_at=at,
        code=202, done_at=at + timedelta(seconds=3),
    )  # fmt: skip
    report = document_of(run).report
    told = [one.text for one in report.timeline if one.kind == "alert"]
    assert told == [
        "incident opened (error): The same call again", "pagerduty trigger sent · 202",
        "incident acknowledged by an operator",
    ]  # fmt: skip
    assert report.delays.acknowledge.seconds == 60 and "nobody_paged" not in codes(run)


def test_a_checkout_that_an_earlier_run_used_is_a_factor_and_ones_own_is_none() -> None:
    begun = datetime.now(UTC) - timedelta(hours=3)
    run_in(DIRECTORY, begun, agent="importer")
    second = run_in(DIRECTORY, begun + timedelta(hours=1))
    assert codes(second)["shared_checkout"].startswith("1 earlier run left")
    run_in(DIRECTORY, begun + timedelta(hours=1, minutes=1), agent="importer")
    other = run_in({"workspace": {"path": "/srv/other", "kind": "directory"}}, begun)
    assert "shared_checkout" not in codes(other)
    branch = {"kind": "worktree", "source": "/srv/repo", "branch": "main", "path": "/a"}
    run_in({"workspace": branch}, begun)
    assert "shared_checkout" in codes(run_in({"workspace": branch | {"path": "/b"}}, begun + timedelta(hours=1)))
    assert "shared_checkout" not in codes(run_in({"workspace": branch | {"branch": "x"}}, begun + timedelta(hours=1)))


def test_limits_of_a_day_and_policies_as_they_stand_now_are_heeded() -> None:
    now = datetime.now(UTC)
    run = run_in({"policy_version": 1, "policy_body": {}}, now - timedelta(hours=1), policy="nightly")
    Agent.objects.create(
        name="nightly-fixer", prompt="x", limits={"max_cost_per_day": "25"}, created_at=now, created_by="ann"
    )
    body = {"fuses": {"max_steps": 4}}
    Policy.objects.create(name="nightly", version=2, body=body, created_at=now, created_by="ann")
    assert codes(run)["wide_alarm"].startswith("agent nightly-fixer: $25 per day")
    rows = {(one.policy, one.own): one for one in document_of(run).report.earlier}
    new, old = rows["nightly", False], rows["nightly", True]
    assert new.version == 2 and new.stop is not None and new.stop.step == 5
    assert old.version == 1 and old.stop is None


@pytest.mark.parametrize("long", [lambda: night(laps=910), busy], ids=["night", "busy"])
def test_ten_thousand_events_are_read_folded_and_written_as_a_document_in_under_two_seconds(
    long: Callable[[], Pen],
) -> None:
    run = filed(long())
    assert run.last_seq >= 10_000

    def work() -> str:
        filing._reports.clear()
        return exports.as_markdown(document_of(run))

    took, clock = best_of(work, below=2)
    assert "## What would have stopped it earlier" in work()
    print(f"{run.last_seq:,} events: {took:.2f} s of work, {clock:.2f} s by the clock")
    assert took < 2, (took, clock)
