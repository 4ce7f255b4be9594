"""Guessing is slowed per account and per address, whether or not the name exists; links work all the same."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from control.accounts import links, throttle
from control.accounts.models import AuditEntry, Role, Tries, User
from tests.control.dashboard.conftest import person

__all__ = ["person"]
NOW = datetime(2026, 11, 3, 1, 14, tzinfo=UTC)
PASSWORD = "correct horse battery"


def attempt(client: Client, password: str, name: str = "ann"):
    return client.post("/sign-in/", {"username": name, "password": password})


@pytest.mark.django_db
def test_five_tries_are_free_and_then_each_wait_is_twice_as_long():
    for _ in range(5):
        assert throttle.begin("ann", None, NOW) is None
    held = throttle.begin("Ann ", None, NOW)
    assert held is not None and held.until == NOW + timedelta(seconds=30)
    later = held.until
    assert throttle.begin("ann", None, later) is None
    again = throttle.begin("ann", None, later)
    assert again is not None and again.until == later + timedelta(seconds=60)
    assert throttle.begin("ben", None, NOW) is None
    for _ in range(30):
        later = Tries.objects.get(failures__gt=1).until
        throttle.begin("ann", None, later)
    last = Tries.objects.get(failures__gt=1).until
    assert last - later == throttle.ACCOUNT.longest
    assert throttle.begin("ann", None, last + timedelta(hours=2)) is None
    assert Tries.objects.get(failures=1, last_at=last + timedelta(hours=2)).until is None


@pytest.mark.django_db
def test_an_address_that_tries_many_names_waits_too_and_costs_them_nothing():
    for number in range(throttle.ADDRESS.free):
        assert throttle.begin(f"name{number}", "10.0.0.7", NOW) is None
    held = throttle.begin("ann", "10.0.0.7", NOW)
    assert held is not None and held.kind == "address"
    assert throttle.begin("ann", "10.0.0.8", NOW) is None


@pytest.mark.django_db
def test_the_right_password_makes_a_clean_start():
    for _ in range(4):
        throttle.begin("ann", "10.0.0.7", NOW)
    throttle.passed("ann", "10.0.0.7")
    assert list(Tries.objects.values_list("key", "failures")) == [("address:10.0.0.7", 3)]


@pytest.mark.django_db(transaction=True)
def test_of_many_tries_at_once_no_more_are_looked_at_than_may():
    def one(_: int) -> bool:
        try:
            return throttle.begin("ann", None, NOW) is None
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        looked_at = sum(pool.map(one, range(40)))
    assert looked_at == throttle.ACCOUNT.free


@pytest.mark.django_db
def test_the_page_says_until_when_and_the_trail_keeps_it(client: Client, person: Callable[..., User]):
    ann = person(Role.VIEWER, "ann")
    for _ in range(4):
        assert attempt(client, "wrong").status_code == 400
    fifth = attempt(client, "wrong")
    assert fifth.status_code == 400 and "Too many failed tries for this name" in fifth.content.decode()
    held = attempt(client, PASSWORD)
    assert held.status_code == 429 and 0 < int(held["Retry-After"]) <= 30 and "data-until" in held.content.decode()
    results = list(AuditEntry.objects.order_by("id").values_list("target", "result", "actor"))
    assert results == [("user:ann", "bad_password", "nobody")] * 5 + [("user:ann", "throttled", "nobody")]
    assert client.get(links.issue(ann)).status_code == 302
    Tries.objects.update(until=timezone.now() - timedelta(seconds=1))
    assert attempt(Client(), PASSWORD).status_code == 302
    assert not Tries.objects.filter(key__startswith="account:").exists()


@pytest.mark.django_db
def test_a_name_that_nobody_has_is_held_the_same_and_kept_nowhere(client: Client):
    for _ in range(5):
        attempt(client, "x", "my-password-by-mistake")
    assert attempt(client, "x", "my-password-by-mistake").status_code == 429
    assert set(AuditEntry.objects.values_list("target", flat=True)) == {"user:(unknown)"}
