"""Incidents and alert routes as people see and use them; secrets go in and never come out."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from agents.spec import Status
from control.accounts.models import AuditEntry
from control.dashboard import fleet_rows
from control.incidents import cases, sealing
from control.incidents.cases import Case
from control.incidents.models import AlertRoute, Delivery, Incident
from control.runs.clock import database_now
from control.runs.models import Run
from tests.control.dashboard.pages import page
from tests.control.records import make_run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]

KEY = "R0UT1NGKEYR0UT1NGKEYR0UT1NGKEY12"
SECRET = "never-to-be-shown-again-0123456789"


def opened(run: Run | None = None, **more: Any) -> Incident:
    now = database_now()
    key = f"run:{run.pk}:tripped" if run else "provider:p:errors"
    about = {"run": run.pk, "root": run.root, "agent": run.agent} if run else {}
    given = {"title": "Tripped <b>hard</b>", "rule": "tripped", "at": now - timedelta(seconds=4), **about, **more}
    return cases.open_(Case(key=key, **given), now)


def act(client: Client, incident: Incident, do: str, **given: str) -> None:
    answer = client.post(f"/incidents/{incident.pk}/act", {"do": do, **given})
    assert answer.status_code == 302, answer.content[:300]
    incident.refresh_from_db()


def fields(**more: Any) -> dict[str, Any]:
    plain = {"name": "ops", "transport": "webhook", "url": "https://hooks.test/x", "secret": SECRET, "enabled": "on"}
    numbers = {"least": "warning", "after_minutes": "0", "group_seconds": "30", "repeat_hours": "4", "zone": "UTC"}
    return {**plain, **numbers, **more}


def test_an_incident_is_taken_from_open_to_resolved_by_plain_forms(operator: Client, viewer: Client) -> None:
    run = make_run(agent="importer")
    incident = opened(run, facts=(("stopped by", "rule <i>repeats</i>"),), evidence=(1,))
    listed = page(operator, "/incidents/")
    assert "Tripped &lt;b&gt;hard&lt;/b&gt;" in listed and "No alert route is on" in listed
    shown = page(operator, f"/incidents/{incident.pk}/")
    assert f"/runs/{run.pk}/#interrupt-dialog" in shown and "rule &lt;i&gt;repeats&lt;/i&gt;" in shown
    assert f"/runs/{run.pk}/at/1/" in shown and "/incidents/rules/#tripped" in shown
    assert viewer.post(f"/incidents/{incident.pk}/act", {"do": "resolve"}).status_code == 403
    act(operator, incident, "acknowledge")
    assert (incident.state, incident.assignee) == ("acknowledged", "operator")
    act(operator, incident, "comment", text="the key sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA is in the log")
    act(operator, incident, "assign", to="nobody-here")
    act(operator, incident, "snooze", term="2h")
    act(operator, incident, "wake")
    act(operator, incident, "resolve", text="limits mended")
    assert incident.state == "resolved" and incident.resolved_by == "operator"
    kinds = list(incident.notes.order_by("at", "id").values_list("kind", flat=True))
    assert kinds == ["opened", "acknowledged", "comment", "snoozed", "woken", "resolved"]
    shown = page(operator, f"/incidents/{incident.pk}/")
    assert "limits mended" in shown and "sk-ant-api03-AAAA" not in shown
    assert "sk-ant-api03-AAAA" not in str(list(AuditEntry.objects.values_list("reason", flat=True)))
    audited = list(AuditEntry.objects.order_by("id").values_list("action", "result"))
    assert ("handle_incident", "forbidden") in audited and ("assign_incident", "unknown_person") in audited
    assert ("resolve_incident", "ok") in audited
    act(operator, incident, "reopen")
    assert incident.state == "open"


def test_lists_are_by_state_severity_and_rule_and_the_strip_counts(operator: Client) -> None:
    first, second = opened(make_run(), title="first one"), opened(make_run(), title="second one", rule="unverified")
    cases.acknowledge(first, "ann", database_now())
    assert fleet_rows.strip(database_now())["incidents"] == {"open": 1, "critical": 1, "acknowledged": 1}
    assert "first one" not in page(operator, "/incidents/?state=open")
    assert "second one" not in page(operator, "/incidents/?state=acknowledged")
    assert "first one" not in page(operator, "/incidents/?rule=unverified&severity=critical")
    cases.resolve(second, database_now())
    assert "second one" not in page(operator, "/incidents/") and "second one" in page(
        operator, "/incidents/?state=resolved"
    )
    assert "Next:" in page(operator, "/incidents/rules/")


def test_a_route_is_made_and_its_secrets_are_shown_to_nobody(admin: Client, viewer: Client) -> None:
    made = admin.post("/alert-routes/new/", fields())
    assert made.status_code == 302
    route = AlertRoute.objects.get()
    assert SECRET not in str(route.sealed) and sealing.opened(route.sealed)["secret"] == SECRET
    seen = [page(admin, f"/alert-routes/{route.pk}/"), page(admin, f"/alert-routes/{route.pk}/edit/")]
    seen += [page(viewer, "/alert-routes/"), page(viewer, f"/alert-routes/{route.pk}/")]
    assert not any(SECRET in one or "hooks.test" in one for one in seen)
    assert "incident.opened" in seen[0] and "hidden.invalid" not in seen[0]
    # Left empty they stay; a name changes alone.
    again = admin.post(f"/alert-routes/{route.pk}/edit/", fields(name="ops 2", url="", secret=""))
    assert again.status_code == 302
    route.refresh_from_db()
    assert route.name == "ops 2" and sealing.opened(route.sealed)["url"] == "https://hooks.test/x"
    entries = AuditEntry.objects.filter(action="write_route")
    assert entries.count() == 2 and SECRET not in str(list(entries.values()))


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"name": " "}, "Give it a name"),
        ({"url": "http://169.254.169.254/"}, "no place for alerts"),
        ({"secret": "short"}, "at least 24"),
        ({"secret": "env:SECRET_KEY"}, "begins with ALERT_"),
        ({"quiet_from": "22:00"}, "beginning and an end"),
        ({"zone": "Mars/Olympus"}, "time zone"),
        ({"after_minutes": "-3"}, "whole number"),
        ({"rules": "nonsense"}, "no rule"),
        ({"url": ""}, "is needed"),
    ],
)
def test_what_is_wrong_with_a_route_is_told_on_its_field(admin: Client, given: dict[str, str], word: str) -> None:
    answer = admin.post("/alert-routes/new/", fields(**given))
    text = answer.content.decode()
    assert answer.status_code == 400 and word in text and SECRET not in text
    assert not AlertRoute.objects.exists()


def test_a_test_is_asked_for_and_a_route_switched_off_by_admins_alone(admin: Client, operator: Client) -> None:
    admin.post("/alert-routes/new/?transport=pagerduty", {**fields(transport="pagerduty", url=""), "routing_key": KEY})
    route = AlertRoute.objects.get()
    assert operator.post(f"/alert-routes/{route.pk}/test").status_code == 403
    assert admin.post(f"/alert-routes/{route.pk}/test").status_code == 302
    delivery = Delivery.objects.get()
    assert (delivery.action, delivery.state, delivery.incident) == ("test", "due", None)
    assert admin.post(f"/alert-routes/{route.pk}/switch", {"do": "off"}).status_code == 302
    route.refresh_from_db()
    assert not route.enabled and "a test" in page(admin, f"/alert-routes/{route.pk}/")


def test_the_route_of_the_example_is_marked_and_stands_for_no_route_of_ones_own(admin: Client) -> None:
    assert admin.post("/alert-routes/new/?transport=webhook", fields(name="of the night")).status_code == 302
    AlertRoute.objects.update(example=True)
    listed = page(admin, "/alert-routes/")
    assert "None is on but the example’s" in listed and re.search(r"of the night</a> <a [^>]+>example</a>", listed)
    opened()
    assert "No alert route is on" in page(admin, "/incidents/")
    AlertRoute.objects.update(example=False)
    assert '<a class="version"' not in page(admin, "/alert-routes/")
    assert "No alert route is on" not in page(admin, "/incidents/")


def test_only_an_operator_takes_the_example_away_and_nothing_else_goes_with_it(
    admin: Client, operator: Client, viewer: Client
) -> None:
    assert admin.post("/alert-routes/new/?transport=webhook", fields()).status_code == 302
    # In the same project, and with a label of that name, but none of the example's.
    mine = make_run(project="the-night", status=Status.TRIPPED, held=False)
    other = make_run(labels={"example": "night"}, status=Status.TRIPPED, held=False)
    night = make_run(project="the-night", labels={"example": "night"}, status=Status.TRIPPED, held=False)
    for run in (mine, other, night):
        opened(run)
    assert viewer.post("/example/clear").status_code == 403
    assert Run.objects.count() == Incident.objects.count() == 3
    assert "1 run in project" in page(operator, "/example/")
    assert operator.post("/example/clear").status_code == 302
    assert set(Run.objects.values_list("pk", flat=True)) == {mine.pk, other.pk}
    assert set(Incident.objects.values_list("run_id", flat=True)) == {mine.pk, other.pk}
    assert AlertRoute.objects.count() == 1
    entry = AuditEntry.objects.filter(action="clear_example").get()
    assert entry.after == {"runs": 1, "incidents": 1, "routes": 0}
