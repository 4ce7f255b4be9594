"""Every address and method against every role, made from the URL table itself: a page cannot be forgotten.

The API's own routes are gone through in `api/test_roles.py`, against the same table.
"""

from typing import Any

import pytest
from django.test import Client

from control.accounts.models import AuditEntry, Role, User
from control.dashboard.routing import sockets
from tests.control.conftest import hinted, published, quiet
from tests.control.permissions import API, PAGES, SOCKETS, addresses, every_route, readable
from tests.control.records import make_run

__all__ = ["hinted", "published", "quiet"]
ROLES = [role.value for role in Role]
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
UNKNOWN = "01890000-0000-7000-8000-000000000000"
# What stands for each part of a route.
PARTS = {
    "token": ["made-up"],
    "name": ["default"],
    "version": ["1"],
    "worker": [UNKNOWN],
    "label": ["nobody"],
    "form": ["csv", "jsonl"],
    "bulk_id": [UNKNOWN],
    "block_id": [UNKNOWN],
    "backtest_id": [UNKNOWN],
    "incident_id": [UNKNOWN],
    "route_id": [UNKNOWN],
    "call_id": ["c1"],
    "act": ["section", "state", "share"],
    "secret": ["made-up"],
    "seq": ["1"],
    "verb": ["interrupt", "steer", "pause", "unpause", "answer"],
}


EVERY = every_route()
OURS = sorted({f"api{path.replace('{', '<').replace('}', '>')}" for _, path in API})
CASES = [(route, method) for route in sorted(PAGES) for method in METHODS]


def asker(role: str | None) -> Client:
    client = Client(raise_request_exception=False)
    if role is not None:
        client.force_login(User.objects.create(username=f"{role}-{User.objects.count()}", role=role))
    return client


def turned_away(answer: Any) -> bool:
    return answer.status_code == 302 and answer["Location"].startswith("/sign-in/?next=")


def test_every_address_is_in_the_table_and_nothing_else():
    assert {*EVERY} - {*OURS, "api/"} == {*PAGES}
    assert {readable(str(route.pattern)) for route in sockets.routes} == {*SOCKETS}


@pytest.mark.django_db
@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(("route", "method"), CASES)
def test_each_role_gets_in_where_it_may_and_nowhere_else(route: str, method: str):
    needed = PAGES[route].get(method)
    run = make_run()
    for path in addresses(route, {**PARTS, "run_id": [run.pk]}):
        for role in (None, *ROLES):
            written = AuditEntry.objects.count()
            answer = asker(role).generic(method, path)
            status, who = answer.status_code, f"{role} {method} {path}: {answer.status_code}"
            if needed is None:
                assert status == 405 or turned_away(answer), who
            elif needed == "anyone":
                assert status not in (401, 403, 405, 500), who
            elif role is None:
                # A machine is told; a person is led to the sign-in.
                assert turned_away(answer) or status == 401, who
            elif ROLES.index(role) >= ROLES.index(needed):
                assert status not in (401, 403, 405, 500) and not turned_away(answer), who
            else:
                assert status == 403, who
                if method == "POST":
                    last = AuditEntry.objects.order_by("-id").first()
                    assert last is not None and last.result == "forbidden" and AuditEntry.objects.count() > written, who
