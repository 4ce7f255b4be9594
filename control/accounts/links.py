"""One-time sign-in links: issued for a person, redeemed exactly once, for a short time."""

import secrets
from datetime import timedelta

from django.utils import timezone

from control.accounts.models import LoginLink, User, digest

LIVES = timedelta(minutes=15)
PREFIX = "/sign-in/"


def issue(user: User) -> str:
    """The path of a fresh link, `/sign-in/<token>/`; the token itself is kept nowhere."""
    secret = secrets.token_urlsafe(32)
    now = timezone.now()
    LoginLink.objects.create(user=user, digest=digest(secret), created_at=now, expires_at=now + LIVES)
    return f"{PREFIX}{secret}/"


def redeem(token: str) -> User | None:
    """The person the link was issued for, once; None if it is unknown, used, expired, or the person is inactive."""
    if not token or len(token) > 200 or not token.isascii():
        return None
    now = timezone.now()
    live = LoginLink.objects.filter(digest=digest(token), used_at__isnull=True, expires_at__gt=now)
    # The row count decides: of two that race, one updates the row and the other finds it used. No join in this
    # WHERE: a join becomes a subquery, which PostgreSQL does not look at again after it waited for the row.
    if not live.update(used_at=now):
        return None
    user = LoginLink.objects.select_related("user").get(digest=digest(token)).user
    return user if user.is_active else None
