"""Real workers under a limit of the day: the runs that it stops are one incident, and nobody is told of each."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from control.incidents import intake
from control.incidents.models import Incident
from tests.control.runs.processes import House, reach
from tests.scripted_server import ThreadedServer, say

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def house(tmp_path: Path, settings: Settings, published: list[str]) -> Iterator[House]:
    with ThreadedServer(lambda request: say("Done.")) as server:
        settings.ALLOWED_BASE_URLS = [server.base_url]
        limits = {"AGENT_MAX_TOKENS_PER_DAY": "10"}
        made = House(tmp_path, server.base_url, ALLOWED_BASE_URLS=server.base_url, **limits)
        try:
            yield made
        finally:
            made.close()
            print(made.output())
        assert not server.requests, "nothing is asked for that the day has no room for"


def test_a_day_without_room_stops_two_runs_and_is_told_once(house: House) -> None:
    house.worker()
    for run in [house.begin("one"), house.begin("two")]:
        assert reach(run, "tripped").exit_reason == "fuse:agent_max_tokens_per_day"
    intake.take_in()
    incident = Incident.objects.get()
    assert (incident.rule, incident.times, incident.agent, incident.run_id) == ("day_limit", 2, "default", None)
    assert incident.title.startswith("The agent has spent its tokens of ")
