"""What machines and people watch: health, readiness, metrics, and the API's description of itself."""

import re
import socket
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.staticfiles import finders
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from agents.kinds import RunInterrupted
from control.api import health
from control.api.health import PULSE
from control.runs.bus_unix import socket_path
from control.runs.models import Chore, Worker
from tests.control.api.callers import Caller
from tests.control.records import make_run, write

pytestmark = pytest.mark.django_db


@pytest.fixture
def reachable_bus(settings, tmp_path) -> Iterator[None]:
    settings.REDIS_URL = ""
    settings.BUS_SOCKET = tmp_path / "bus.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(socket_path(settings.BUS_SOCKET)))
        server.listen()
        yield


def seen(kind: str, *, ago_s: float = 0) -> None:
    now = timezone.now()
    Worker.objects.create(kind=kind, host="h", pid=1, started_at=now, seen_at=now - timedelta(seconds=ago_s), runs=3)


def test_alive_needs_nobody(stranger: Caller, django_assert_num_queries):
    with django_assert_num_queries(0):
        reply = stranger.get("/healthz")
    assert (reply.status, reply.body) == (200, {"ok": True})


def test_ready_when_every_part_answers(stranger: Caller, reachable_bus: None):
    seen("worker"), seen("worker", ago_s=5), seen("desk")
    reply = stranger.get("/readyz")
    assert reply.status == 200, reply.body
    assert reply.body["ready"] is True
    assert (reply.body["workers"]["count"], reply.body["workers"]["runs"]) == (2, 6)
    for part in ("database", "bus", "workers", "desk"):
        assert 0 <= reply.body[part]["age_s"] < 5


def test_not_ready_while_no_worker_was_seen_lately(stranger: Caller, reachable_bus: None):
    seen("worker", ago_s=60), seen("desk")
    reply = stranger.get("/readyz")
    assert (reply.status, reply.body["ready"]) == (503, False)
    assert reply.body["workers"]["ok"] is False and reply.body["workers"]["age_s"] > 50
    assert reply.body["desk"]["ok"] is True
    assert reply.body["reasons"] == ["worker: last seen 60 s ago, the limit is 15 s"]
    assert reply.body["workers"]["limit_s"] == 15


def test_not_ready_while_a_desk_is_there_and_its_chores_stand_still(stranger: Caller, reachable_bus: None):
    seen("worker"), seen("desk")
    Chore.objects.create(name=PULSE, owner="d", until=timezone.now() - timedelta(seconds=40))
    reply = stranger.get("/readyz")
    assert reply.status == 503
    assert re.fullmatch(r"desk: its chores last moved 46 s ago, the limit is 21 s", reply.body["reasons"][0])


def test_not_ready_while_no_process_was_ever_there(stranger: Caller, reachable_bus: None):
    reply = stranger.get("/readyz")
    assert reply.body["reasons"] == [
        "worker: none is there; start one with 'manage.py worker'",
        "desk: none is there; start one with 'manage.py desk'",
    ]


def test_not_ready_before_the_database_has_its_newest_form(stranger: Caller, reachable_bus: None, monkeypatch):
    seen("worker"), seen("desk")
    monkeypatch.setattr(health, "_migrated", False)
    MigrationRecorder(connection).migration_qs.filter(app="runs").order_by("-id")[0].delete()
    reply = stranger.get("/readyz")
    assert (reply.status, reply.body["database"]["unapplied_migrations"]) == (503, 1)


def test_not_ready_while_the_bus_is_away(stranger: Caller, settings, tmp_path):
    settings.REDIS_URL, settings.BUS_SOCKET = "", tmp_path / "nobody.sock"
    seen("worker"), seen("desk")
    reply = stranger.get("/readyz")
    assert reply.status == 503
    bus = reply.body["bus"]
    assert (bus["ok"], bus["age_s"], bus["problem"]) == (False, None, "FileNotFoundError")
    assert reply.body["reasons"] == ["bus: does not answer (FileNotFoundError)"]


def test_a_bus_that_is_silent_does_not_hold_readiness_for_long(stranger: Caller, settings):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        settings.REDIS_URL = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        reply = stranger.get("/readyz")
    assert reply.body["bus"]["ok"] is False


def test_metrics_are_prometheus_text(stranger: Caller, settings):
    settings.EMBEDDED = True
    stopped = {"sockets": 0, "processes": 0, "children": 0, "abandoned": [], "seconds": 0.1, "verified": True}
    run = make_run()
    command = Caller(secret=_operator()).post(f"/api/runs/{run.pk}/interrupt").body["command"]
    write(run, RunInterrupted(command=command, by="x", reason="", stopped=stopped))
    make_run()
    reply = stranger.get("/metrics")
    text = reply.body.decode()
    assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert 'pilothouse_runs{status="running"} 1\n' in text
    assert 'pilothouse_runs{status="interrupted"} 1\n' in text
    assert "pilothouse_stops_last_hour 1\n" in text
    assert 'pilothouse_stop_last_hour_seconds{quantile="0.5"}' in text


def _operator() -> str:
    from tests.control.api.callers import caller

    secret = caller("operator", "metrics").secret
    assert secret
    return secret


def test_metrics_in_production_need_a_role(stranger: Caller, viewer: Caller, settings):
    settings.EMBEDDED = False
    assert (stranger.get("/metrics").status, viewer.get("/metrics").status) == (401, 200)


def test_the_api_describes_every_route_with_its_body_and_answer(stranger: Caller):
    schema = stranger.get("/api/openapi.json").body
    assert schema["openapi"].startswith("3.")
    assert "/api/runs/{run_id}/interrupt" in schema["paths"]
    start = schema["paths"]["/api/runs"]["post"]
    assert "requestBody" in start and "201" in start["responses"]
    assert schema["components"]["securitySchemes"]


def test_the_page_of_the_api_takes_everything_from_here(stranger: Caller):
    reply = stranger.get("/api/docs")
    page = reply.body.decode()
    assert reply.status == 200
    assert "default-src 'none'" in reply.headers["Content-Security-Policy"]
    assert "unsafe" not in reply.headers["Content-Security-Policy"]
    assert not re.search(r'(src|href)="(https?:)?//', page)
    assert not re.search(r"<script(?![^>]*(src=|application/json))", page) and "style=" not in page
    for asset in re.findall(r'/static/([^"]+)"', page):
        assert finders.find(asset), asset
