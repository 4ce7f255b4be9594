"""Real processes of the house for tests: workers, desks and webs on the test's own database, under short leases."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import orjson
import psutil
from django.conf import settings
from django.db import connection
from kombu import Connection

from control.runs import bus, log, ports, starts, tasks
from control.runs.bus_redis import RedisBus
from control.runs.bus_unix import UnixBus, socket_path
from control.runs.models import Run
from tests import children

LEASE_S = 1.5


def until(state: Callable[[], Any], within: float = 20.0, what: str = "") -> Any:
    """Wait for a state and return it; never for a time."""
    give_up_at = time.monotonic() + within
    while not (found := state()):
        if time.monotonic() > give_up_at:
            raise AssertionError(f"not reached in {within} s: {what or state}")
        time.sleep(0.01)
    return found


class House:
    """Processes that share one data directory and the test's database, or the DATABASE_URL that is given, and on Redis
    a prefix of their own.

    While it is there, hints of the test's own process go to its processes.
    """

    def __init__(self, root: Path, model_url: str, **environment: str) -> None:
        self.root = root
        self.redis_url = environment.get("REDIS_URL", settings.REDIS_URL)
        self.prefix = children.redis_prefix("house")
        self.model_url = model_url
        self._processes: list[subprocess.Popen[bytes]] = []
        # Those that did not end when `close` asked them to.
        self.stubborn: list[subprocess.Popen[bytes]] = []
        self._environment = {
            **os.environ,
            "DATA_DIR": str(root),
            "LEASE_SECONDS": str(LEASE_S),
            "DRAIN_SECONDS": "1",
            "SECRET_KEY": "test",
            "HOST": "127.0.0.1",
            "REDIS_PREFIX": self.prefix,
            **environment,
        }
        if "DATABASE_URL" not in environment:
            self._share_database()
        self._own_bus, bus._bus = bus._bus, self.bus()

    def _share_database(self) -> None:
        name = str(connection.settings_dict["NAME"])
        if connection.vendor == "postgresql":
            where = connection.settings_dict
            user = f"{where['USER']}:{where['PASSWORD']}" if where["PASSWORD"] else where["USER"]
            self._environment["DATABASE_URL"] = f"postgres://{user}@{where['HOST']}:{where['PORT'] or 5432}/{name}"
        else:
            # The processes open the test's own file: SQLite follows the link, also for its journal.
            (self.root / "pilothouse.sqlite3").symlink_to(name)

    # --- processes --------------------------------------------------------------------------------------------

    def start(
        self, *words: str, ready: str = " ready on ", before: Sequence[str] = (), **environment: str
    ) -> subprocess.Popen[bytes]:
        """`manage.py` with these words, as an argument of `before`; returns when it says that it is ready."""
        log_path = self.root / f"{words[0]}-{len(self._processes)}.log"
        with log_path.open("wb") as out:
            process = children.start(
                [*before, sys.executable, str(settings.BASE_DIR / "manage.py"), *words],
                env={**self._environment, **environment},
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        self._processes.append(process)

        def said() -> bool:
            if process.poll() is not None:
                raise AssertionError(f"{words} ended with {process.returncode}: {log_path.read_text()[-3000:]}")
            return ready in log_path.read_text()

        until(said, 40, f"{words} says {ready!r}")
        return process

    def worker(self, *words: str) -> subprocess.Popen[bytes]:
        return self.start("worker", *words)

    def desk(self) -> subprocess.Popen[bytes]:
        return self.start("desk")

    def web(self) -> str:
        """Another web process; its base URL."""
        port = ports.free(0)
        self.start("web", "--port", str(port), ready="web on ")
        base_url = f"http://127.0.0.1:{port}"
        until(lambda: _answers(f"{base_url}/healthz"), 40, "the web answers")
        return base_url

    def output(self) -> str:
        return "\n".join(f"--- {path.name}\n{path.read_text()[-4000:]}" for path in sorted(self.root.glob("*.log")))

    def bus(self) -> bus.Bus:
        """A bus on which these processes are heard and hear."""
        if self.redis_url:
            return RedisBus(self.redis_url, self.prefix)
        return UnixBus(socket_path(self.root / "bus.sock"))

    def close(self) -> None:
        mine, bus._bus = bus._bus, self._own_bus
        if mine is not None:
            mine.close(0.1)
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.send_signal(signal.SIGTERM)
        for process in self._processes:
            try:
                process.wait(8)
            except subprocess.TimeoutExpired:
                self.stubborn.append(process)
                process.kill()
                process.wait(5)
        if self.redis_url:
            children.forget_redis(self.redis_url, self.prefix)

    # --- runs -------------------------------------------------------------------------------------------------

    def begin(self, task: str = "do it", *, agent: str = "default", **more: Any) -> str:
        """Start a run and put its message where the house's workers look."""
        request = starts.StartRequest(agent=agent, task=task, model="m", base_url=self.model_url, **more)
        run = starts.start(request, by="ann")
        self.publish(run.pk)
        return run.pk

    def broker(self) -> Connection:
        """Where these processes take their messages from, on Redis."""
        return Connection(self.redis_url, transport_options={"global_keyprefix": f"{self.prefix}:"})

    def publish(self, run: str) -> None:
        """The message of one run; in the embedded mode into the house's own folders."""
        if self.redis_url:
            with self.broker() as broker:
                tasks.drive.apply_async((run,), retry=False, connection=broker)
            return
        folders = {"data_folder_in": "messages", "data_folder_out": "messages", "processed_folder": "taken"}
        options = {name: str(self.root / "broker" / folder) for name, folder in folders.items()}
        for folder in options.values():
            Path(folder).mkdir(parents=True, exist_ok=True)
        options["control_folder"] = str(self.root / "broker" / "control")
        with Connection("pilothouse-files://localhost//", transport_options=options) as broker:
            tasks.drive.apply_async((run,), retry=False, connection=broker)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2).status_code < 500
    except httpx.HTTPError:
        return False


def row(run: str) -> Run:
    return Run.objects.get(pk=run)


def events(run: str) -> list[dict[str, Any]]:
    return [orjson.loads(body) for body in log.read_after(run, 0, 10_000)]


def kinds(run: str) -> list[str]:
    return [event["kind"] for event in events(run)]


def reach(run: str, *statuses: str, within: float = 20.0) -> Run:
    """Wait until the run has one of these statuses."""
    return until(lambda: (r := row(run)).status in statuses and r, within, f"{run} is {statuses}")  # type: ignore[no-any-return]


def holder_pid(run: str) -> int:
    from control.runs.models import Worker

    return Worker.objects.get(pk=row(run).worker).pid


def marked(name: str, value: str) -> list[int]:
    """Processes that carry a mark in their environment."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(name) == value and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found


def answered(request: Any) -> list[str]:
    """The texts of the tool results in a model request."""
    return [str(message["content"]) for message in request["messages"] if message["role"] == "tool"]


def lines(path: Path) -> Sequence[str]:
    return path.read_text().splitlines() if path.exists() else []
