"""The credential pool in the database: how each key fares, known to all workers, changed by conditional updates only.

No lock and no transaction: whoever finds that a row has changed since it was read looks again.
"""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_UP, Decimal
from typing import Any

from django.db.models import Case, F, Q, When
from django.db.models.functions import Now

from agents.policy import credentials as judge
from agents.policy.credentials import Health, KeyState, Report, Rest
from control.fleet.credentials import Credential
from control.fleet.models import SAID, CredentialState

NANO = Decimal(10) ** 9
# What one attempt may cost at most in the sum; a provider that reports more is not believed.
DEAREST = Decimal(100_000)
# Lost races before a key is taken without its turn being counted exactly; each loss means that another worker got on.
TRIES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A key's state as it was at one version of its row; `total_usd` is all that was ever spent with it."""

    state: KeyState
    version: int
    total_usd: Decimal


def seen(credentials: Sequence[Credential]) -> tuple[dict[str, Seen], datetime]:
    """The states of these credentials and the database's time. A credential that nobody has used yet gets its row."""
    labels = [credential.label for credential in credentials]
    rows = _rows(labels)
    if missing := [label for label in labels if label not in rows]:
        CredentialState.objects.bulk_create([CredentialState(label=label) for label in missing], ignore_conflicts=True)
        rows = _rows(labels)
    now: datetime = next(iter(rows.values())).now  # type: ignore[attr-defined]
    return {one.label: _seen(rows[one.label], one, now) for one in credentials}, now


def take(credentials: Sequence[Credential], avoid: Set[str], prefer: Iterable[str], jitter: float) -> str | Rest:
    """The label of a key that may be used now. One of `prefer` is kept as long as it may; else the key whose turn it
    is. Of several workers that ask at once each gets the next one."""
    for _ in range(TRIES):
        found, now = seen(credentials)
        for label in prefer:
            if label in found and label not in avoid and judge.rest_of(found[label].state, now) is None:
                return label
        chosen = judge.choose([one.state for one in found.values()], now, avoid, jitter)
        if isinstance(chosen, Rest):
            return chosen
        unchanged = CredentialState.objects.filter(label=chosen, version=found[chosen].version)
        if unchanged.update(last_used=_later(found.values(), now), version=F("version") + 1):
            return chosen
    return chosen


def report(label: str, credential: Credential | None, told: Report, spent_usd: Decimal) -> None:
    """What an attempt did to its key. `credential` is None when the file knows the label no more."""
    known = credential or Credential(label=label, provider="", base_urls=())
    found, now = seen([known])
    if spent_usd > 0:
        _spend(known, spent_usd, now)
    while (better := judge.after(found[label].state, told, now)) != found[label].state:
        if _change(found[label], better):
            return
        found, now = seen([known])


def revive(credential: Credential) -> tuple[KeyState, KeyState]:
    """An operator says that the key is good again; the state before and after. What it has spent stays spent."""
    while True:
        found, _ = seen([credential])
        before = found[credential.label]
        after = judge.revived(before.state)
        if after == before.state or _change(before, after):
            return before.state, after


def lay_aside(credential: Credential, seconds: float) -> tuple[KeyState, KeyState]:
    """An operator lets a key rest for so long, whatever its health; the state before and after."""
    while True:
        found, now = seen([credential])
        before = found[credential.label]
        after = judge.laid_aside(before.state, now + timedelta(seconds=seconds))
        if after == before.state or _change(before, after):
            return before.state, after


def _later(found: Iterable[Seen], now: datetime) -> datetime:
    """Now, or a little later, so that turns stay in order where the database's clock ticks in milliseconds."""
    last = (one.state.last_used for one in found if one.state.last_used is not None)
    return max([now, *(used + timedelta(microseconds=1) for used in last)])


def _rows(labels: Sequence[str]) -> dict[str, CredentialState]:
    return {row.label: row for row in CredentialState.objects.filter(label__in=labels).annotate(now=Now())}


def _seen(row: CredentialState, credential: Credential, now: datetime) -> Seen:
    spent, ends = row.spent_nano, None
    if credential.per is not None:
        start, ends = judge.period(credential.per, now)
        spent = row.period_nano if row.period_start is not None and row.period_start >= start else 0
    state = KeyState(
        label=row.label,
        health=Health(row.health),
        reason=row.reason,
        cooldown_until=row.cooldown_until,
        failures=row.failures,
        spent_usd=Decimal(spent) / NANO,
        limit_usd=credential.limit_usd,
        period_ends=ends,
        last_used=row.last_used,
        said=row.said,
    )
    return Seen(state=state, version=row.version, total_usd=Decimal(row.spent_nano) / NANO)


def _change(before: Seen, after: KeyState) -> int:
    """Write a judgement unless the row has changed since the state it was made from was read."""
    return CredentialState.objects.filter(label=after.label, version=before.version).update(
        version=F("version") + 1,
        health=after.health.value,
        reason=after.reason[:40] if after.reason else None,
        cooldown_until=after.cooldown_until,
        failures=after.failures,
        said=after.said[:SAID],
        changed_at=Now(),
    )


def _spend(credential: Credential, usd: Decimal, now: datetime) -> None:
    """Add in one statement, which no other can come between. A report from before the period's turn, or from a worker
    whose file still says another period, adds to the later one and never brings an earlier one back."""
    nano = int((min(usd, DEAREST) * NANO).to_integral_value(ROUND_UP))
    changes: dict[str, Any] = {"spent_nano": F("spent_nano") + nano}
    if credential.per is not None:
        start, _ = judge.period(credential.per, now)
        running = Q(period_start__gte=start)
        changes["period_nano"] = Case(When(running, then=F("period_nano") + nano), default=nano)
        changes["period_start"] = Case(When(running, then=F("period_start")), default=start)
    CredentialState.objects.filter(label=credential.label).update(**changes)
