"""The page of replays: asked for with a form, told where the two part, and a test to take along."""

import re
from html import unescape

import pytest
from django.test import Client

from agents.spec import Status
from control.accounts.models import AuditEntry
from control.fleet.policies import ensure_shipped
from control.runs.models import Run
from tests.control.api.callers import caller
from tests.control.dashboard.pages import page
from tests.control.incidents.recording import Made, record
from tests.control.incidents.test_regression import looping

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]


def text(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def test_a_replay_is_asked_for_and_told_as_queued(operator: Client):
    run = looping("strict")
    assert "replay-send" in page(operator, f"/runs/{run.pk}/replay")
    answer = operator.post(f"/runs/{run.pk}/replay", {"policy": "ladder"})
    made = Run.objects.get(replay_of=run.pk)
    assert answer.status_code == 302 and answer["Location"] == f"/runs/{made.pk}/replay"
    said = text(page(operator, f"/runs/{made.pk}/replay"))
    assert "0 steps the same so far" in said and "from its recorded answers, under ladder" in said
    entry = AuditEntry.objects.get(action="replay")
    assert (entry.target, entry.after["policy"], entry.after["dry_run"]) == (f"run:{run.pk}", "ladder", True)
    assert "Plays" in text(page(operator, f"/runs/{made.pk}/"))
    bad = operator.post(f"/runs/{run.pk}/replay", {"live": "1", "base_url": "http://127.0.0.1:9/v1", "model": ""})
    assert bad.status_code == 400 and "name its base_url and its model" in text(bad.content.decode())


def test_where_the_two_part_is_shown_side_by_side(viewer: Client):
    ensure_shipped()
    same = Made(tool="run_command", args={"command": "pytest"}, result="1 failed", failed=True)
    old = record([same] * 4, status=Status.INTERRUPTED)
    new = record([same] * 3, status=Status.FAILED, replay_of=old.pk)
    html = page(viewer, f"/runs/{new.pk}/replay")
    assert "Parts at step 4" in text(html) and "replay-send" not in html
    told = caller("viewer").get(f"/api/runs/{new.pk}/replay").body
    assert (told["same"], told["diverged"]["step"], told["diverged"]["now"]) == (3, 4, None)
    assert caller("viewer", "other").get(f"/api/runs/{old.pk}/replay").code == "no_replay"


def test_the_api_starts_a_replay_and_gives_the_test(operator: Client):
    run = looping("strict")
    who = caller("operator")
    reply = who.post(f"/api/runs/{run.pk}/replay", {"policy": "ladder"})
    assert reply.status == 201 and Run.objects.get(pk=reply.body["id"]).replay_of == run.pk
    assert who.post(f"/api/runs/{run.pk}/replay", {"model": "m"}).code == "not_live"
    assert who.get(f"/api/runs/{run.pk}/regression.zip").body[:2] == b"PK"
    assert operator.get(f"/runs/{run.pk}/regression.zip")["Content-Type"] == "application/zip"
    assert who.get(f"/api/runs/{run.pk}/regression.zip?policy=off").code == "no_trip"
    assert "trip nothing" in text(operator.get(f"/runs/{run.pk}/regression.zip?policy=off").content.decode())
