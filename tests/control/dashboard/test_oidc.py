"""Signing in at a provider of OpenID Connect: who one is there decides who one is here, and groups decide the role."""

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from pytest_django.fixtures import Settings

from control.accounts import oidc_config
from control.accounts.models import AuditEntry, Role, User
from tests.control.dashboard.pages import page
from tests.oidc_provider import CLIENT, SECRET, Provider, provider

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]
ROLES = "sre=operator,sre-leads=admin"


def environment(issuer: str, **more: str) -> dict[str, str]:
    given = {"OIDC_CLIENT_ID": CLIENT, "OIDC_CLIENT_SECRET": SECRET, "OIDC_ROLES": ROLES, "OIDC_LABEL": "Harbour"}
    return {"OIDC_ISSUER": issuer, **given, **more}


@pytest.fixture
def harbour(settings: Settings) -> Iterator[Provider]:
    with provider(sub="4711", preferred_username="ann", groups=["sre", "everyone"]) as running:
        settings.OIDC = oidc_config.read(environment(running.issuer))
        settings.CONSOLE_URL = "http://testserver"
        yield running


def sign_in(client: Client, wanted: str = "") -> Any:
    """All the way round, as a browser goes; what the console says at the end."""
    there = client.get("/sign-in/oidc/", {"next": wanted} if wanted else {})
    assert there.status_code == 302, there.content
    back = httpx.get(there["Location"])
    assert back.status_code == 302
    return client.get(back.headers["Location"].removeprefix("http://testserver"))


def refused(client: Client, harbour: Provider, code: str, status: int) -> str:
    answer = sign_in(client)
    assert answer.status_code == status and client.get("/").status_code == 302
    assert AuditEntry.objects.latest("id").result == code
    return str(answer.content.decode())


def test_it_is_off_until_an_issuer_is_named(client: Client):
    assert client.get("/sign-in/oidc/").status_code == client.get("/sign-in/oidc/back/").status_code == 404
    assert "Sign in with" not in client.get("/sign-in/").content.decode().replace("Sign in with a password", "")
    assert oidc_config.read({}) is None


def test_whoever_comes_from_the_provider_is_signed_in_and_goes_where_they_wanted(client: Client, harbour: Provider):
    assert "Sign in with Harbour" in client.get("/sign-in/").content.decode()
    assert sign_in(client, "/inbox/")["Location"] == "/inbox/"
    user = User.objects.get()
    assert (user.username, user.role, user.oidc_subject) == ("ann", "operator", f"{harbour.issuer} 4711")
    assert not user.has_usable_password() and "ann" in page(client, "/account/")
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.target, entry.reason, entry.result) == ("sign_in", "user:ann", "oidc", "ok")
    assert sign_in(Client(), "https://evil.example/")["Location"] == "/"


def test_the_role_is_what_the_groups_say_at_each_sign_in(client: Client, harbour: Provider):
    for groups, role in ((["sre", "sre-leads"], "admin"), ("sre", "operator")):
        harbour.person["groups"] = groups
        assert sign_in(Client()).status_code == 302
        assert User.objects.get().role == role
    sign_in(client)
    harbour.person["groups"] = ["kitchen"]
    assert "None of your groups" in refused(Client(), harbour, "oidc_no_role", 403)
    assert client.get("/").status_code == 302, "what they had open is over too"


def test_groups_may_come_from_userinfo_alone(client: Client, harbour: Provider):
    harbour.in_userinfo = ("groups", "preferred_username")
    assert sign_in(client).status_code == 302
    assert User.objects.get().role == "operator" and "/userinfo" in harbour.seen


def test_a_person_is_known_by_subject_and_takes_over_nobody(client: Client, harbour: Provider):
    User.objects.create(username="ann", role=Role.ADMIN)
    assert "belongs to another account" in refused(client, harbour, "oidc_name_taken", 409)
    harbour.person["preferred_username"] = "a\u202ennie\x00\n"
    assert sign_in(client).status_code == 302
    assert User.objects.filter(username="annie").exists()
    harbour.person["preferred_username"] = "renamed"
    assert sign_in(Client()).status_code == 302
    assert User.objects.count() == 2


def test_who_is_switched_off_here_stays_out(client: Client, harbour: Provider):
    sign_in(Client())
    User.objects.update(is_active=False)
    assert "switched off" in refused(client, harbour, "oidc_inactive", 403)


@pytest.mark.parametrize(
    "claims",
    [{"aud": "another"}, {"iss": "https://evil.example"}, {"exp": 1, "iat": 0}, {"nonce": "another"}, {"sub": ""}],
    ids=["for another", "from another", "too old", "replayed", "nobody"],
)
def test_a_token_that_proves_nothing_opens_nothing(client: Client, harbour: Provider, claims: dict[str, Any]):
    harbour.claims = claims
    refused(client, harbour, "oidc_invalid", 400)
    assert not User.objects.exists()


def test_a_forged_signature_opens_nothing(client: Client, harbour: Provider):
    harbour.forge = True
    refused(client, harbour, "oidc_invalid", 400)


def test_an_answer_that_nobody_asked_for_opens_nothing(client: Client, harbour: Provider):
    there = Client().get("/sign-in/oidc/")
    stolen = httpx.get(there["Location"]).headers["Location"].removeprefix("http://testserver")
    assert client.get(stolen).status_code == 400, "the state is another browser's"
    denied = client.get("/sign-in/oidc/back/?error=<script>")
    assert denied.status_code == 403 and b"<script>." not in denied.content
    assert not User.objects.exists()


def test_a_provider_that_is_away_is_told_within_seconds(client: Client, settings: Settings):
    settings.OIDC = oidc_config.read(environment("http://127.0.0.1:9"))
    started = time.monotonic()
    answer = client.get("/sign-in/oidc/")
    assert answer.status_code == 502 and b"cannot be reached" in answer.content and time.monotonic() - started < 11


@pytest.mark.parametrize(
    "wrong",
    [
        {"OIDC_ISSUER": "http://id.example"},
        {"OIDC_CLIENT_SECRET": ""},
        {"OIDC_ROLES": ""},
        {"OIDC_ROLES": "sre=captain"},
        {"OIDC_SCOPES": "email"},
    ],
)
def test_settings_that_could_not_work_stop_the_start(wrong: dict[str, str]):
    with pytest.raises(ImproperlyConfigured):
        oidc_config.read({**environment("https://id.example"), **wrong})
