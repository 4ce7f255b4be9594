"""What one person does not want to be asked about for a while; everybody else still is."""

from collections.abc import Collection
from datetime import datetime, timedelta

from control.accounts.models import Snooze, User

# What the page offers, by the word that it sends.
TERMS = {"15m": timedelta(minutes=15), "1h": timedelta(hours=1), "8h": timedelta(hours=8)}


def put_off(user: User, call: str, term: str, now: datetime) -> datetime:
    """Until when. Raises KeyError for a term that is not offered."""
    until = now + TERMS[term]
    Snooze.objects.update_or_create(user=user, call=call, defaults={"until": until})
    # What has lapsed is of no use to anybody.
    Snooze.objects.filter(user=user, until__lt=now).delete()
    return until


def take_up(user: User, call: str) -> bool:
    """Ask again after all; False if it was not put off."""
    return bool(Snooze.objects.filter(user=user, call=call).delete()[0])


def of(user: User, calls: Collection[str], now: datetime) -> dict[str, datetime]:
    """Which of these calls are put off, and until when."""
    found = Snooze.objects.filter(user=user, call__in=list(calls), until__gt=now)
    return dict(found.values_list("call", "until"))
