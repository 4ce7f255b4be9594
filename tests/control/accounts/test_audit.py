"""The audit trail: who did what to what, from where, with which result."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.test import RequestFactory

from control.accounts import audit
from control.accounts.models import Role, User
from control.accounts.roles import Actor

pytestmark = pytest.mark.django_db


def test_an_act_of_an_actor_is_written_down():
    actor = Actor(name="token:ci", role=Role.OPERATOR, address="10.0.0.9")
    audit.record(actor, "interrupt", "run:1", reason="too dear", after={"command": "c"}, result="ok")
    row = audit.AuditEntry.objects.get()
    assert (row.actor, row.role, row.action, row.target) == ("token:ci", "operator", "interrupt", "run:1")
    assert (row.reason, row.after, row.result, row.address) == ("too dear", {"command": "c"}, "ok", "10.0.0.9")


def test_an_act_of_a_signed_in_person_is_written_down():
    request = RequestFactory().post("/", REMOTE_ADDR="10.0.0.7")
    request.user = User.objects.create_user("ada", role=Role.ADMIN)
    audit.record(request, "lift", "block:1", result="ok")
    row = audit.AuditEntry.objects.get()
    assert (row.actor, row.role, row.address) == ("ada", "admin", "10.0.0.7")


def test_an_act_of_nobody_says_so():
    request = RequestFactory().post("/")
    request.user = AnonymousUser()
    audit.record(request, "sign_in", "user:ada", result="refused")
    assert audit.AuditEntry.objects.get().actor == "nobody"


def test_long_words_are_cut_to_their_columns():
    audit.record(Actor(name="x" * 400, role=Role.VIEWER), "a" * 200, "t" * 500, result="r" * 500)
    row = audit.AuditEntry.objects.get()
    assert (len(row.actor), len(row.action), len(row.target), len(row.result)) == (150, 60, 200, 100)


def test_what_no_database_holds_is_replaced():
    actor = Actor(name="x", role=Role.VIEWER)
    audit.record(actor, "steer", "run:a\x00b", reason="half \ud83d", result="not_found")
    row = audit.AuditEntry.objects.get()
    assert (row.target, row.reason) == ("run:a␀b", "half �")
