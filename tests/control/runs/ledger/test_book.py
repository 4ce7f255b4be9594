"""Accounts in the database: nothing passes a limit, whoever asks at once, and nothing is settled twice."""

import threading
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection

from agents.ids import new_id
from agents.policy.accounts import NOTHING, Account, Amounts, Ceilings, Need, Short
from control.runs.ledger import book
from control.runs.ledger.book import Hold, Order
from control.runs.models import Reservation

pytestmark = pytest.mark.django_db(transaction=True)
OWN = "run:r"


def order(limit: Ceilings | None = None, *, tokens: int = 100, output: int = 900, **given: Any) -> Order:
    """One dollar per million, both ways."""
    need = Need(input_tokens=tokens, output_tokens=output, usd=tokens * 1000, usd_per_token=Decimal(1000))
    values: dict[str, Any] = {
        "id": new_id(),
        "run": "r",
        "epoch": 1,
        "worker": "w",
        "call": "c",
        "attempt": 1,
        "at": datetime.now(UTC),
        "need": need,
        "own": OWN,
        "accounts": {OWN: limit},
        "several": False,
    }
    return Order(**(values | given))


def held(asked: Order) -> Hold:
    got = book.reserve(asked)
    assert isinstance(got, Hold)
    return got


def state(key: str = OWN) -> Account:
    found = book.account(key)
    assert found is not None
    return found


def test_a_reservation_is_held_and_settled_with_what_it_came_to() -> None:
    got = held(order(Ceilings(usd=10_000_000)))
    assert state().held == got.amounts == Amounts(usd=1_000_000, tokens=1000, calls=1)
    assert book.settle(got.id, Amounts(usd=300_000, tokens=300, calls=1))
    assert (state().held, state().spent) == (NOTHING, Amounts(usd=300_000, tokens=300, calls=1))


def test_settled_twice_nothing_changes() -> None:
    got = held(order(Ceilings(tokens=5000)))
    assert book.settle(got.id, Amounts(tokens=7, calls=1))
    before = state()
    assert not book.settle(got.id, Amounts(tokens=900, calls=1))
    assert not book.settle(got.id, NOTHING, "log")
    assert state() == before
    assert Reservation.objects.get(pk=got.id).settled_by == "worker"


def test_the_same_order_again_holds_nothing_more() -> None:
    asked = order(Ceilings(tokens=5000))
    first = held(asked)
    again = held(asked)
    assert (again.id, again.output, again.amounts) == (first.id, first.output, first.amounts)
    assert state().held == first.amounts


def test_all_accounts_or_none() -> None:
    book.limit("fleet:d", Ceilings(usd=500_000))
    short = book.reserve(order(accounts={OWN: Ceilings(), "fleet:d": None}))
    assert isinstance(short, Short) and short.fuse == "fleet_max_cost_per_day"
    assert state().held == NOTHING and state("fleet:d").held == NOTHING
    assert not Reservation.objects.exists()


def test_a_limit_that_is_raised_lets_the_next_one_pass() -> None:
    held(order(Ceilings(tokens=1500)))
    short = book.reserve(order())
    assert isinstance(short, Short) and short.waits
    book.limit(OWN, Ceilings(tokens=3000))
    assert held(order()).output == 900


def test_an_account_begins_with_what_was_spent_before() -> None:
    asked = order(Ceilings(tokens=5000), opening=lambda key: Amounts(tokens=4500))
    assert isinstance(book.reserve(asked), Short)
    assert state().spent == Amounts(tokens=4500)


def test_what_is_held_ahead_shrinks_to_the_call_under_way() -> None:
    got = held(order(Ceilings(tokens=1_000_000, calls=900), several=True))
    assert got.amounts.calls == 16 and Reservation.objects.get().call is None
    keep, used = Amounts(usd=1_000_000, tokens=1000, calls=1), Amounts(usd=5000, tokens=5, calls=2)
    assert book.shrink(got.id, got.amounts, keep, used, "c2", 3)
    assert not book.shrink(got.id, got.amounts, keep, used, "c2", 3)
    assert (state().held, state().spent) == (keep, used)
    assert (Reservation.objects.get().call, Reservation.objects.get().attempt) == ("c2", 3)
    assert book.settle(got.id, NOTHING)
    assert (state().held, state().spent) == (NOTHING, used)


def test_a_reservation_is_closed_with_the_next_order() -> None:
    first = held(order(Ceilings(tokens=1500)))
    second = held(order(closing=(first.id, Amounts(tokens=100, calls=1))))
    assert (state().held, state().spent) == (second.amounts, Amounts(tokens=100, calls=1))


def test_of_many_at_once_only_what_fits_gets_through() -> None:
    book.limit(OWN, Ceilings(usd=5_500_000))
    book.limit("run:x", Ceilings())
    got: list[Hold | Short] = []
    start = threading.Barrier(12)

    def ask(number: int) -> None:
        keys = [OWN, "run:x"] if number % 2 else ["run:x", OWN]
        start.wait()
        try:
            got.append(book.reserve(order(accounts=dict.fromkeys(keys))))
        finally:
            connection.close()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 12 and sum(isinstance(one, Hold) for one in got) == 5
    assert state().held == Amounts(usd=5_000_000, tokens=5000, calls=5)
