"""A house of web, desk and workers on servers of its own, spoken to by its API alone; its database is only read."""

import contextlib
import random
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
from django.conf import settings

from tests.chaos.servers import Postgres, Redis
from tests.control.runs.processes import House, until

# Long enough for a machine under load; the product's own is 15 s.
LEASE_S = 3.0
# "Another machine": processes of its own number space, in which a sweeper can judge nobody from here.
ELSEWHERE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
# Who wrote which event at which epoch, told by the database itself.
AUDIT = """
CREATE TABLE chaos_write (run text, seq int, epoch int, writer text);
CREATE FUNCTION chaos_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO chaos_write SELECT NEW.run_id, NEW.seq, epoch, current_setting('application_name')
    FROM runs_run WHERE id = NEW.run_id;
    RETURN NEW;
END $$;
CREATE TRIGGER chaos_note AFTER INSERT ON runs_event FOR EACH ROW EXECUTE FUNCTION chaos_note();
"""


class Fleet(House):
    def __init__(self, root: Path, model_url: str, postgres: Postgres, redis: Redis, seed: int) -> None:
        self.database = f"chaos_{uuid.uuid4().hex[:8]}"
        self.database_url = postgres.fresh(self.database)
        self.redis = redis
        self.postgres = postgres
        self.random = random.Random(seed)
        self.workers: list[subprocess.Popen[bytes]] = []
        self.far: list[subprocess.Popen[bytes]] = []
        self.killed: set[int] = set()
        self._asking = threading.Lock()  # guards the connection between the test and its load
        self._database: psycopg.Connection[Any] | None = None
        self._number = 0
        super().__init__(
            root,
            model_url,
            DATABASE_URL=self.database_url,
            REDIS_URL=redis.url,
            ALLOWED_BASE_URLS=model_url,
            LEASE_SECONDS=str(LEASE_S),
        )
        self.sql(AUDIT)

    def open(self, workers: int = 3) -> "Fleet":
        self.base_url = self.web()
        made = self._manage("create_token", "chaos", "--role", "admin")
        headers = {"Authorization": f"Bearer {made.strip()}"}
        self._client = httpx.Client(base_url=self.base_url, headers=headers, timeout=10)
        self.desk()
        for _ in range(workers):
            self.worker()
        return self

    def start(self, *words: str, **more: Any) -> subprocess.Popen[bytes]:
        """Each process has a name in the database: its own, or where it has none, this one."""
        self._number += 1
        url = f"{self.database_url}?application_name={words[0]}-{self._number}"
        return super().start(*words, DATABASE_URL=url, **more)

    def worker(self, *words: str, elsewhere: bool = False) -> subprocess.Popen[bytes]:
        process = self.start("worker", *words, before=ELSEWHERE if elsewhere else ())
        self.workers.append(process)
        if elsewhere:
            self.far.append(process)
        return process

    def _manage(self, *words: str) -> str:
        command = [sys.executable, str(settings.BASE_DIR / "manage.py"), *words]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    # --- harm ---------------------------------------------------------------------------------------------------

    def kill_a_worker(self) -> None:
        """SIGKILL one of them at once and put another in its place, as a supervisor would."""
        victim = self.random.choice(self.workers)
        self.workers.remove(victim)
        self.killed.add(victim.pid)
        victim.kill()
        victim.wait(5)
        self.worker()

    def inside(self, far: "subprocess.Popen[bytes]") -> psutil.Process:
        """The worker itself of one that is elsewhere."""
        return psutil.Process(far.pid).children()[0]

    def worker_id(self, process: "subprocess.Popen[bytes]") -> str:
        """What it is called on the roster: it says so itself."""
        return str(re.findall(r"worker (\S+) ready on", self._log_of(process).read_text())[0])

    def in_a_transaction(self, process: "subprocess.Popen[bytes]") -> bool:
        """Whether its writer, or whoever else of it, holds locks now."""
        sql = "SELECT 1 FROM pg_stat_activity WHERE application_name = %s AND state = 'idle in transaction'"
        return bool(self.sql(sql, f"pilothouse worker {self.worker_id(process)}"))

    def logged(self, process: "subprocess.Popen[bytes]", words: str) -> bool:
        return words in self._log_of(process).read_text()

    def _log_of(self, process: "subprocess.Popen[bytes]") -> Path:
        return self.root / f"worker-{self._processes.index(process)}.log"

    def restart_postgres(self, how: signal.Signals) -> None:
        self.postgres.stop(how)
        self.postgres.start()

    def survivors_ended(self) -> list[str]:
        """Processes that nobody killed and that are gone all the same."""
        return [
            f"process {process.pid} ended with {process.returncode}"
            for process in self._processes
            if process.poll() is not None and process.pid not in self.killed
        ]

    # --- the API ------------------------------------------------------------------------------------------------

    def post(self, path: str, body: Mapping[str, Any], within: float = 60.0) -> httpx.Response:
        """One request with a key of its own, sent until it is answered: what is down comes back."""
        key = uuid.uuid4().hex
        give_up_at = time.monotonic() + within
        while True:
            with contextlib.suppress(httpx.TransportError):
                answer = self._client.post(path, json=dict(body), headers={"Idempotency-Key": key})
                if answer.status_code < 500 and answer.status_code != 425:
                    return answer
            assert time.monotonic() < give_up_at, f"{path} is not answered within {within} s"
            time.sleep(0.05)

    # --- its database -------------------------------------------------------------------------------------------

    def sql(self, statement: str, *arguments: Any) -> Sequence[tuple[Any, ...]]:
        give_up_at = time.monotonic() + 30
        with self._asking:
            while True:
                try:
                    if self._database is None:
                        self._database = psycopg.connect(self.database_url, autocommit=True, connect_timeout=5)
                    done = self._database.execute(statement, arguments or None)
                    return done.fetchall() if done.description else []
                except psycopg.OperationalError:
                    self._database = None
                    if time.monotonic() > give_up_at:
                        raise
                    time.sleep(0.05)

    def sessions(self) -> str:
        """What each process does in the database now, and for whom it waits."""
        rows = self.sql(
            "SELECT application_name, pid, state, now() - state_change, wait_event_type, wait_event, "
            "pg_blocking_pids(pid)::text, left(query, 120) FROM pg_stat_activity "
            "WHERE datname = current_database() AND (state <> 'idle' OR wait_event_type = 'Lock')"
        )
        return "\n".join(" | ".join(map(str, row)) for row in rows)

    def left_marked(self) -> list[str]:
        """Processes that carry the mark of one of these runs."""
        runs = {run for (run,) in self.sql("SELECT id FROM runs_run")}
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("PILOTHOUSE_RUN") in runs and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(f"{process.pid} {' '.join(process.cmdline())}")
        return found

    def all_final(self, within: float) -> None:
        def over() -> bool:
            return not self.sql("SELECT 1 FROM runs_run WHERE finished_at IS NULL LIMIT 1")

        try:
            until(over, within, "every run has ended")
        except AssertionError as error:
            rows = self.sql(
                "SELECT id, status, epoch, attempts, worker, host, lease_until, published_at, activity, now() "
                "FROM runs_run WHERE finished_at IS NULL"
            )
            raise AssertionError(f"{error}: {rows}") from None

    def close(self) -> None:
        for process in self.far:
            with contextlib.suppress(psutil.Error, IndexError):
                self.inside(process).resume()
                self.inside(process).terminate()
        super().close()
        if self._database is not None:
            self._database.close()
