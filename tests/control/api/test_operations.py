"""Workers, credentials and the audit trail for machines: the same verbs as on the pages, audited the same."""

from datetime import timedelta
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from control.accounts.models import AuditEntry
from control.fleet.models import CredentialState
from control.runs.clock import database_now
from control.runs.models import Worker
from tests.control.api.callers import caller

pytestmark = pytest.mark.django_db
SECRET = "sk-nobody-shall-read-this"


@pytest.fixture
def keys(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "credentials.toml"
    path.write_text('[[credential]]\nlabel = "main"\nbase_urls = ["https://a.example/v1"]\nkey_env = "MAIN_KEY"\n')
    settings.CREDENTIALS_FILE = str(path)
    monkeypatch.setenv("MAIN_KEY", SECRET)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def test_a_worker_is_listed_and_drained_once():
    now = database_now()
    one = Worker.objects.create(
        host="north", pid=41, started_at=now, seen_at=now - timedelta(seconds=1), version="0.1.0"
    )
    operator = caller("operator")
    (row,) = operator.get("/api/workers").body["workers"]
    assert (row["id"], row["host"], row["version"], row["draining"]) == (one.pk, "north", "0.1.0", False)
    assert operator.post(f"/api/workers/{one.pk}/drain", {"reason": "new kernel"}).body == {
        "changed": True,
        "reason": None,
    }
    assert operator.post(f"/api/workers/{one.pk}/drain", {}).body["reason"] == "already_draining"
    assert operator.post("/api/workers/nobody/drain", {}).code == "not_found"
    told = list(AuditEntry.objects.order_by("id").values_list("action", "reason", "result"))
    assert told == [("drain", "new kernel", "ok"), ("drain", None, "already_draining"), ("drain", None, "not_found")]


@pytest.mark.usefixtures("keys")
def test_a_key_rests_and_is_woken_and_is_never_told():
    operator = caller("operator")
    assert operator.post("/api/credentials/main/rest", {"seconds": 600, "reason": "rolled"}).body["changed"] is True
    assert operator.post("/api/credentials/main/rest", {"seconds": 60}).body["reason"] == "unchanged"
    answer = operator.get("/api/credentials")
    (row,) = answer.body["credentials"]
    assert (row["health"], row["reason"]) == ("resting", "operator") and "rests" in row["rests"]
    assert SECRET not in str(answer.body) and "MAIN_KEY" not in str(answer.body)
    assert operator.post("/api/credentials/main/revive", {}).body["changed"] is True
    assert CredentialState.objects.get().health == "ok"
    assert operator.post("/api/credentials/gone/revive", {}).code == "not_found"
    assert operator.post("/api/credentials/main/rest", {"seconds": 0}).status == 422


def test_the_trail_is_read_page_by_page():
    admin = caller("admin")
    for _ in range(3):
        admin.post("/api/workers/nobody/drain", {})
    found = admin.get("/api/audit?q=action:drain").body
    assert [row["result"] for row in found["entries"]] == ["not_found"] * 3 and found["next"] is None
    last = found["entries"][0]["id"]
    assert len(admin.get(f"/api/audit?q=action:drain&before={last}").body["entries"]) == 2
    assert admin.get("/api/audit?since=2001-01-01&until=2001-01-02").body["entries"] == []
