"""The form that starts a run."""

import re

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from control.accounts.models import AuditEntry
from control.runs.models import Run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]

MODEL = {"model": "m", "base_url": "http://127.0.0.1:9/v1"}


@pytest.fixture(autouse=True)
def known_model(settings: Settings) -> None:
    """In production a base URL has to be on the list."""
    settings.ALLOWED_BASE_URLS = [MODEL["base_url"]]


def test_a_run_is_started_from_the_form(operator: Client):
    form = {**MODEL, "agent": "default", "task": "Look around", "max_turns": "7", "labels": "team=billing, env=dev"}
    answer = operator.post("/runs/new/", form)
    run = Run.objects.get()
    assert answer["Location"] == f"/runs/{run.pk}/"
    assert (run.task, run.owner, run.labels) == ("Look around", "operator", {"team": "billing", "env": "dev"})
    assert run.spec["limits"]["max_turns"]["value"] == "7"
    assert AuditEntry.objects.get(action="start").target == f"run:{run.pk}"


@pytest.mark.parametrize(
    ("field", "form"),
    [
        ("task", {"task": "  "}),
        ("base_url", {"task": "x", "base_url": "nonsense"}),
        ("workspace", {"task": "x", "workspace": "/etc"}),
        ("max_turns", {"task": "x", "max_turns": "-3"}),
        ("max_cost", {"task": "x", "max_cost": "cheap"}),
        ("labels", {"task": "x", "labels": "no equals"}),
        ("credential", {"task": "x", "credential": "nobody"}),
        ("agent", {"task": "x", "agent": "nobody"}),
    ],
)
def test_a_refused_start_says_where_and_loses_nothing(operator: Client, field: str, form: dict[str, str]):
    typed = {**MODEL, "agent": "default", "branch": "agent/mine", **form}
    answer = operator.post("/runs/new/", typed)
    assert answer.status_code in (400, 404, 409, 422)
    html = answer.content.decode()
    bad = re.search(r'<div class="row[^"]* bad">.*?</div>', html, re.DOTALL)
    assert bad and f'name="{field}"' in bad.group()
    assert 'value="agent/mine"' in html
    assert not Run.objects.exists()
