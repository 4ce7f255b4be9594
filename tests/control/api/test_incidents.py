"""Incidents and alert routes for machines."""

from typing import Any

import pytest

from control.accounts.models import AuditEntry
from control.api.alert_routes import PreviewOut, RouteOut
from control.api.incidents import HandledOut, IncidentsOut
from control.incidents import cases, sealing
from control.incidents.cases import Case
from control.incidents.models import AlertRoute, Incident
from control.runs.clock import database_now
from tests.control.api.callers import UNKNOWN, Caller

pytestmark = pytest.mark.django_db
HOOK = {"url": "https://hooks.test/secret-path", "secret": "another-secret-of-good-length"}


def opened(number: int, rule: str = "tripped") -> Incident:
    now = database_now()
    return cases.open_(Case(key=f"run:{UNKNOWN[:-1]}{number}:{rule}", rule=rule, title=f"no. {number}", at=now), now)


def test_incidents_are_listed_page_by_page_and_handled_once(operator: Caller, viewer: Caller) -> None:
    rows = [opened(number) for number in range(3)]
    first = viewer.get("/api/incidents?state=unresolved&limit=2").body
    IncidentsOut.model_validate(first)
    second = viewer.get(f"/api/incidents?limit=2&cursor={first['next']}").body
    assert [row["title"] for row in first["incidents"] + second["incidents"]] == ["no. 2", "no. 1", "no. 0"]
    assert second["next"] is None
    path = f"/api/incidents/{rows[0].pk}"
    assert viewer.post(f"{path}/acknowledge").status == 403
    done = operator.post(f"{path}/acknowledge", Idempotency_Key="k1") if False else operator.post(f"{path}/acknowledge")
    HandledOut.model_validate(done.body)
    assert (done.status, done.body["changed"], done.body["incident"]["state"]) == (200, True, "acknowledged")
    assert operator.post(f"{path}/acknowledge").body["reason"] == "unchanged"
    assert operator.post(f"{path}/comment", {"text": "looking"}).status == 200
    assert operator.post(f"{path}/snooze", {"term": "2h"}).body["incident"]["snoozed_until"]
    assert operator.post(f"{path}/snooze", {"term": "a while"}).status == 422
    assert operator.post(f"{path}/assign", {"to": "nobody"}).code == "unknown_person"
    assert operator.post(f"{path}/resolve", {"text": "mended"}).body["incident"]["resolution"] == "mended"
    assert operator.post(f"{path}/snooze", {"term": "2h"}).code == "already_resolved"
    whole = viewer.get(path).body
    assert [line["kind"] for line in whole["history"]] == ["opened", "acknowledged", "comment", "snoozed", "resolved"]
    assert whole["deliveries"] == [] and whole["runbook"].endswith("#tripped")
    assert AuditEntry.objects.filter(action="resolve_incident", reason="mended", result="ok").exists()
    for bad in (UNKNOWN, "nonsense"):
        assert viewer.get(f"/api/incidents/{bad}").code == "not_found"
    assert viewer.get("/api/incidents?limit=0").code == "bad_filter"
    assert all(rule["next_step"] and rule["runbook"] for rule in viewer.get("/api/alert-rules").body["rules"])


def test_a_route_is_made_changed_and_tried_and_tells_no_secret(admin: Caller, viewer: Caller) -> None:
    body: dict[str, Any] = {"name": "ops", "transport": "webhook", "secrets": HOOK, "quiet_from": "22:00"}
    assert admin.post("/api/alert-routes", body).status == 422
    made = admin.post("/api/alert-routes", body | {"quiet_to": "07:00", "zone": "Europe/Berlin"})
    assert made.status == 201
    RouteOut.model_validate(made.body)
    path = f"/api/alert-routes/{made.body['id']}"
    assert admin.post("/api/alert-routes", {**body, "quiet_from": None}).code == "name_taken"
    changed = admin.put(path, {"name": "ops", "transport": "webhook", "least": "critical"})
    assert (changed.status, changed.body["least"], changed.body["quiet_from"]) == (200, "critical", None)
    assert sealing.opened(AlertRoute.objects.get().sealed) == HOOK
    assert admin.put(path, {"name": "ops", "transport": "webhook", "secrets": {"url": None}}).status == 422
    assert admin.post(f"{path}/test").status == 202
    preview = viewer.get(f"{path}/preview").body
    PreviewOut.model_validate(preview)
    told = [made.body, changed.body, viewer.get("/api/alert-routes").body, preview]
    told += [viewer.get(f"{path}/deliveries").body, list(AuditEntry.objects.values())]
    assert "secret-path" not in str(told) and HOOK["secret"] not in str(told)
    assert viewer.get(f"{path}/deliveries").body["deliveries"][0]["action"] == "test"
