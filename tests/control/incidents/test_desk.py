"""A real desk: what a log says goes out as an alert within seconds, once, also where two desks share the work."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from agents import kinds
from control.incidents import cases, routes, sealing
from control.incidents.models import Delivery, Incident
from control.runs.clock import database_now
from tests.control.incidents.conftest import route
from tests.control.incidents.receivers import Answer, Receiver
from tests.control.records import make_run, write
from tests.control.runs.processes import House, until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def house(tmp_path: Path, settings: Settings) -> Iterator[House]:
    # Secrets of routes are sealed with the key that the desk has too.
    settings.SECRET_KEY = "test"
    made = House(tmp_path, "http://127.0.0.1:9/v1")
    yield made
    print(made.output())
    made.close()


def test_two_desks_tell_a_trip_a_test_and_the_end_once(house: House, service: Receiver) -> None:
    service.answers = [Answer(status=500), Answer(status=200)]
    made = route(service.url)
    house.desk()
    house.desk()
    run = make_run(agent="importer")
    write(run, kinds.RunTripped(step=8, rule="repeats", verdict={"explanation": "the same call", "evidence": [1]}))
    until(lambda: Delivery.objects.filter(state="delivered").exists(), 20, "the alert arrives at the second try")
    routes.test(made, database_now())
    cases.resolve(Incident.objects.get(), database_now(), by="ann")
    until(lambda: Delivery.objects.filter(state="delivered").count() == 3, 20, "the test and the end arrive")
    types = [got.json["type"] for got in service.got]
    assert sorted(types) == ["incident.opened", "incident.opened", "incident.resolved", "incident.test"]
    assert len({got.json["id"] for got in service.got}) == 3
    first = service.got[0].json["object"]
    assert first["key"] == f"run:{run.pk}:tripped" and first["title"] == "importer: Tripped at step 8: rule repeats"
    assert sealing.opened(made.sealed)["url"] == service.url
