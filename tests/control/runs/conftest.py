"""A house of real processes against a scripted model."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from tests.control.runs.processes import House
from tests.scripted_server import Response, ThreadedServer

Script = Callable[[Any], Response]


@pytest.fixture
def make_house(
    transactional_db: None, tmp_path: Path, settings: Settings, published: list[str]
) -> Iterator[Callable[[Script], House]]:
    """`make_house(script)`: the script answers each model request of every run."""
    servers: list[ThreadedServer] = []
    houses: list[House] = []

    def make(script: Script, **environment: str) -> House:
        server = ThreadedServer(script)
        base_url = server.__enter__().base_url
        servers.append(server)
        settings.ALLOWED_BASE_URLS = [base_url]
        house = House(tmp_path, base_url, ALLOWED_BASE_URLS=base_url, **environment)
        houses.append(house)
        return house

    try:
        yield make
    finally:
        for house in houses:
            house.close()
            sys.stdout.write(house.output())  # shown with a test that fails
        for server in servers:
            server.__exit__()
