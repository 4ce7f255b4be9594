"""Guessing of passwords is slowed: failed sign-ins are counted per account and per address, and then only one try per
wait is looked at. A one-time link signs in all the same, so nobody can lock somebody else out for good."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from control.accounts.models import Tries, digest

FIRST_WAIT = timedelta(seconds=30)
# After so long without a try everything is forgotten.
FORGOTTEN = timedelta(hours=1)
_LOST_RACES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """So many tries before the first wait, which doubles with each further one up to `longest`."""

    kind: str
    free: int
    longest: timedelta


ACCOUNT = Limit(kind="account", free=5, longest=timedelta(minutes=15))
# Many people may share an address: an office, or a proxy before this server.
ADDRESS = Limit(kind="address", free=30, longest=timedelta(minutes=2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A try that is not looked at, and the end of the wait."""

    kind: str
    until: datetime


def begin(name: str, address: str | None, now: datetime) -> Held | None:
    """Count a try before its password is looked at, so that of many at once no more pass than may. None: look at it,
    and call `passed` if it was right. The same for names that nobody has."""
    Tries.objects.filter(last_at__lt=now - timedelta(days=1)).delete()
    for limit, key in _keys(name, address):
        if (until := _count(key, limit, now)) is not None:
            return Held(kind=limit.kind, until=until)
    return None


def waits(name: str, address: str | None, now: datetime) -> Held | None:
    """The wait that the tries so far have brought."""
    for limit, key in _keys(name, address):
        row = Tries.objects.filter(pk=key, until__gt=now).first()
        if row is not None and row.until is not None:
            return Held(kind=limit.kind, until=row.until)
    return None


def passed(name: str, address: str | None) -> None:
    """The password was right: the account starts anew, the address is as before this try."""
    for limit, key in _keys(name, address):
        if limit is ACCOUNT:
            Tries.objects.filter(pk=key).delete()
        else:
            row = Tries.objects.filter(pk=key).first()
            if row is not None:
                Tries.objects.filter(pk=key).update(failures=max(0, row.failures - 1), until=None)


def _keys(name: str, address: str | None) -> list[tuple[Limit, str]]:
    # The address first: what it is not allowed to try costs the account nothing.
    keys = [(ADDRESS, f"address:{address[:64]}")] if address else []
    return [*keys, (ACCOUNT, f"account:{digest(name.strip().lower())}")]


def _count(key: str, limit: Limit, now: datetime) -> datetime | None:
    """None if this try may be looked at; else until when not."""
    for _ in range(_LOST_RACES):
        row, _made = Tries.objects.get_or_create(pk=key, defaults={"last_at": now})
        if row.until is not None and row.until > now:
            return row.until
        failures = 1 if row.last_at < now - FORGOTTEN else row.failures + 1
        until = now + _wait(failures, limit) if failures >= limit.free else None
        # Of several that saw the same row one counts; the others look again.
        seen = Tries.objects.filter(pk=key, failures=row.failures, last_at=row.last_at, until=row.until)
        if seen.update(failures=failures, last_at=now, until=until):
            return None
    return now + FIRST_WAIT


def _wait(failures: int, limit: Limit) -> timedelta:
    return min(limit.longest, FIRST_WAIT * (1 << min(failures - limit.free, 20)))
