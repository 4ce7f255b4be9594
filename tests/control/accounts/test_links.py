"""One-time sign-in links: once, in time, and for people who may still come in."""

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from control.accounts import links
from control.accounts.models import LoginLink, User


def person(name: str = "ada") -> User:
    return User.objects.create_user(name)


def secret_of(path: str) -> str:
    assert path.startswith("/sign-in/") and path.endswith("/")
    return path.removeprefix("/sign-in/").rstrip("/")


@pytest.mark.django_db
def test_a_link_signs_its_person_in_once():
    ada = person()
    secret = secret_of(links.issue(ada))
    assert links.redeem(secret) == ada
    assert links.redeem(secret) is None


@pytest.mark.django_db
def test_a_late_link_is_refused():
    secret = secret_of(links.issue(person()))
    LoginLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert links.redeem(secret) is None


@pytest.mark.django_db
def test_a_link_of_someone_who_was_put_out_is_refused():
    ada = person()
    secret = secret_of(links.issue(ada))
    User.objects.filter(pk=ada.pk).update(is_active=False)
    assert links.redeem(secret) is None


@pytest.mark.django_db
@pytest.mark.parametrize("token", ["", "nonsense", "x" * 1000, "ü", "\x00"])
def test_anything_else_is_refused(token):
    links.issue(person())
    assert links.redeem(token) is None


@pytest.mark.django_db(transaction=True)
def test_of_many_who_race_for_a_link_one_gets_in():
    secret = secret_of(links.issue(person()))
    start = threading.Barrier(8)
    winners: list[User | None] = []

    def race() -> None:
        try:
            start.wait()
            winners.append(links.redeem(secret))
        finally:
            connection.close()

    racers = [threading.Thread(target=race) for _ in range(8)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert len(winners) == 8
    assert sum(winner is not None for winner in winners) == 1
