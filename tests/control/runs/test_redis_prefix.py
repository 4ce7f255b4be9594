"""Several installations on one database of one Redis: none takes another's messages or hears its hints."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from django.conf import settings

from control.runs.models import Worker
from tests.control.runs.processes import House, reach, row
from tests.scripted_server import Response, say

MakeHouse = Callable[..., House]
RUNS = 20

pytestmark = [pytest.mark.redis, pytest.mark.chaos]


@pytest.fixture
def make_stray(make_house: MakeHouse, tmp_path: Path) -> Callable[[], House]:
    """What an earlier run may have left: a worker and a desk on the same Redis and database, by another name."""

    def make() -> House:
        root = tmp_path / "stray"
        root.mkdir()
        stray = House(root, "http://127.0.0.1:9/v1")
        stray.worker()
        return stray

    return make


def test_a_stray_worker_on_the_same_redis_takes_no_message(
    make_house: MakeHouse, make_stray: Callable[[], House]
) -> None:
    def script(request: Any) -> Response:
        return say("done")

    house = make_house(script)
    stray = make_stray()
    try:
        strangers = set(Worker.objects.values_list("pk", flat=True))
        house.worker()
        # No desk: a message that a stranger eats is published by nobody again.
        runs = [house.begin(f"task {number}") for number in range(RUNS)]
        for run in runs:
            reach(run, "completed")
        assert not {row(run).worker for run in runs} & strangers
        with redis.Redis.from_url(settings.REDIS_URL) as server:
            assert server.keys(f"{house.prefix}:*")
    finally:
        stray.close()


async def test_a_hint_is_heard_only_by_those_of_the_same_prefix() -> None:
    from control.runs.bus_redis import RedisBus

    ours, theirs = RedisBus(settings.REDIS_URL, "test-a"), RedisBus(settings.REDIS_URL, "test-b")
    heard: list[bytes] = []
    strange: list[bytes] = []
    await ours.subscribe(["commands"], lambda _, message: heard.append(message))
    await theirs.subscribe(["commands"], lambda _, message: strange.append(message))
    theirs.publish("commands", b"theirs")
    ours.publish("commands", b"ours")
    async with asyncio.timeout(5):
        while not (heard and strange):
            await asyncio.sleep(0.005)
    assert (heard, strange) == ([b"ours"], [b"theirs"])
    ours.close()
    theirs.close()
