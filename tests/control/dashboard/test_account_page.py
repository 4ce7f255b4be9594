"""One's own account: sessions and tokens, each listed, each ended; nothing of anybody else's."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from control.accounts import roles, tokens
from control.accounts.models import AuditEntry, Role, SignIn, Token, User
from tests.control.dashboard.pages import page
from tests.control.dashboard.test_policy_pages import words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]
PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Mobile Safari/604.1"


def second(user: User, agent: str = PHONE) -> Client:
    client = Client(headers={"user-agent": agent})
    client.force_login(user)
    assert client.get("/").status_code == 200
    return client


def make(client: Client, **given: object) -> str:
    """The secret of a new token, as the page shows it once."""
    answer = client.post("/account/tokens/new", {"name": "ci", "role": "viewer", "term": "30", **given})
    html = answer.content.decode()
    assert answer.status_code == 201, words(html)
    assert answer["Cache-Control"].startswith("max-age=0")
    return html.split('aria-label="The token">')[1].split("<")[0]


def test_sessions_are_listed_and_one_is_ended(operator: Client):
    user = User.objects.get(username="operator")
    phone = second(user)
    page(operator, "/")
    text = words(page(operator, "/account/"))
    assert "Safari on iPhone" in text and "here" in text and "127.0.0.1" in text
    key = phone.session.session_key
    assert key not in page(operator, "/account/") and operator.session.session_key not in page(operator, "/account/")
    operator.post("/account/sessions/end", {"session": key})
    assert phone.get("/").status_code == 200
    operator.post("/account/sessions/end", {"session": SignIn.objects.get(pk=key).handle})
    assert phone.get("/").status_code == 302 and operator.get("/").status_code == 200
    assert list(AuditEntry.objects.order_by("id").values_list("result", flat=True)) == ["unknown_session", "ok"]
    assert "iPhone" not in page(operator, "/account/")


def test_nobody_ends_a_session_of_somebody_else(operator: Client, viewer: Client):
    page(viewer, "/")
    theirs = SignIn.objects.get(pk=viewer.session.session_key)
    operator.post("/account/sessions/end", {"session": theirs.handle})
    assert viewer.get("/").status_code == 200 and AuditEntry.objects.get().result == "unknown_session"


def test_signing_out_everywhere_ends_also_what_no_page_has_noted(operator: Client):
    user = User.objects.get(username="operator")
    phone, silent = second(user), Client()
    silent.force_login(user)
    assert operator.post("/account/sessions/end", {"all": "1"})["Location"] == "/sign-in/"
    for client in (operator, phone, silent):
        assert client.get("/").status_code == 302
    assert not SignIn.objects.filter(user=user).exists()
    assert (entry := AuditEntry.objects.get()).action == "sign_out_everywhere" and entry.actor == "operator"
    again = second(User.objects.get(username="operator"))
    assert again.get("/").status_code == 200


def test_a_session_that_expired_is_forgotten(operator: Client):
    user = User.objects.get(username="operator")
    second(user)
    SignIn.objects.update(seen_at=timezone.now() - timedelta(days=1))
    Session.objects.filter(pk__in=SignIn.objects.values("pk")).update(expire_date=timezone.now() - timedelta(days=1))
    assert "iPhone" not in page(operator, "/account/") and SignIn.objects.filter(user=user).count() <= 1


def test_a_token_is_shown_once_works_and_is_revoked(operator: Client):
    secret = make(operator, role="operator")
    bearer = {"Authorization": f"Bearer {secret}"}
    assert Client().get("/api/runs", headers=bearer).status_code == 200
    html = page(operator, "/account/")
    assert secret not in html and "ci" in words(html)
    operator.post("/account/tokens/revoke", {"token": Token.objects.get().pk})
    assert Client().get("/api/runs", headers=bearer).status_code == 401
    assert "revoked" in page(operator, "/account/")
    entries = list(AuditEntry.objects.order_by("id").values_list("action", "target", "result"))
    assert entries == [("create_token", "token:ci", "ok"), ("revoke_token", "token:ci", "ok")]
    assert secret not in str(list(AuditEntry.objects.values()))


def test_a_token_ends_at_its_time_and_with_its_owner(operator: Client):
    bearer = f"Bearer {make(operator)}"
    assert tokens.authenticate(bearer) is not None
    Token.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert tokens.authenticate(bearer) is None and "expired" in page(operator, "/account/")
    Token.objects.update(expires_at=None)
    assert tokens.authenticate(bearer) is not None
    User.objects.update(is_active=False)
    assert tokens.authenticate(bearer) is None


def test_a_token_never_may_more_than_its_owner_may_by_now(admin: Client):
    bearer = f"Bearer {make(admin, role='admin')}"
    User.objects.update(role=Role.VIEWER)
    token = tokens.authenticate(bearer)
    assert token is not None and not roles.of_token(token).may("interrupt") and roles.of_token(token).may("view")


def test_a_scope_narrows_a_role(operator: Client):
    secret = make(operator, role="operator", scope=["steer", "pause"])
    bearer = {"Authorization": f"Bearer {secret}"}
    assert Client().get("/api/runs", headers=bearer).status_code == 200
    steer = Client().post("/api/runs/x/steer", {"note": "x"}, content_type="application/json", headers=bearer)
    assert steer.status_code == 404
    stop = Client().post("/api/runs/x/interrupt", {}, content_type="application/json", headers=bearer)
    assert stop.status_code == 403 and "not made for interrupt" in stop.json()["error"]["message"]
    assert "only to look and pause, steer" in words(page(operator, "/account/"))


@pytest.mark.parametrize(
    "given",
    [
        {"name": ""}, {"name": "x" * 101}, {"role": "admin"}, {"term": "9999"}, {"scope": ["write_policy"]},
        {"scope": ["steer"]}, {"name": "taken"},
    ],
)  # fmt: skip
def test_what_cannot_be_a_token_is_refused_and_what_was_typed_stays(operator: Client, given: dict[str, object]):
    Token.issue("taken", Role.VIEWER, timezone.now())
    form = {"name": "mine <b>", "role": "viewer", "term": "7", **given}
    answer = operator.post("/account/tokens/new", form)
    html = answer.content.decode()
    assert answer.status_code == 400 and 'id="token-problem"' in html and "The token" not in html
    if form["name"] == "mine <b>":
        assert 'value="mine &lt;b&gt;"' in html
    assert Token.objects.count() == 1 and AuditEntry.objects.get().result == "bad_token"


def test_nobody_revokes_a_token_of_somebody_else(operator: Client, viewer: Client):
    make(viewer)
    for wanted in (Token.objects.get().pk, "x", "9" * 30):
        operator.post("/account/tokens/revoke", {"token": wanted})
    assert Token.objects.get().revoked_at is None
    assert set(AuditEntry.objects.filter(action="revoke_token").values_list("result", flat=True)) == {"unknown_token"}


def test_a_password_is_changed_by_who_knows_the_old_one(operator: Client, person: Callable[..., User]):
    phone = second(User.objects.get(username="operator"))
    new = "a much longer password"
    operator.post("/account/password", {"old": "wrong", "new": new})
    operator.post("/account/password", {"old": "correct horse battery", "new": "short"})
    user = User.objects.get(username="operator")
    assert user.check_password("correct horse battery") and phone.get("/").status_code == 200
    operator.post("/account/password", {"old": "correct horse battery", "new": new})
    assert User.objects.get(username="operator").check_password(new)
    assert operator.get("/").status_code == 200 and phone.get("/").status_code == 302
    assert list(AuditEntry.objects.order_by("id").values_list("result", flat=True)) == ["refused", "refused", "ok"]
