"""Many who watch one run at once: nothing lost, nothing twice, over cuts and beside one that never reads."""

import asyncio
import json
import os
from typing import Any

import pytest

from agents.kinds import TurnStarted
from control.dashboard.feed import FRAMES_PER_S, Format, RunFeed
from control.runs.dbthreads import DbThreads
from control.runs.meter import METER
from tests.bench.feed import line_of, start_subject, tell
from tests.bench.subjects.source import emit
from tests.control.dashboard.conftest import Web
from tests.control.dashboard.test_socket_cases import process_of
from tests.control.records import make_run, write

pytestmark = pytest.mark.django_db(transaction=True)

RATE, SECONDS = 150, 4.0


def watched(web: Web, run: Any, **options: object) -> dict[str, Any]:
    """A crowd in a process of its own while this one emits as a worker does; what the crowd has seen."""
    asked = {
        "host": "127.0.0.1", "port": web.port, "token": web.token(), "run": run.pk, "format": "json", "viewers": 10,
        "checkers": 3, "reconnects": 0, "mute": 0, "seconds": SECONDS, **options,
    }  # fmt: skip
    crowd = start_subject("viewers", os.environ)
    try:
        tell(crowd, json.dumps(asked))
        assert line_of(crowd) == "ready"
        last, _ = asyncio.run(emit(run, RATE, SECONDS))
        tell(crowd, str(last))
        found: dict[str, Any] = json.loads(line_of(crowd))
        return found
    finally:
        crowd.kill()
        crowd.wait(10)


def test_ten_viewers_with_ten_cuts_see_every_event_once(web: Web):
    found = watched(web, make_run(), reconnects=10)
    assert (found["lost"], found["doubled"], found["wrong"], found["cuts"]) == (0, 0, 0, 10)
    # Each event of each viewer came within the time the whole took: nobody was told to start again.
    assert found["received"] >= 10 * int(RATE * SECONDS * 0.5)
    assert found["resyncs"] == 0


def test_pages_follow_the_same_run_as_patches_that_only_go_forward(web: Web):
    found = watched(web, make_run(), format="html", checkers=1, reconnects=5)
    assert (found["lost"], found["doubled"], found["wrong"]) == (0, 0, 0)


def test_one_that_never_reads_costs_the_others_nothing(web: Web):
    process = process_of(web)
    before = process.memory_info().rss
    found = watched(web, make_run(), mute=3)
    assert (found["lost"], found["doubled"], found["resyncs"]) == (0, 0, 0)
    # A megabyte in flight for each of the three, and what a process takes when it begins to work.
    assert process.memory_info().rss - before < 30 * 1024 * 1024


def test_rows_wait_while_a_fleet_that_acknowledges_has_a_megabyte_in_flight(web: Web):
    run = make_run(task="x" * 400_000)
    with web.follow("/ws/fleet?format=json") as fleet:
        fleet.next_of("snapshot")
        fleet.ack(0)
        for turn in (1, 2, 3):
            write(run, TurnStarted(), turn=turn)
            assert fleet.next_of("run")["run"]["turns"] == turn
        for turn in (4, 5, 6):
            write(run, TurnStarted(), turn=turn)
            assert fleet.next_of("run", "heartbeat", within=20)["type"] == "heartbeat"
        fleet.ack(0)
        assert fleet.next_of("run")["run"]["turns"] == 6


def test_what_a_crowd_gets_in_one_round_is_one_piece_for_all(monkeypatch: pytest.MonkeyPatch):
    """Hints that come while a feed rests after a round are joined once, and each viewer is woken once for them."""
    woken: list[int] = []

    class Looker:
        format: Format = "json"

        def woken(self) -> None:
            woken.append(feed.head)

        def text(self, frame: bytes) -> None: ...
        def withdrawn(self, call: str, frame: bytes) -> None: ...

    def hint(seq: int) -> bytes:
        return b'{"run":"r","root":"r","first":%d,"last":%d,"events":[{"seq":%d}]}' % (seq, seq, seq)

    async def watch() -> None:
        nonlocal feed
        feed = RunFeed("r", "r", 0, DbThreads(1))
        feed.viewers |= {Looker(), Looker()}
        for seq in (1, 2, 3, 4):
            feed.hinted(hint(seq))
            await asyncio.sleep(0.01)
        while feed.head < 4:
            await asyncio.sleep(0.01)
        chunk = await feed.take("json", 1, 100, 10_000, False)
        assert chunk is not None and chunk.data == b'{"seq":2},{"seq":3},{"seq":4}'
        feed.close()

    feed: RunFeed
    monkeypatch.setattr(METER, "sockets", FRAMES_PER_S // 5)
    asyncio.run(watch())
    assert woken == [1, 1, 4, 4]
