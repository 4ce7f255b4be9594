"""The log's append over the driver's own executemany, on both databases, and how much one worker persists."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.bench.harness import say, spread, subject
from tests.bench.stack import REDIS, database

ROUNDS = 5


def append() -> None:
    """Batches of 1, 10, 100 and 1,000 events, in turn with the same rows by executemany; then one worker's writer."""
    for label, env in (("SQLite", {"DATABASE_URL": "", "REDIS_URL": ""}), ("PostgreSQL", None)):
        with _where(env) as there:
            _ratios(label, subject("append", ROUNDS, env=there))
        with _where(env) as there:
            _worker(label, subject("group", ROUNDS, env=there))


@contextmanager
def _where(env: dict[str, str] | None) -> Iterator[dict[str, str]]:
    """The environment of a database of its own; SQLite's is in the subject's directory."""
    if env is not None:
        yield env
        return
    name = f"bench_append_{os.getpid()}"
    with database(name) as url:
        yield {"DATABASE_URL": url, "REDIS_URL": REDIS, "SECRET_KEY": "bench " * 10, "REDIS_PREFIX": name}


def _ratios(label: str, found: dict[str, Any]) -> None:
    for events, rates in found.items():
        ours, bare = spread(rates["ours"]), spread(rates["executemany"])
        ratio = spread([one / floor for one, floor in zip(rates["ours"], rates["executemany"], strict=True)])
        say(
            f"{label}, {int(events):,} a commit: {ratio} x the driver's executemany of the same rows "
            f"({ours.median:,.0f} over {bare.median:,.0f} events/s)"
        )


def _worker(label: str, found: dict[str, Any]) -> None:
    say(f"{label}: one worker persists {spread(found['events_per_s'])} events/s of 100 runs in groups, hints sent")
    costs = found["us_per_kib"]
    ratio = spread([ours / floor for ours, floor in zip(costs["ours"], costs["dumps"], strict=True)])
    say(f"{label}: making safe and encoding {spread(costs['ours'])} µs per KiB, {ratio} x json.dumps of the same text")
