"""The servers that the chaos tests break, made once; a fleet and its load for each test."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings

from tests.chaos.fleet import Fleet
from tests.chaos.load import Load, Script
from tests.chaos.record import summary, wrongs
from tests.chaos.servers import TEMPLATE, Postgres, Redis, servers
from tests.pieces import missing
from tests.scripted_server import ThreadedServer

# CHAOS=full is the size that the figures are told for; the default is one that fits into every build.
FULL = os.environ.get("CHAOS") == "full"
SEED = int(os.environ.get("CHAOS_SEED", "7"))


class Trial:
    """One fleet under load, to be broken; `settle` ends the load and says what is wrong with the record."""

    def __init__(self, fleet: Fleet, script: Script) -> None:
        self.fleet = fleet
        self.script = script
        self.load: Load | None = None

    def begin(self, *, alive: int, turns: int = 6) -> Load:
        self.load = Load(self.fleet, alive, turns)
        self.load.start()
        return self.load

    def settle(self, *, may_lose: bool = False, within: float = 300.0 if FULL else 150.0) -> list[str]:
        """Wait until all that was begun has ended; what is wrong then. `may_lose`: a run may have lost its worker more
        often than it may."""
        commands: list[str] = []
        if self.load is not None:
            self.load.stop()
            commands = self.load.commands
        self.fleet.all_final(within)
        print(summary(self.fleet))
        return wrongs(self.fleet, self.script, commands, may_lose=may_lose)


@pytest.fixture(scope="session")
def both() -> Iterator[tuple[Postgres, Redis]]:
    if why := missing("servers"):
        pytest.skip(str(why))
    with servers() as (postgres, redis):
        with postgres.connect() as server:
            server.execute(f"CREATE DATABASE {TEMPLATE}")
        home = postgres.home / "migrating"
        home.mkdir()
        environment = {
            **os.environ,
            "DATABASE_URL": postgres.url(TEMPLATE),
            "REDIS_URL": redis.url,
            "DATA_DIR": str(home),
        }
        environment |= {"SECRET_KEY": "test"}
        command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "migrate", "-v0"]
        subprocess.run(command, env=environment, check=True)
        yield postgres, redis


@pytest.fixture
def trial(both: tuple[Postgres, Redis], tmp_path: Path) -> Iterator[Callable[..., Trial]]:
    """`trial(workers=3, pace_s=0.1)`: everything is up and idle."""
    opened: list[tuple[Fleet, ThreadedServer]] = []

    def make(*, workers: int = 3, pace_s: float = 0.1) -> Trial:
        script = Script(tmp_path / "journal", pace_s)
        server = ThreadedServer(script)
        base_url = server.__enter__().base_url
        postgres, redis = both
        fleet = Fleet(tmp_path, base_url, postgres, redis, SEED)
        opened.append((fleet, server))
        return Trial(fleet.open(workers), script)

    try:
        yield make
    finally:
        for fleet, server in opened:
            print(fleet.sessions())
            fleet.close()
            for process in fleet.stubborn:
                print("had to be killed:", process.args)
            print(fleet.output())  # shown with a test that fails
            server.__exit__()
