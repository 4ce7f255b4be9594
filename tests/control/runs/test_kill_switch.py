"""The kill switch over real processes: sixty streaming runs on two workers."""

import os

from tests.bench import killing
from tests.bench.stack import stack

RUNS, WORKERS = 60, 2
STOPPED_WITHIN_S, PAGE_WITHIN_S = 3.0, 1.0


def test_sixty_streaming_runs_stop_within_three_seconds_and_the_fleet_page_stays_quick():
    services = bool(os.environ.get("DATABASE_URL") and os.environ.get("REDIS_URL"))
    with stack(services=services, workers=WORKERS) as console:
        _, killed = killing.trial(console, RUNS, "kill", steady_s=0.5)
        assert killed.verified == RUNS
        assert killed.answered < 1.5, "the answer does not wait for the last run"
        assert killed.stopped < STOPPED_WITHIN_S
        assert killed.sockets < STOPPED_WITHIN_S
        assert sorted(killed.pages)[len(killed.pages) // 2] < PAGE_WITHIN_S
        row = console.call("GET", "/api/runs?limit=1")["runs"][0]
        assert (row["status"], row["exit_reason"]) == ("interrupted", "kill_switch")
