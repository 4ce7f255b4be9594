"""Signing in by password and by a link that works once; the theme."""

from collections.abc import Callable

import pytest
from django.test import Client

from control.accounts import links
from control.accounts.models import AuditEntry, Role, User
from tests.control.dashboard.pages import page
from tests.control.records import make_run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]


def test_pages_send_strangers_to_the_sign_in_form(client: Client):
    run = make_run()
    for path in ("/", f"/runs/{run.pk}/", "/runs/new/", f"/runs/{run.pk}/changes?after=0", "/live/fleet"):
        answer = client.get(path)
        assert answer.status_code == 302 and answer["Location"].startswith("/sign-in/?next=")


def test_a_password_signs_in_and_goes_where_one_wanted(client: Client, person: Callable[..., User]):
    person(Role.VIEWER, "ann")
    form = {"username": "ann", "password": "correct horse battery", "next": "/runs/new/"}
    assert client.post("/sign-in/", form)["Location"] == "/runs/new/"
    assert AuditEntry.objects.get().action == "sign_in"


def test_a_wrong_password_says_so_and_keeps_the_name(client: Client, person: Callable[..., User]):
    person(Role.VIEWER, "ann")
    answer = client.post("/sign-in/", {"username": "ann", "password": "wrong"})
    assert answer.status_code == 400
    assert 'value="ann"' in answer.content.decode() and "do not belong together" in answer.content.decode()


def test_sign_in_never_leads_to_another_site(client: Client, person: Callable[..., User]):
    person(Role.VIEWER, "ann")
    form = {"username": "ann", "password": "correct horse battery", "next": "https://evil.example/"}
    assert client.post("/sign-in/", form)["Location"] == "/"


def test_a_printed_link_signs_in_once(client: Client, person: Callable[..., User]):
    path = links.issue(person(Role.ADMIN, "root"))
    assert client.head(path).status_code == 200
    assert client.get(path)["Location"] == "/"
    assert client.get("/").status_code == 200
    other = Client()
    assert other.get(path).status_code == 410
    assert other.get("/").status_code == 302


def test_signing_out_takes_a_post(operator: Client):
    assert operator.get("/sign-out/").status_code == 405
    assert operator.post("/sign-out/")["Location"] == "/sign-in/"
    assert operator.get("/").status_code == 302


def test_the_theme_is_there_on_the_first_paint(operator: Client):
    assert 'data-theme="system"' in page(operator, "/")
    operator.post("/theme/", {"theme": "light"})
    assert 'data-theme="light"' in page(operator, "/")
    operator.post("/theme/", {"theme": '"><script>'})
    assert 'data-theme="light"' in page(operator, "/")
