"""Bearer tokens: which header is let in, and when its use is written down."""

from datetime import timedelta

import pytest
from django.utils import timezone

from control.accounts import tokens
from control.accounts.models import Role, Token

pytestmark = pytest.mark.django_db


def issue(name: str = "ci") -> tuple[Token, str]:
    return Token.issue(name, Role.OPERATOR, timezone.now())


def test_the_right_secret_names_its_token():
    token, secret = issue()
    assert tokens.authenticate(f"Bearer {secret}") == token
    assert tokens.authenticate(f"bearer   {secret} ") == token


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Bearer ph_wrong", "Basic ph_wrong", "Bearer " + "x" * 5000, "Bearer ü"]
)
def test_any_other_header_names_none(header):
    issue()
    assert tokens.authenticate(header) is None


def test_the_secret_under_another_scheme_is_refused():
    _, secret = issue()
    assert tokens.authenticate(f"Basic {secret}") is None
    assert tokens.authenticate(secret) is None


def test_a_revoked_token_is_refused():
    token, secret = issue()
    assert tokens.revoke(token)
    assert tokens.authenticate(f"Bearer {secret}") is None
    assert not tokens.revoke(token)


def test_the_secret_itself_is_kept_nowhere():
    token, secret = issue()
    token.refresh_from_db()
    assert secret not in repr(vars(token))


def test_use_is_written_down_at_most_once_a_minute(django_assert_num_queries):
    token, secret = issue()
    tokens.authenticate(f"Bearer {secret}")
    token.refresh_from_db()
    first = token.last_used_at
    assert first is not None
    with django_assert_num_queries(1):
        tokens.authenticate(f"Bearer {secret}")
    Token.objects.filter(pk=token.pk).update(last_used_at=first - timedelta(minutes=2))
    tokens.authenticate(f"Bearer {secret}")
    token.refresh_from_db()
    assert token.last_used_at is not None and token.last_used_at >= first
