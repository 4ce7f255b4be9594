"""Idempotency keys: the same request gets the same answer and does nothing more."""

import threading

import pytest
from django.db import connection

from control.accounts.models import AuditEntry
from control.runs.models import Command, IdempotencyKey
from tests.control.api.callers import UNKNOWN, Caller, caller
from tests.control.records import make_run


@pytest.mark.django_db
def test_a_repeat_gets_the_same_answer_and_does_nothing(operator: Caller):
    path = f"/api/runs/{make_run().pk}/steer"
    first = operator.post(path, {"note": "look left"}, idempotency_key="k1")
    second = operator.post(path, {"note": "look left"}, idempotency_key="k1")
    assert (second.status, second.body) == (first.status, first.body)
    assert "Idempotency-Replayed" not in first.headers
    assert second.headers["Idempotency-Replayed"] == "true"
    assert Command.objects.count() == 1
    assert AuditEntry.objects.count() == 1


@pytest.mark.django_db
def test_without_a_key_each_note_counts(operator: Caller):
    path = f"/api/runs/{make_run().pk}/steer"
    for _ in range(2):
        operator.post(path, {"note": "look left"})
    assert Command.objects.count() == 2


@pytest.mark.django_db
def test_the_same_key_with_another_body_is_a_conflict(operator: Caller):
    path = f"/api/runs/{make_run().pk}/steer"
    operator.post(path, {"note": "look left"}, idempotency_key="k1")
    reply = operator.post(path, {"note": "look right"}, idempotency_key="k1")
    assert (reply.status, reply.code) == (409, "idempotency_conflict")
    assert Command.objects.count() == 1


@pytest.mark.django_db
def test_keys_of_two_callers_and_of_two_routes_do_not_meet(operator: Caller):
    run = make_run()
    body = {"note": "look left"}
    for who in (operator, caller("operator", "another")):
        assert who.post(f"/api/runs/{run.pk}/steer", body, idempotency_key="k1").status == 202
    assert operator.post(f"/api/runs/{make_run().pk}/steer", body, idempotency_key="k1").status == 202
    assert Command.objects.count() == 3


@pytest.mark.django_db
def test_a_refused_request_may_be_sent_again_with_its_key(operator: Caller):
    reply = operator.post(f"/api/runs/{UNKNOWN}/steer", {"note": "x"}, idempotency_key="k1")
    assert reply.status == 404
    assert not IdempotencyKey.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["", "x" * 201])
def test_a_key_that_is_none_is_refused(operator: Caller, key: str):
    reply = operator.post(f"/api/runs/{make_run().pk}/interrupt", idempotency_key=key)
    assert (reply.status, reply.code) == (400, "bad_idempotency_key")
    assert not Command.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_duplicates_that_come_together_one_acts_and_all_get_its_answer(operator: Caller):
    path = f"/api/runs/{make_run().pk}/steer"
    start = threading.Barrier(6)
    replies = []

    def send() -> None:
        try:
            start.wait()
            replies.append(operator.post(path, {"note": "look left"}, idempotency_key="k1"))
        finally:
            connection.close()

    senders = [threading.Thread(target=send) for _ in range(6)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    answered = [reply for reply in replies if reply.status == 202]
    assert len(replies) == 6 and all(reply.status in (202, 409) for reply in replies)
    assert len({reply.body["command"] for reply in answered}) == 1
    assert Command.objects.count() == 1
