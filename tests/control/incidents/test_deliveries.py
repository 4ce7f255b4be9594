"""Notices go out: once, grouped, retried with patience, dropped when they are stale, and resolved at the end."""

from datetime import UTC, datetime, time, timedelta
from time import sleep
from typing import Any

import pytest

from control.incidents import cases, deliveries, notices, sealing
from control.incidents.cases import Case
from control.incidents.deliveries import Sender
from control.incidents.models import AlertRoute, Delivery, Incident
from control.runs.clock import database_now
from tests.control.incidents.conftest import Post, route, states
from tests.control.incidents.receivers import Answer, Receiver, receiver

pytestmark = pytest.mark.django_db


def opened(name: str = "1", rule: str = "tripped", **more: Any) -> Incident:
    now = database_now()
    return cases.open_(Case(key=f"run:{name}:{rule}", rule=rule, title=f"number {name}", at=now, **more), now)


def test_one_incident_is_told_once_and_its_end_once(service: Receiver, post: Post) -> None:
    route(service.url)
    incident = opened()
    for _ in range(3):
        opened()
        post.send()
    assert cases.acknowledge(incident, "ann", database_now()) and not cases.acknowledge(incident, "bo", database_now())
    post.send()
    incident.refresh_from_db()
    assert cases.resolve(incident, database_now(), by="ann", text="mended")
    assert not cases.resolve(incident, database_now(), by="bo")
    post.send()
    sent = [(got.json["type"], got.json["object"]["key"]) for got in service.got]
    assert sent == [(f"incident.{word}", "run:1:tripped") for word in ("opened", "acknowledged", "resolved")]
    assert states() == [(action, "delivered", 200) for action in ("trigger", "acknowledge", "resolve")]
    assert len({got.json["id"] for got in service.got}) == 3


def test_what_fails_is_tried_again_as_the_same_message_and_logged(service: Receiver, post: Post) -> None:
    service.answers = [Answer(status=500), Answer(status=429, headers={"Retry-After": "40"}), Answer(status=204)]
    made = route(service.url)
    opened()
    post.send()
    assert states() == [("trigger", "due", 500)]
    post.send(ahead_s=3)
    assert states() == [("trigger", "due", 429)]
    # All of the route rests as long as the service asks.
    opened("2")
    post.send(ahead_s=20)
    assert len(service.got) == 2
    post.send(ahead_s=25)
    assert len(service.got) == 4
    assert len({got.json["id"] for got in service.got[:3]}) == 1
    first = Delivery.objects.order_by("id").first()
    assert first is not None and first.route == made and first.state == "delivered"
    assert [one["code"] for one in first.tries] == [500, 429, 204]


def test_a_refusal_is_final_and_the_second_channel_does_not_wait(service: Receiver, post: Post) -> None:
    with receiver() as second:
        service.answers = [Answer(status=404, body=b"no_service at " + service.url.encode())]
        route(service.url)
        route(second.url, after_minutes=30)
        incident = opened()
        post.send()
        post.send()
        assert [got.json["object"]["id"] for got in second.got] == [incident.pk]
    failed = Delivery.objects.get(state="failed")
    # What a service says is kept, a secret in it is not.
    assert failed.code == 404 and failed.why == f"no_service at {sealing.HIDDEN}"
    assert {note.kind for note in incident.notes.all()} == {"opened", "undelivered", "escalated"}


def test_a_desk_that_died_in_the_middle_is_followed_by_another_with_the_same_message(
    service: Receiver, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    route(service.url)
    opened()
    dead = Sender()
    monkeypatch.setattr(dead, "_apply", lambda *_: None)
    dead.turn()
    dead.wait(20)
    post.send()
    assert states() == [("trigger", "sending", None)]
    post.send(ahead_s=61)
    assert states() == [("trigger", "delivered", 200)]
    assert len({got.headers["webhook-id"] for got in service.got}) == 1


def test_others_wait_for_company_and_critical_ones_for_nobody(service: Receiver, post: Post) -> None:
    route(service.url, "slack", group_seconds=30)
    for name in ("1", "2", "3"):
        opened(name)
    post.send()
    assert not service.got
    opened("4", "unverified")
    post.send()
    assert len(service.got) == 1 and "number 4" in service.got[0].json["text"]
    post.send(ahead_s=31)
    assert len(service.got) == 2 and "3 incidents" in service.got[1].json["text"]
    together = Delivery.objects.exclude(incident__rule="unverified")
    assert together.count() == 3 and together.values("message").distinct().count() == 1


def test_what_is_over_or_taken_before_it_was_sent_is_not_sent(service: Receiver, post: Post) -> None:
    route(service.url, group_seconds=30)
    over, taken, put_off = opened("1"), opened("2"), opened("3")
    now = database_now()
    cases.resolve(over, now, by="ann")
    cases.acknowledge(taken, "ann", now)
    cases.snooze(put_off, "2h", "ann", now)
    post.send(ahead_s=40)
    assert not service.got
    assert {state for _, state, _ in states()} == {"dropped"} and len(states()) == 3


def test_routes_choose_by_severity_rule_and_agent(service: Receiver) -> None:
    grave = route(service.url, least="critical")
    rules = route(service.url, rules=["lost", "tripped"])
    agent = route(service.url, agents=["importer"])
    off = route(service.url, enabled=False)
    found = {
        name: {one.pk for one in notices.routes_of(incident)}
        for name, incident in {
            "tripped": opened("1", agent="importer"),
            "unverified": opened("2", "unverified", agent="other"),
            "fleet": opened("3", "spend"),
        }.items()
    }
    assert found == {"tripped": {rules.pk, agent.pk}, "unverified": {grave.pk}, "fleet": {grave.pk}}
    assert not off.deliveries.exists()


def test_nobody_acknowledges_so_the_second_channel_hears_and_the_first_again(service: Receiver, post: Post) -> None:
    with receiver() as second:
        route(service.url)
        route(second.url, after_minutes=10)
        incident = opened()
        post.send()
        now = database_now()
        assert notices.remind(now) == 0
        later = now + timedelta(minutes=11)
        Incident.objects.update(remind_at=later)
        assert notices.remind(later) == 1
        post.send(ahead_s=700)
        assert len(second.got) == 1 and len(service.got) == 1
        at_four = now + timedelta(hours=4, minutes=1)
        Incident.objects.update(remind_at=at_four)
        assert notices.remind(at_four) == 1
        # Acknowledged, nobody is told again; both are told of the end.
        post.send(ahead_s=4 * 3600)
        incident.refresh_from_db()
        cases.acknowledge(incident, "ann", at_four)
        Incident.objects.update(remind_at=at_four)
        assert notices.remind(at_four + timedelta(hours=9)) == 0
        cases.resolve(incident, at_four)
        post.send(ahead_s=60)
        assert [got.json["type"] for got in service.got] == [
            *("incident.opened", "incident.reminded", "incident.acknowledged", "incident.resolved")
        ]
        assert second.got[-1].json["type"] == "incident.resolved"


def test_a_snooze_is_silent_and_speaks_when_it_is_over(service: Receiver, post: Post) -> None:
    route(service.url)
    incident = opened()
    post.send()
    now = database_now()
    until = cases.snooze(incident, "2h", "ann", now)
    Incident.objects.update(remind_at=now)
    assert notices.remind(now + timedelta(hours=1)) == 0
    Incident.objects.update(remind_at=until)
    assert notices.remind(until + timedelta(seconds=1)) == 1
    # Once; and what is reopened after reminders is told as new.
    Incident.objects.update(remind_at=until)
    assert notices.remind(until + timedelta(minutes=1)) == 0
    incident.refresh_from_db()
    cases.resolve(incident, until)
    cases.reopen(incident, "ann", until + timedelta(minutes=2))
    post.send(ahead_s=2.1 * 3600)
    assert [got.json["type"] for got in service.got][-1] == "incident.opened"


def test_quiet_hours_hold_back_all_but_critical_ones() -> None:
    night = AlertRoute(quiet_from=time(22), quiet_to=time(7), zone="Europe/Berlin", group_seconds=30)
    at = datetime(2026, 1, 10, 23, 30, tzinfo=UTC)
    assert notices.quiet_until(night, at) == datetime(2026, 1, 11, 6, 0, tzinfo=UTC)
    assert notices.quiet_until(night, datetime(2026, 1, 10, 12, 0, tzinfo=UTC)) is None
    assert notices._first_due(Incident(severity="critical"), night, at) == at
    assert notices._first_due(Incident(severity="error"), night, at) == datetime(2026, 1, 11, 6, 0, tzinfo=UTC)


def test_what_flaps_is_told_once_more_and_then_stays_open(service: Receiver, post: Post) -> None:
    route(service.url)
    now = database_now()
    for round_ in range(5):
        at = now + timedelta(minutes=3 * round_)
        incident = cases.open_(Case(key="provider:p:errors", rule="errors", title="bad", at=at), at)
        post.send(ahead_s=180)
        cases.clear(incident.key, at, at)
        cases.settle(at + cases.STEADY)
        post.send()
    assert Incident.objects.count() == 1
    incident.refresh_from_db()
    assert incident.flapping and incident.state == "open" and incident.returns == 3
    cases.settle(at + cases.STEADY_AFTER_FLAPPING)
    post.send(ahead_s=900)
    incident.refresh_from_db()
    assert incident.state == "resolved"
    # Five times up and down, and after the third return no more.
    assert [got.json["type"] for got in service.got] == ["incident.opened", "incident.resolved"] * 4


def test_two_desks_share_the_work(service: Receiver, post: Post) -> None:
    route(service.url)
    for number in range(6):
        opened(str(number))
    other = Sender()
    while post.sender.turn() + other.turn() or Delivery.objects.exclude(state="delivered").exists():
        post.sender.wait(5)
        other.wait(5)
    assert sorted(got.json["object"]["title"] for got in service.got) == [f"number {n}" for n in range(6)]


def test_a_secret_that_cannot_be_read_is_told_and_named(service: Receiver, post: Post) -> None:
    route(service.url, sealed={"url": "env:ALERT_NOT_THERE", "secret": sealing.seal("x" * 30)})
    opened()
    post.send()
    assert Delivery.objects.get().why == "url is not there: put it into the environment variable ALERT_NOT_THERE."


def test_rests_grow_and_heed_what_is_asked_for() -> None:
    assert 2 <= deliveries.rest_of(1, None) <= 2.5 and 8 <= deliveries.rest_of(3, None) <= 10
    assert deliveries.rest_of(90, None) <= 900 * 1.25 and deliveries.rest_of(1, 120.0) == 120.0


def test_slack_hears_one_message_a_second_and_others_do_not_wait_for_it(service: Receiver) -> None:
    route(service.url, "slack")
    sender = Sender()
    opened("1", "unverified")
    assert sender.turn() == 1
    sender.wait(20)
    opened("2", "unverified")
    with receiver() as other:
        route(other.url)
        opened("3", "unverified")
        assert sender.turn() == 1, "the webhook's"
        sender.wait(20)
        assert len(other.got) == 1 and len(service.got) == 1
    sleep(1.05)
    assert sender.turn() == 1
    sender.wait(20)
    assert len(service.got) == 2
    assert "2 incidents" in service.got[1].json["text"], "what came meanwhile goes along"
