"""A whole console in processes of its own, embedded or on PostgreSQL and Redis, driven over HTTP."""

import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psutil

from tests import children
from tests.bench.harness import PYTHON, free_port

REDIS = os.environ.get("TEST_REDIS_URL") or os.environ.get("REDIS_URL") or "redis://127.0.0.1:6379/9"
_NEAR = os.environ.get("TEST_DATABASE_URL") or os.environ.get("DATABASE_URL") or "postgres://postgres@127.0.0.1:5432/"
# Beside those that tests and installations use.
DATABASE = _NEAR.rsplit("/", 1)[0] + "/postgres"


@dataclass(frozen=True, slots=True)
class Stack:
    """`env` is what its processes have; `pid` is that of `manage.py up`."""

    base: str
    drill: str
    token: str
    env: Mapping[str, str]
    pid: int

    def call(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            self.base + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    def start(self, model: str, task: str, **more: Any) -> str:
        body = {"agent": "default", "task": task, "model": model, "base_url": f"{self.drill}/v1", **more}
        return str(self.call("POST", "/api/runs", body)["id"])

    def run(self, run: str) -> Any:
        return self.call("GET", f"/api/runs/{run}")

    def until(self, run: str, *statuses: str, seconds: float = 30) -> Any:
        end = time.monotonic() + seconds
        while True:
            row = self.run(run)
            if row["status"] in statuses:
                return row
            if time.monotonic() > end:
                raise TimeoutError(f"{run} is {row['status']}, not {statuses}")
            time.sleep(0.02)

    def requests(self, marker: str) -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"{self.drill}/drill/requests?marker={marker}", timeout=10) as answer:
            found: list[dict[str, Any]] = json.loads(answer.read())["requests"]
        return found


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def marked(run: str) -> list[psutil.Process]:
    """Living processes that carry this run's mark."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get("PILOTHOUSE_RUN") == run:
                found.append(process)
        except psutil.Error:
            continue
    return found


def _environment(redis: str, services: bool, data: str, ports: tuple[int, int], name: str) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "REDIS_URL", "OPENAI_BASE_URL", "MODEL")}
    env |= {"DATA_DIR": data, "PORT": str(ports[0]), "DRILL_URL": f"http://127.0.0.1:{ports[1]}/v1"}
    if services:
        url = DATABASE.rsplit("/", 1)[0] + f"/{name}"
        env |= {"DATABASE_URL": url, "REDIS_URL": redis, "SECRET_KEY": "bench " * 10, "REDIS_PREFIX": name}
        env |= {"ALLOWED_BASE_URLS": f"http://127.0.0.1:{ports[1]}/v1"}
    return env


@contextmanager
def stack(*, services: bool = False, workers: int = 1, redis: str = REDIS) -> Iterator[Stack]:
    """`manage.py up` on free ports with a data directory and, with `services`, a database of its own."""
    ports = (free_port(), free_port())
    name = f"bench_{os.getpid()}_{ports[0]}"
    with tempfile.TemporaryDirectory(prefix="pilothouse-bench-") as data:
        env = _environment(redis, services, data, ports, name)
        if services:
            _database(f'CREATE DATABASE "{name}"')
        drill = children.start([PYTHON, "-m", "agents.drill", "--port", str(ports[1])], stdout=subprocess.DEVNULL)
        command = [PYTHON, "manage.py", "up", "--no-drill", "--port", str(ports[0]), "--workers", str(workers)]
        with open(f"{data}/up.log", "w+") as log:
            up = children.start(command, env=env, stdout=log, stderr=log)
            try:
                base = f"http://127.0.0.1:{ports[0]}"
                _until_ready(base, up, f"{data}/up.log")
                made = [PYTHON, "manage.py", "create_token", "bench", "--role", "admin"]
                token = subprocess.run(made, env=env, capture_output=True, text=True, check=True).stdout.strip()
                yield Stack(base, f"http://127.0.0.1:{ports[1]}", token, env, up.pid)
            finally:
                up.send_signal(signal.SIGINT)
                up.wait(15)
                drill.terminate()
                if services:
                    _database(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


@contextmanager
def database(name: str) -> Iterator[str]:
    """A PostgreSQL database of its own, dropped afterwards; yields its URL."""
    _database(f'CREATE DATABASE "{name}"')
    try:
        yield DATABASE.rsplit("/", 1)[0] + f"/{name}"
    finally:
        _database(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def _database(statement: str) -> None:
    import psycopg

    with psycopg.connect(DATABASE, autocommit=True) as connection:
        connection.execute(statement)  # type: ignore[call-overload]


def _until_ready(base: str, up: "subprocess.Popen[bytes]", log: str) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if up.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{base}/readyz", timeout=2) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(0.1)
    with open(log) as text:
        raise SystemExit(f"the console did not get ready:\n{text.read()[-3000:]}")
