"""A PostgreSQL and a Redis of our own, on free ports, to be stopped, killed and emptied as a test likes."""

import contextlib
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
import redis

from tests import children, pieces
from tests.bench.harness import free_port
from tests.control.runs.processes import until

TEMPLATE = "chaos_template"


def _owner() -> Mapping[str, Any]:
    """Whose process a database server is: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            user = pwd.getpwnam(name)
            return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise RuntimeError("initdb needs a user that is not root; there is neither 'postgres' nor 'nobody'")


class Postgres:
    """One cluster. `url(name)` is a database in it."""

    def __init__(self, root: Path) -> None:
        self.port = free_port()
        self.home = root
        self._owner = _owner()
        self._process: subprocess.Popen[bytes] | None = None
        command = [str(pieces.program("initdb")), "-D", str(root / "cluster"), "-U", "chaos", "-A", "trust", "-N"]
        done = subprocess.run(command, cwd="/", capture_output=True, text=True, **self._owner)
        assert done.returncode == 0, done.stderr
        self.start()

    def url(self, name: str) -> str:
        return f"postgres://chaos@127.0.0.1:{self.port}/{name}"

    def connect(self, name: str = "postgres") -> "psycopg.Connection[Any]":
        return psycopg.connect(self.url(name), autocommit=True, connect_timeout=5)

    def start(self) -> None:
        more = (
            ("port", self.port),
            ("listen_addresses", "127.0.0.1"),
            ("unix_socket_directories", ""),
            ("fsync", "off"),
            ("log_line_prefix", "\x01%m [%d] %a "),
        )
        options = [word for name, value in more for word in ("-c", f"{name}={value}")]
        with (self.home / "postgres.log").open("ab") as out:
            command = [str(pieces.program("postgres")), "-D", str(self.home / "cluster"), *options]
            self._process = children.start(command, cwd="/", stdout=out, stderr=out, **self._owner)
        until(self._answers, 30, "PostgreSQL answers")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT: connections are cut and all is written. SIGQUIT: as after a crash."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(how)
            self._process.wait(20)

    def fresh(self, name: str) -> str:
        """A database with all tables, made anew; its URL."""
        with self.connect() as server:
            server.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            server.execute(f'CREATE DATABASE "{name}" TEMPLATE {TEMPLATE}')
        return self.url(name)

    def deadlocks(self, name: str) -> list[str]:
        """What its log tells of transactions of this database that waited for each other in a ring."""
        told = (self.home / "postgres.log").read_text(errors="replace").split("\x01")
        # The entry after it has the two statements.
        found = itertools.pairwise(told)
        return [line + detail for line, detail in found if "deadlock detected" in line and f"[{name}]" in line]

    def _answers(self) -> bool:
        assert self._process is not None and self._process.poll() is None, "PostgreSQL did not start"
        with contextlib.suppress(psycopg.Error):
            self.connect().close()
            return True
        return False


class Redis:
    def __init__(self, root: Path) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._root = root
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        command = [str(pieces.program("redis-server")), "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        self._process = children.start([*command, "--dir", str(self._root)], stdout=subprocess.DEVNULL)
        until(self._answers, 10, "Redis answers")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(5)

    def freeze(self) -> None:
        """It keeps its connections and says nothing more, which is worse than being gone."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def empty(self) -> None:
        with redis.Redis.from_url(self.url, socket_timeout=5) as server:
            server.flushall()

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True


@contextlib.contextmanager
def servers() -> Iterator[tuple[Postgres, Redis]]:
    # Not in pytest's own directory: that one is closed to the user of the database.
    root = Path(tempfile.mkdtemp(prefix="pilothouse-chaos-"))
    if owner := _owner():
        os.chown(root, owner["user"], owner["group"])
    postgres = bus = None
    try:
        postgres, bus = Postgres(root), Redis(root)
        yield postgres, bus
    finally:
        if bus is not None:
            bus.kill()
        if postgres is not None:
            postgres.stop(signal.SIGQUIT)
        shutil.rmtree(root, ignore_errors=True)
