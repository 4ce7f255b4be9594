"""Each transport through the desk's own rows and sender, to a real server: told once, retried as that service asks,
refusals final, the end told under the same key, and no secret in any of it."""

import email
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.header import decode_header, make_header
from typing import Any

import pytest

from agents import kinds
from control.incidents import cases, intake, sealing
from control.incidents.cases import Case
from control.incidents.models import AlertRoute, Delivery, Incident
from control.incidents.transports import mail, wire
from control.runs.clock import database_now
from tests.control.incidents.conftest import SECRET, Post, mail_options, route, states
from tests.control.incidents.receivers import Answer, post_office, receiver
from tests.control.records import make_run, write

pytestmark = pytest.mark.django_db
NAMES = ("pagerduty", "slack", "webhook", "alertmanager", "email")
CANARY = "sk-proj-Zk3vN8qT1xW5bY7cD9fG2hJ4"
KEY = "run:1:tripped"


@dataclass(frozen=True, kw_only=True)
class Told:
    """One message as the service reads it. `key` is what it knows the incident by, `id` what it knows repeats by."""

    action: str
    key: str
    id: str


@dataclass(kw_only=True)
class Service:
    """One kind of service. `answer(first, then)` sets how it answers first and ever after; `told` is what it took."""

    name: str
    url: str
    answer: Callable[[str], None]
    told: Callable[[], list[Told]]
    # What arrived, also what was refused, as bytes.
    raw: Callable[[], list[bytes]]
    good: int


@contextmanager
def http_service(name: str, read: Callable[[Any, Any], Told]) -> Iterator[Service]:
    good = 202 if name == "pagerduty" else 200
    held = threading.Event()
    troubles = {
        "pressure": Answer(status=429, headers={"Retry-After": "40"}),
        "broken": Answer(status=500),
        "silent": Answer(held=held, status=good),
        "refused": Answer(status=400, body=b"invalid payload"),
    }
    with receiver() as made:

        def answer(trouble: str) -> None:
            made.answers = [troubles[trouble], Answer(status=good)] if trouble else [Answer(status=good)]

        def told() -> list[Told]:
            return [read(got, got.json) for got in made.got]

        answer("")
        yield Service(
            name=name, url=made.url, answer=answer, told=told, raw=lambda: [got.body for got in made.got], good=good
        )
        held.set()


def of_pagerduty(got: Any, body: Any) -> Told:
    return Told(action=body["event_action"], key=body["dedup_key"], id=body["dedup_key"])


def of_webhook(got: Any, body: Any) -> Told:
    action = {"opened": "trigger", "acknowledged": "acknowledge", "resolved": "resolve"}[body["type"].split(".")[1]]
    return Told(action=action, key=body["object"]["key"], id=got.headers["webhook-id"])


def of_slack(got: Any, body: Any) -> Told:
    action = "resolve" if body["text"].startswith("Resolved: ") else "trigger"
    return Told(action=action, key=body["text"].rpartition(" ")[2], id=got.body.decode())


def of_alertmanager(got: Any, body: Any) -> Told:
    (alert,) = body["alerts"]
    assert body["status"] == alert["status"] and alert["labels"]["key"] == KEY
    action = "resolve" if body["status"] == "resolved" else "trigger"
    return Told(action=action, key=alert["fingerprint"], id=alert["fingerprint"])


@contextmanager
def mail_service() -> Iterator[Service]:
    held = threading.Event()
    with post_office() as office:

        def answer(trouble: str) -> None:
            office.held = held if trouble == "silent" else None
            replies = {"pressure": "421 too many", "broken": "451 local error", "refused": "554 no such thing"}
            office.reply = replies.get(trouble, "250 taken")

        def told() -> list[Told]:
            return [_of_mail(text) for *_, text in office.mails]

        yield Service(
            name="email",
            url=f"smtp://127.0.0.1:{office.port}",
            answer=answer,
            told=told,
            raw=lambda: [_plain(text) for *_, text in office.mails],
            good=250,
        )
        held.set()


def _plain(text: str) -> bytes:
    """All of a mail, its body as it is read."""
    read = email.message_from_string(text)
    body = read.get_payload(decode=True)
    assert isinstance(body, bytes)
    return str(make_header(decode_header(read["Subject"]))).encode() + text.encode() + body


def _of_mail(text: str) -> Told:
    read = email.message_from_string(text)
    subject = str(make_header(decode_header(read["Subject"])))
    action = "resolve" if subject.startswith("Resolved: ") else "trigger"
    return Told(action=action, key=read["References"], id=read["Message-ID"])


@pytest.fixture(params=NAMES)
def service(request: pytest.FixtureRequest) -> Iterator[Service]:
    readers = {
        "pagerduty": of_pagerduty,
        "slack": of_slack,
        "webhook": of_webhook,
        "alertmanager": of_alertmanager,
    }
    made = mail_service() if request.param == "email" else http_service(request.param, readers[request.param])
    with made as given:
        yield given


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "ANSWER_S", 0.3)
    monkeypatch.setattr(mail, "ANSWER_S", 1.0)


def opened() -> Incident:
    now = database_now()
    return cases.open_(Case(key=KEY, rule="tripped", title="number one", at=now), now)


def moved(made: AlertRoute, url: str) -> None:
    """The route leads elsewhere from now on."""
    place = "options" if made.transport in ("pagerduty", "email") else "sealed"
    kept = dict(getattr(made, place))
    kept |= (
        mail_options(url) if made.transport == "email" else {"url": url if place == "options" else sealing.seal(url)}
    )
    AlertRoute.objects.filter(pk=made.pk).update(**{place: kept})


def test_one_incident_is_told_once_and_its_end_once_under_one_key(service: Service, post: Post) -> None:
    route(service.url, service.name)
    for _ in range(3):
        incident = opened()
        post.send(ahead_s=5)
    assert [one.action for one in service.told()] == ["trigger"]
    assert cases.resolve(incident, database_now(), by="ann")
    assert not cases.resolve(incident, database_now(), by="bo")
    for _ in range(3):
        post.send(ahead_s=5)
    first, last = service.told()
    assert (first.action, last.action) == ("trigger", "resolve")
    assert first.key == last.key and first.key
    assert states() == [("trigger", "delivered", service.good), ("resolve", "delivered", service.good)]


@pytest.mark.parametrize("trouble", ["pressure", "broken", "silent"])
def test_a_service_in_trouble_is_asked_again_with_the_same_message(service: Service, post: Post, trouble: str) -> None:
    service.answer(trouble)
    route(service.url, service.name)
    opened()
    post.send()
    (row,) = Delivery.objects.all()
    known = {"pressure": 421, "broken": 451} if service.name == "email" else {"pressure": 429, "broken": 500}
    assert (row.state, row.code) == ("due", known.get(trouble))
    assert row.why and len(row.tries) == 1 and row.tries[0]["code"] == row.code
    if service.name == "email":
        service.answer("")
    if trouble == "pressure" and service.name != "email":
        # As long as it asked for, and not a second less.
        post.send(ahead_s=35)
        assert len(service.told()) == 1
        post.send(ahead_s=7)
    else:
        post.send(ahead_s=4)
    row.refresh_from_db()
    assert (row.state, row.code, len(row.tries)) == ("delivered", service.good, 2)
    arrived = service.told()
    # A mail that was refused is not in the box; one whose answer never came may be.
    assert len({(one.action, one.key, one.id) for one in arrived}) == 1
    post.send(ahead_s=7 * 3600)
    assert service.told() == arrived and states() == [("trigger", "delivered", service.good)]


def test_a_name_that_leads_nowhere_is_asked_for_again_until_it_does(service: Service, post: Post) -> None:
    made = route("smtp://nowhere.invalid:25" if service.name == "email" else "http://nowhere.invalid/x", service.name)
    opened()
    post.send()
    (row,) = Delivery.objects.all()
    assert (row.state, row.code) == ("due", None) and "leads nowhere (DNS)" in row.why
    moved(made, service.url)
    post.send(ahead_s=4)
    row.refresh_from_db()
    assert row.state == "delivered" and [one.action for one in service.told()] == ["trigger"]


def test_what_it_refuses_is_not_sent_again_and_a_person_can_read_why(service: Service, post: Post) -> None:
    service.answer("refused")
    route(service.url, service.name)
    incident = opened()
    post.send()
    code = 554 if service.name == "email" else 400
    assert states() == [("trigger", "failed", code)]
    before = len(service.told())
    service.answer("")
    post.send(ahead_s=3600)
    cases.resolve(incident, database_now(), by="ann")
    post.send(ahead_s=3600)
    # Nobody was told of its beginning, so nobody is told of its end.
    assert len(service.told()) == before and states() == [("trigger", "failed", code)]
    assert incident.notes.filter(kind="undelivered", text__contains=str(code)).exists()
    assert Delivery.objects.get().why in ("invalid payload", "no such thing")


def test_what_never_gets_through_is_given_up_after_hours_and_said_so(service: Service, post: Post) -> None:
    with receiver() as gone:
        nowhere = gone.url.replace("http", "smtp") if service.name == "email" else gone.url
    route(nowhere, service.name)
    incident = opened()
    for _ in range(60):
        post.send(ahead_s=600)
    (row,) = Delivery.objects.all()
    assert row.state == "failed" and 10 < len(row.tries) <= 40 and "connection failed" in row.why
    assert incident.notes.filter(kind="undelivered").count() == 1


def test_no_message_tells_a_secret_that_got_into_a_log(service: Service, post: Post) -> None:
    route(service.url, service.name)
    run = make_run(agent="importer", labels={"note": CANARY})
    message = f"401 for key {CANARY}\nAuthorization: Bearer {CANARY}"
    write(run, kinds.RunFailedEvent(error={"reason": "auth", "message": message, "status": 401}))
    intake.take_in()
    incident = Incident.objects.get()
    post.send()
    cases.resolve(incident, database_now(), by="ann")
    post.send(ahead_s=3)
    sent = b"".join(service.raw())
    assert len(service.raw()) == 2 and b"importer" in sent
    assert CANARY.encode() not in sent and CANARY[8:28].encode() not in sent and SECRET.encode() not in sent
