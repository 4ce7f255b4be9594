"""Bearer tokens: from an `Authorization` header to the token it names, or to nothing."""

from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from control.accounts.models import Token, digest

# `last_used_at` is for people who look for dead tokens; to the minute is enough, and it spares a write per request.
USED_EVERY = timedelta(minutes=1)
LONGEST = 200


def authenticate(authorization_header: str | None) -> Token | None:
    """The live token of `Bearer <secret>`; None for another scheme, an unknown secret or a revoked token."""
    if not authorization_header:
        return None
    scheme, _, secret = authorization_header.strip().partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not secret or len(secret) > LONGEST or not secret.isascii():
        return None
    token = Token.objects.filter(digest=digest(secret), revoked_at__isnull=True).first()
    if token is not None:
        _mark_used(token, timezone.now())
    return token


def _mark_used(token: Token, now: datetime) -> None:
    before = now - USED_EVERY
    if token.last_used_at is not None and token.last_used_at > before:
        return
    stale = Q(last_used_at__isnull=True) | Q(last_used_at__lte=before)
    # Conditional, so that of many requests in the same moment one writes.
    if Token.objects.filter(stale, pk=token.pk).update(last_used_at=now):
        token.last_used_at = now


def revoke(token: Token) -> bool:
    """End a token; False if it had ended already."""
    return bool(Token.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=timezone.now()))
