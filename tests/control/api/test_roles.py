"""Every route against every role: the table is made from the routes themselves, what is expected is written down."""

import re
from collections.abc import Iterator

import pytest
from ninja.operation import Operation

from control.accounts.models import AuditEntry, Role
from control.accounts.roles import NEEDED
from control.api.auth import Needs
from control.api.room import api
from tests.control.api.callers import UNKNOWN, Caller, caller
from tests.control.permissions import API as EXPECTED

ROLES = [role.value for role in Role]


def operations() -> Iterator[tuple[str, str, Operation]]:
    for prefix, router in api._routers:
        for path, view in router.path_operations.items():
            for operation in view.operations:
                for method in operation.methods:
                    yield method, f"{prefix}{path}", operation


ROUTES = sorted({(method, path) for method, path, _ in operations()})


def address(path: str) -> str:
    return "/api" + re.sub(r"\{(\w+)\}", lambda m: "default" if m[1] == "name" else UNKNOWN, path)


def test_every_route_is_in_the_table_and_nothing_else():
    assert set(ROUTES) == set(EXPECTED)


def test_every_route_asks_for_exactly_one_verb_of_the_expected_role():
    for method, path, operation in operations():
        (needs,) = operation.auth_callbacks
        assert isinstance(needs, Needs)
        assert NEEDED[needs.verb].value == EXPECTED[method, path], (method, path)


@pytest.mark.django_db
@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("role", ROLES)
def test_a_role_gets_in_where_it_may_and_is_told_where_not(method: str, path: str, role: str):
    reply = caller(role).ask(method, address(path))
    if ROLES.index(role) >= ROLES.index(EXPECTED[method, path]):
        assert reply.status not in (401, 403, 405, 500)
        return
    assert (reply.status, reply.code) == (403, "forbidden")
    assert reply.body["error"]["detail"]["needed"] == EXPECTED[method, path]
    refused = AuditEntry.objects.get()
    assert (refused.actor, refused.result) == (f"token:test {role}", "forbidden")


@pytest.mark.django_db
@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("secret", [None, "ph_made_up"])
def test_a_stranger_gets_401_everywhere(method: str, path: str, secret: str | None):
    reply = Caller(secret=secret).ask(method, address(path))
    assert (reply.status, reply.code) == (401, "unauthenticated")
    assert reply.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.django_db
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_method_that_a_route_does_not_take_gets_405_as_json(method: str, path: str):
    reply = caller("admin").ask("PATCH", address(path))
    assert (reply.status, reply.code) == (405, "method_not_allowed")
    assert method in reply.headers["Allow"]
