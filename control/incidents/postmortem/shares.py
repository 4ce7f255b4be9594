"""Links by which somebody without an account reads one postmortem: each ends by itself, and can be ended before."""

import secrets
from datetime import datetime, timedelta

from django.db.models import F, Q

from agents.policy.redaction import make_safe
from control.accounts.models import digest
from control.incidents.models import ShareLink

# What is offered, in hours.
HOURS = {1: "1 hour", 24: "1 day", 168: "7 days", 720: "30 days"}
MOST = 50


class TooMany(Exception):
    """There are as many open links to this postmortem as there may be."""


def make(run: str, *, hours: int, note: str, by: str, now: datetime) -> tuple[ShareLink, str]:
    """The row and the secret of the link, which is shown once. Raises TooMany, and ValueError for other hours."""
    if hours not in HOURS:
        raise ValueError(f"A link lasts {', '.join(HOURS.values())}.")
    if ShareLink.objects.filter(run_id=run, revoked_at=None, expires_at__gt=now).count() >= MOST:
        raise TooMany
    secret = secrets.token_urlsafe(32)
    row = ShareLink.objects.create(
        run_id=run,
        digest=digest(secret),
        note=" ".join(make_safe(note).text.split())[:200],
        created_at=now,
        created_by=by,
        expires_at=now + timedelta(hours=hours),
    )
    return row, secret


def opened(secret: str, now: datetime) -> str | None:
    """The run that a good link leads to, counted; None for one that is unknown, over or revoked."""
    row = ShareLink.objects.filter(digest=digest(secret), revoked_at=None, expires_at__gt=now).first()
    if row is None:
        return None
    ShareLink.objects.filter(pk=row.pk).update(opened=F("opened") + 1, last_opened_at=now)
    return row.run_id


def revoke(run: str, link: str, *, by: str, now: datetime) -> bool:
    """False if it was over already, or is none of this run."""
    good = ShareLink.objects.filter(pk=link, run_id=run, revoked_at=None, expires_at__gt=now)
    return bool(good.update(revoked_at=now, revoked_by=by))


def listed(run: str, now: datetime) -> list[ShareLink]:
    """The open ones, and those that ended within the last 30 days."""
    recent = now - timedelta(days=30)
    rows = ShareLink.objects.filter(run_id=run).filter(Q(expires_at__gt=recent))
    return list(rows.order_by("-created_at")[:MOST])
