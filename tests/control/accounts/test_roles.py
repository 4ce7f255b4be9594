"""Roles: each may do what the ones before it may, and no verb is open that nobody listed."""

import pytest

from control.accounts import roles
from control.accounts.models import Role, Token, User


@pytest.mark.parametrize("verb", sorted(roles.NEEDED))
def test_a_role_covers_a_verb_from_the_needed_one_upwards(verb):
    order = list(Role)
    for role in order:
        actor = roles.Actor(name="x", role=role)
        assert actor.may(verb) == (order.index(role) >= order.index(roles.NEEDED[verb]))


def test_nobody_may_do_what_is_not_listed():
    assert not roles.Actor(name="x", role=Role.ADMIN).may("fly")


def test_a_viewer_only_looks():
    viewer = roles.Actor(name="x", role=Role.VIEWER)
    assert [verb for verb in roles.NEEDED if viewer.may(verb)] == ["view"]


def test_a_superuser_is_an_admin_whatever_the_role_field_says():
    assert roles.of_user(User(username="root", is_superuser=True)).role is Role.ADMIN


def test_a_token_acts_under_its_own_name():
    actor = roles.of_token(Token(name="ci", role=Role.OPERATOR), "10.0.0.9")
    assert (actor.name, actor.role, actor.address) == ("token:ci", Role.OPERATOR, "10.0.0.9")
