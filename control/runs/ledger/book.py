"""The accounts in the database: holding, settling and limiting, each in one short transaction.

Accounts are locked in the order of their keys, so that two transactions never wait for each other. A reservation is
settled once: whoever comes later finds it settled and changes nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models import F, Q

from agents.policy.accounts import (
    DIMENSIONS,
    NOTHING,
    Account,
    Amounts,
    Ceilings,
    Gauge,
    Need,
    Short,
    ahead,
    fit,
    gauges,
    tight,
)
from control.runs.clock import database_now
from control.runs.models import Account as Row
from control.runs.models import Reservation


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A call that wants to be paid for. `accounts` are all that it touches, with the limits that they should have now
    (None: as they are); `opening` tells of one that is not there yet what it has spent already.

    `several`: where there is plenty, hold what some more calls like this one will take. `closing` is a reservation to
    settle in the same transaction, with what it came to.
    """

    id: str
    run: str
    epoch: int
    worker: str
    call: str
    attempt: int
    at: datetime
    need: Need
    own: str
    accounts: Mapping[str, Ceilings | None]
    opening: Callable[[str], Amounts] = lambda _: NOTHING
    several: bool = True
    closing: tuple[str, Amounts] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """What an order got: `output` tokens for its call, and `amounts` held for that and, maybe, some more."""

    id: str
    output: int
    amounts: Amounts
    tight: bool
    gauges: Mapping[str, Gauge]


def reserve(order: Order) -> Hold | Short:
    """Hold what the call needs on all its accounts, or nothing. May be repeated with the same id."""
    try:
        with transaction.atomic():
            return _reserve(order)
    except IntegrityError:
        row = Reservation.objects.filter(pk=order.id).first()
        if row is None:
            raise
        return _again(order, row)


def _reserve(order: Order) -> Hold | Short:
    closing = None if order.closing is None else _open(order.closing[0])
    rows = _locked({*order.accounts, *(closing.accounts if closing else ())})
    if closing is not None and order.closing is not None:
        _close(closing, order.closing[1], "worker", rows)
    if missing := [key for key in order.accounts if key not in rows]:
        _create(order, missing)
        rows = _locked(order.accounts)
    accounts = [_in_force(order, rows[key]) for key in order.accounts]
    output = fit(order.need, accounts, order.own)
    if isinstance(output, Short):
        return output
    times = ahead(order.need, accounts) if order.several and output == order.need.output_tokens else 1
    amounts = order.need.amounts(output) * times
    _hold(order.accounts, amounts)
    Reservation.objects.create(
        id=order.id,
        run_id=order.run,
        epoch=order.epoch,
        worker=order.worker,
        call=order.call if times == 1 else None,
        attempt=order.attempt if times == 1 else None,
        accounts=list(order.accounts),
        at=order.at,
        **_columns(amounts),
    )
    own = next((one for one in accounts if one.key == order.own), None)
    return Hold(
        id=order.id,
        output=output,
        amounts=amounts,
        tight=output < order.need.output_tokens or tight([one.hold(amounts) for one in accounts]),
        gauges=gauges(own),
    )


def settle(reservation: str, spent: Amounts, by: str = "worker") -> bool:
    """What was held is free again, what was spent is spent. False, and nothing changes, if that has happened."""
    with transaction.atomic():
        row = _open(reservation)
        if row is None:
            return False
        _close(row, spent, by, _locked(row.accounts))
        return True


def settle_many(spent: Mapping[str, Amounts]) -> None:
    """The same for many reservations of one worker, in one transaction; those that are settled are passed over.

    Reservations are locked before accounts and each in its order, as by everybody.
    """
    with transaction.atomic():
        found = Reservation.objects.select_for_update(no_key=True).filter(pk__in=list(spent), settled_at=None)
        rows = list(found.order_by("id"))
        changes: dict[str, tuple[Amounts, Amounts]] = {}
        for row in rows:
            for key in row.accounts:
                held, paid = changes.get(key, (NOTHING, NOTHING))
                changes[key] = held - _amounts(row), paid + spent[row.pk]
        keys = sorted(changes)
        if not keys:
            return
        _locked(keys)
        sums = ", ".join(f"{name}_{part} = {name}_{part} + %s" for part in ("held", "spent") for name in DIMENSIONS)
        paid_columns = ", ".join(f"{name}_spent = %s" for name in DIMENSIONS)
        now = connection.ops.adapt_datetimefield_value(database_now())
        with connection.cursor() as cursor:
            cursor.executemany(
                f"UPDATE runs_account SET {sums} WHERE key = %s",
                [(*_values(changes[key][0]), *_values(changes[key][1]), key) for key in keys],
            )
            cursor.executemany(
                f"UPDATE runs_reservation SET settled_at = %s, settled_by = 'worker', {paid_columns} WHERE id = %s",
                [(now, *_values(spent[row.pk]), row.pk) for row in rows],
            )


def shrink(reservation: str, before: Amounts, keep: Amounts, spent: Amounts, call: str, attempt: int) -> bool:
    """Give back what a reservation holds for calls to come; the rest stays for the call that is under way. False, and
    nothing changes, if it does not hold `before` any more."""
    with transaction.atomic():
        row = _open(reservation)
        if row is None or _amounts(row) != before:
            return False
        _locked(row.accounts)
        _add(row.accounts, held=keep - before, spent=spent)
        for name in DIMENSIONS:
            setattr(row, name, getattr(keep, name))
        row.call, row.attempt = call, attempt
        row.save(update_fields=[*DIMENSIONS, "call", "attempt"])
        return True


def limit(key: str, ceilings: Ceilings) -> None:
    """An account has these limits from now on; calls that wait for it see them."""
    changed = Row.objects.filter(pk=key).update(**_limits(ceilings))
    if not changed:
        Row.objects.bulk_create([Row(key=key, **_limits(ceilings))], ignore_conflicts=True)


def account(key: str) -> Account | None:
    """An account as it stands."""
    row = Row.objects.filter(pk=key).first()
    return None if row is None else _account(row)


def accounts(keys: Iterable[str]) -> list[Account]:
    return [_account(row) for row in Row.objects.filter(pk__in=list(keys)).order_by("key")]


# --- rows ----------------------------------------------------------------------------------------------------------


def _locked(keys: Iterable[str]) -> dict[str, Row]:
    rows = Row.objects.select_for_update(no_key=True).filter(pk__in=list(keys)).order_by("key")
    return {row.key: row for row in rows}


def _open(reservation: str) -> Reservation | None:
    return Reservation.objects.select_for_update(no_key=True).filter(pk=reservation, settled_at=None).first()


def _create(order: Order, keys: Sequence[str]) -> None:
    """Another worker may do the same at the same time; one of them is heard."""
    rows = []
    for key in keys:
        opening = order.opening(key)
        spent = {f"{name}_spent": getattr(opening, name) for name in DIMENSIONS}
        rows.append(Row(key=key, **_limits(order.accounts[key] or Ceilings()), **spent))
    Row.objects.bulk_create(rows, ignore_conflicts=True)


def _in_force(order: Order, row: Row) -> Account:
    """The account with today's limits and, if it is the run's own, what its last word would take by now."""
    was = _account(row)
    now = replace(was, limit=order.accounts[row.key] or was.limit)
    if row.key == order.own:
        now = replace(now, spare=NOTHING if order.need.last_word else order.need.spare)
    if now != was:
        spare = {f"{name}_spare": getattr(now.spare, name) for name in DIMENSIONS}
        Row.objects.filter(pk=row.key).update(**_limits(now.limit), **spare)
    return now


def _hold(keys: Iterable[str], amounts: Amounts) -> None:
    wanted = list(keys)
    fits = Q()
    for name in DIMENSIONS:
        free = Q(**{f"{name}_limit__gte": F(f"{name}_spent") + F(f"{name}_held") + getattr(amounts, name)})
        fits &= Q(**{f"{name}_limit": None}) | free
    changes: dict[str, Any] = {f"{name}_held": F(f"{name}_held") + getattr(amounts, name) for name in DIMENSIONS}
    if Row.objects.filter(fits, pk__in=wanted).update(**changes) != len(wanted):
        raise RuntimeError(f"{wanted} have no room for {amounts}, although they were found to have it")


def _close(row: Reservation, spent: Amounts, by: str, locked: Mapping[str, Row]) -> None:
    held = _amounts(row)
    _add(row.accounts, held=NOTHING - held, spent=spent)
    for key in row.accounts:
        if key in locked:
            for name in DIMENSIONS:
                _bump(locked[key], f"{name}_held", -getattr(held, name))
                _bump(locked[key], f"{name}_spent", getattr(spent, name))
    Reservation.objects.filter(pk=row.pk).update(
        settled_at=database_now(),
        settled_by=by,
        **{f"{name}_spent": getattr(spent, name) for name in DIMENSIONS},
    )


def _bump(row: Row, column: str, by: int) -> None:
    setattr(row, column, getattr(row, column) + by)


def _add(keys: Iterable[str], *, held: Amounts, spent: Amounts) -> None:
    changes: dict[str, Any] = {}
    for name in DIMENSIONS:
        changes[f"{name}_held"] = F(f"{name}_held") + getattr(held, name)
        changes[f"{name}_spent"] = F(f"{name}_spent") + getattr(spent, name)
    Row.objects.filter(pk__in=list(keys)).update(**changes)


def _again(order: Order, row: Reservation) -> Hold:
    """The answer to an order whose first answer was lost with its connection."""
    amounts = _amounts(row)
    output = order.need.output_tokens if row.call is None else amounts.tokens - order.need.input_tokens
    return Hold(id=row.pk, output=output, amounts=amounts, tight=True, gauges=gauges(account(order.own)))


def _account(row: Row) -> Account:
    return Account(
        key=row.key,
        limit=Ceilings(usd=row.usd_limit, tokens=row.tokens_limit, calls=row.calls_limit),
        spent=Amounts(usd=row.usd_spent, tokens=row.tokens_spent, calls=row.calls_spent),
        held=Amounts(usd=row.usd_held, tokens=row.tokens_held, calls=row.calls_held),
        spare=Amounts(usd=row.usd_spare, tokens=row.tokens_spare, calls=row.calls_spare),
    )


def _amounts(row: Reservation) -> Amounts:
    return Amounts(usd=row.usd, tokens=row.tokens, calls=row.calls)


def _values(amounts: Amounts) -> tuple[int, ...]:
    return tuple(getattr(amounts, name) for name in DIMENSIONS)


def _columns(amounts: Amounts) -> dict[str, int]:
    return {name: getattr(amounts, name) for name in DIMENSIONS}


def _limits(ceilings: Ceilings) -> dict[str, int | None]:
    return {f"{name}_limit": getattr(ceilings, name) for name in DIMENSIONS}
