"""Errors: always the one JSON object, whoever refuses, and never the insides."""

import pytest
from django.db import OperationalError
from django.test import Client

from control.accounts.models import User
from control.runs import rows
from tests.control.api.callers import UNKNOWN, Caller
from tests.control.records import make_run

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("body", [b"{", b"", b"nonsense", b"\xff\xfe", b'{"note": NaN}', b"[" * 100_000])
def test_a_body_that_is_no_json_is_told_so(operator: Caller, body: bytes):
    reply = operator.ask("POST", f"/api/runs/{make_run().pk}/steer", body)
    assert reply.status == 422
    assert reply.code in ("bad_json", "invalid")


@pytest.mark.parametrize("body", [[], "x", 5, None, True])
def test_a_body_that_is_no_object_is_told_so(operator: Caller, body: object):
    assert operator.post(f"/api/runs/{make_run().pk}/steer", body).status == 422


@pytest.mark.parametrize("note", [5, None, ["x"], {"x": 1}, True])
def test_a_field_of_the_wrong_type_is_named(operator: Caller, note: object):
    reply = operator.post(f"/api/runs/{make_run().pk}/steer", {"note": note})
    assert (reply.status, reply.code) == (422, "invalid")
    assert reply.body["error"]["detail"]["fields"][0]["field"] == "note"


def test_a_field_that_nobody_knows_is_named(operator: Caller):
    reply = operator.post(f"/api/runs/{make_run().pk}/steer", {"note": "x", "notte": "y"})
    assert reply.body["error"]["detail"]["fields"][0]["field"] == "notte"


def test_a_body_that_is_too_large_is_refused(operator: Caller):
    reply = operator.post(f"/api/runs/{make_run().pk}/steer", {"note": "x" * 3_000_000})
    assert (reply.status, reply.code) == (413, "body_too_large")


@pytest.mark.parametrize(
    "path", ["/api/", "/api/nonsense", "/api/runs/", f"/api/runs/{UNKNOWN}/nonsense", "/api/runs/x/y/z"]
)
def test_an_address_that_is_none_is_told_so(admin: Caller, path: str):
    reply = admin.get(path)
    assert (reply.status, reply.code) == (404, "not_found")


def test_a_wrong_host_is_refused_in_json():
    reply = Caller(client=Client(SERVER_NAME="evil.example")).get("/api/runs")
    assert (reply.status, reply.code) == (400, "bad_request")


def test_a_fault_of_ours_tells_nothing_of_the_insides(admin: Caller, monkeypatch: pytest.MonkeyPatch):
    def broken(run: object) -> None:
        raise RuntimeError("secret insides")

    monkeypatch.setattr(rows, "run_detail", broken)
    reply = admin.get(f"/api/runs/{make_run().pk}")
    assert (reply.status, reply.code) == (500, "internal")
    assert "insides" not in str(reply.body) and "Traceback" not in str(reply.body)


def test_a_database_that_is_away_is_told_as_such(admin: Caller, monkeypatch: pytest.MonkeyPatch):
    def away(run: object) -> None:
        raise OperationalError("no route to 10.0.0.5")

    monkeypatch.setattr(rows, "run_detail", away)
    reply = admin.get(f"/api/runs/{make_run().pk}")
    assert (reply.status, reply.code) == (503, "database_unavailable")
    assert "10.0.0.5" not in str(reply.body)


def signed_in(role: str, *, csrf: bool) -> Client:
    client = Client(enforce_csrf_checks=csrf)
    client.force_login(User.objects.create_user("ada", role=role))
    return client


def test_a_session_reads_without_a_csrf_token_and_does_not_act_without_one():
    run = make_run()
    ada = Caller(client=signed_in("operator", csrf=True))
    assert ada.get("/api/runs").status == 200
    reply = ada.post(f"/api/runs/{run.pk}/interrupt")
    assert (reply.status, reply.code) == (403, "csrf_failed")


def test_a_session_acts_with_its_csrf_token():
    run = make_run()
    client = signed_in("operator", csrf=True)
    client.cookies["csrftoken"] = "a" * 32
    assert Caller(client=client).post(f"/api/runs/{run.pk}/interrupt", x_csrftoken="a" * 32).status == 202


def test_a_csrf_token_from_a_foreign_origin_does_not_help():
    run = make_run()
    client = signed_in("operator", csrf=True)
    client.cookies["csrftoken"] = "a" * 32
    ada = Caller(client=client)
    reply = ada.post(f"/api/runs/{run.pk}/interrupt", x_csrftoken="a" * 32, origin="http://evil.example")
    assert (reply.status, reply.code) == (403, "csrf_failed")


def test_a_wrong_token_does_not_fall_back_to_the_session():
    client = signed_in("admin", csrf=False)
    reply = Caller(secret="ph_made_up", client=client).get("/api/runs")
    assert reply.status == 401


def test_a_person_who_was_put_out_is_no_longer_let_in():
    client = signed_in("admin", csrf=False)
    User.objects.update(is_active=False)
    assert Caller(client=client).get("/api/runs").status == 401
