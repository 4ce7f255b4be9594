"""The page of workers: how each fares, who went silent, and handing over by hand."""

from datetime import datetime, timedelta

import pytest
from django.test import Client

from control.accounts.models import AuditEntry
from control.runs.clock import database_now
from control.runs.models import Run, Worker
from tests.control.dashboard.pages import page
from tests.control.dashboard.test_policy_pages import words
from tests.control.records import make_run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]


def worker(host: str = "north", *, seen_s: float = 1.0, gone: datetime | None = None, **more: object) -> Worker:
    now = database_now()
    given = {"pid": 41, "started_at": now - timedelta(hours=2), "seen_at": now - timedelta(seconds=seen_s), **more}
    return Worker.objects.create(host=host, gone_at=gone, **given)  # type: ignore[arg-type]


def row(html: str, one: Worker) -> str:
    return words(html[html.index(f'id="worker-{one.pk}"') :].split("</tr>")[0])


def test_each_worker_tells_host_version_load_and_runs(viewer: Client):
    one = worker(version="0.1.0", load=0.42, capacity=4)
    Run.objects.filter(pk=make_run().pk).update(worker=one.pk)
    text = row(page(viewer, "/workers/"), one)
    for word in ("Up", one.pk[-12:], "worker on north, process 41", "1 / 4", "42%", "0.1.0"):
        assert word in text, word
    assert "1 up , 1 of 4 runs held" in words(page(viewer, "/workers/"))


def test_silent_draining_lost_and_left_are_told_apart(viewer: Client):
    now = database_now()
    silent, draining, desk = worker(seen_s=47), worker(draining=True), worker(kind="desk", capacity=0)
    lost, left = worker(seen_s=90, gone=now), worker(seen_s=0, gone=now)
    html = page(viewer, "/workers/")
    for one, word in ((silent, "No contact"), (draining, "Draining"), (desk, "Up"), (lost, "Lost"), (left, "Left")):
        assert word in row(html, one)
    assert "0 up" in words(html) and "nothing can start" in html
    assert "handed on" in row(html, lost) and "handed on" not in row(html, left)


def test_a_worker_is_asked_to_drain_once(operator: Client):
    one = worker(runs=3)
    answer = operator.post(f"/workers/{one.pk}/drain", {"reason": "new kernel"}, follow=True)
    assert "Asked. It hands over 3 runs" in words(answer.content.decode())
    one.refresh_from_db()
    assert one.drain_asked_at is not None
    html = page(operator, "/workers/")
    assert "Draining" in row(html, one) and "It is draining already." in html and f'id="drain-{one.pk}"' not in html
    operator.post(f"/workers/{one.pk}/drain")
    entries = list(AuditEntry.objects.order_by("id").values_list("action", "target", "reason", "result"))
    assert entries[0] == ("drain", f"worker:{one.pk}", "new kernel", "ok") and entries[1][3] == "already_draining"


def test_a_worker_that_is_gone_cannot_be_drained(operator: Client):
    one = worker(gone=database_now())
    assert "gone" in operator.post(f"/workers/{one.pk}/drain", follow=True).content.decode()
    operator.post("/workers/nobody/drain")
    assert list(AuditEntry.objects.order_by("id").values_list("result", flat=True)) == ["gone", "not_found"]


def test_a_viewer_may_not_drain(viewer: Client):
    one = worker()
    assert viewer.post(f"/workers/{one.pk}/drain").status_code == 403
    one.refresh_from_db()
    assert one.drain_asked_at is None and AuditEntry.objects.get().result == "forbidden"


def test_workers_of_different_versions_are_pointed_out(viewer: Client):
    worker(version="0.1.0")
    worker(version="0.2.0")
    assert "They run different versions: 0.1.0, 0.2.0" in page(viewer, "/workers/")
