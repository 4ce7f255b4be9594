"""Bearer tokens: from an `Authorization` header to the token it names, or to nothing."""

from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from control.accounts.models import Token, digest

# `last_used_at` is for people who look for dead tokens; to the minute is enough, and it spares a write per request.
USED_EVERY = timedelta(minutes=1)
LONGEST = 200


def authenticate(authorization_header: str | None) -> Token | None:
    """The live token of `Bearer <secret>`; None for another scheme, an unknown secret, a token that was revoked or has
    expired, or one of a person who may not sign in any more."""
    if not authorization_header:
        return None
    scheme, _, secret = authorization_header.strip().partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not secret or len(secret) > LONGEST or not secret.isascii():
        return None
    now = timezone.now()
    token = Token.objects.select_related("user").filter(digest=digest(secret), revoked_at__isnull=True).first()
    if token is None or (token.expires_at is not None and token.expires_at <= now):
        return None
    if token.user is not None and not token.user.is_active:
        return None
    _mark_used(token, now)
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
