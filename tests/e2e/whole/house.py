"""A whole console for a browser: `manage.py up` in processes of its own, embedded or on the services that are set."""

import asyncio
import contextlib
import json
import os
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx

from tests import children
from tests.bench.harness import PYTHON, free_port

PASSWORD = "fair wind and following sea"
# Kept away from the house: what the environment says of models and limits would change what the tests see.
FOREIGN = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "MODEL", "DRILL_URL", "ALLOWED_BASE_URLS", "CREDENTIALS_FILE", "PORT")
PEOPLE = f"""
from django.utils import timezone
from control.accounts.models import Role, Token, User
for name, role in (("ann", "operator"), ("vic", "viewer"), ("ada", "admin")):
    user = User(username=name, role=role)
    user.set_password({PASSWORD!r})
    user.save()
print(Token.issue("e2e", Role.ADMIN, timezone.now())[1])
"""


async def until(state: Callable[[], Awaitable[Any]], what: str, within: float = 30) -> Any:
    """Ask again until the answer is true, and return it."""
    give_up_at = time.monotonic() + within
    while not (found := await state()):
        if time.monotonic() > give_up_at:
            raise AssertionError(f"not reached in {within:g} s: {what}")
        await asyncio.sleep(0.03)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """A running console: `link` is what `up` printed, `scripted_port` is where a test's own model server may listen."""

    base: str
    drill: str
    link: str
    token: str
    scripted_port: int
    data: Path

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"}
        async with httpx.AsyncClient(base_url=self.base, headers=headers, timeout=30) as client:
            answer = await client.request(method, path, json=body)
            answer.raise_for_status()
            return answer.json()

    async def start(self, model: str, task: str, **more: Any) -> str:
        """Start a run of the drill's model, or with `base_url` of another; its id."""
        body = {"agent": "default", "task": task, "model": model, "base_url": f"{self.drill}/v1", **more}
        return str((await self.call("POST", "/api/runs", body))["id"])

    async def run(self, run: str) -> Any:
        return await self.call("GET", f"/api/runs/{run}")

    async def reach(self, run: str, *statuses: str) -> Any:
        async def there() -> Any:
            row = await self.run(run)
            return row if row["status"] in statuses else None

        return await until(there, f"{run} is {' or '.join(statuses)}")

    async def events(self, run: str) -> list[dict[str, Any]]:
        return list((await self.call("GET", f"/api/runs/{run}/events?limit=1000"))["events"])

    async def requests(self, marker: str) -> list[dict[str, Any]]:
        """What the drill server's log says of the requests of the runs with this marker."""
        async with httpx.AsyncClient(timeout=10) as client:
            return list(
                (await client.get(f"{self.drill}/drill/requests", params={"marker": marker})).json()["requests"]
            )


@contextmanager
def house(*, workers: int = 1, more: Mapping[str, str] | None = None) -> Iterator[House]:
    """Start everything, wait until it is ready, and end it all. A test database of its own, and in Redis a prefix.
    `more` is set in its environment last."""
    web, drill, scripted = free_port(), free_port(), free_port()
    with tempfile.TemporaryDirectory(prefix="pilothouse-e2e-") as data, _database() as services, _prefix() as prefix:
        environment = {name: value for name, value in os.environ.items() if name not in FOREIGN}
        environment |= {
            "DATA_DIR": data,
            "PORT": str(web),
            "DRILL_URL": f"http://127.0.0.1:{drill}/v1",
            **services,
            **prefix,
        }
        if services:
            environment["ALLOWED_BASE_URLS"] = f"http://127.0.0.1:{scripted}/v1,http://127.0.0.1:9/v1"
        environment |= more or {}
        base = f"http://127.0.0.1:{web}"
        up = [PYTHON, "manage.py", "up", "--no-drill", "--port", str(web), "--workers", str(workers)]
        with _process([PYTHON, "-m", "agents.drill", "--port", str(drill)], environment, Path(data, "drill.log")):
            log = Path(data, "up.log")
            with _process(up, environment, log) as process:
                link = _until_ready(base, process, log)
                people = [PYTHON, "manage.py", "shell", "--no-imports", "-c", PEOPLE]
                token = subprocess.run(people, env=environment, capture_output=True, text=True, check=True).stdout
                yield House(
                    base=base, drill=f"http://127.0.0.1:{drill}", link=link, token=token.split()[-1],
                    scripted_port=scripted, data=Path(data),
                )  # fmt: skip


@contextmanager
def _process(command: list[str], environment: dict[str, str], log: Path) -> "Iterator[subprocess.Popen[bytes]]":
    with log.open("wb") as out:
        process = children.start(command, env=environment, stdout=out, stderr=out)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(5)


@contextmanager
def _prefix() -> Iterator[dict[str, str]]:
    """Its own in the Redis that the environment names; nothing where none is named."""
    url = os.environ.get("REDIS_URL", "")
    if not url:
        yield {}
        return
    prefix = children.redis_prefix("e2e")
    try:
        yield {"REDIS_PREFIX": prefix}
    finally:
        children.forget_redis(url, prefix)


@contextmanager
def _database() -> Iterator[dict[str, str]]:
    """A fresh PostgreSQL database beside the one that the environment names; nothing in the embedded mode."""
    url = os.environ.get("DATABASE_URL", "")
    if not url:
        yield {}
        return
    import psycopg
    from psycopg import sql

    from tests.services import fresh_database

    own = urlunsplit(urlsplit(url)._replace(path=f"/e2e_{os.getpid()}"))
    fresh_database(own)
    try:
        yield {"DATABASE_URL": own, "SECRET_KEY": os.environ.get("SECRET_KEY") or "only for tests " * 4}
    finally:
        with psycopg.connect(urlunsplit(urlsplit(url)._replace(path="/postgres")), autocommit=True) as server:
            name = sql.Identifier(f"e2e_{os.getpid()}")
            server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))


def _until_ready(base: str, process: "subprocess.Popen[bytes]", log: Path) -> str:
    """Ready means that the link is printed, and that a worker and the desk are there too; the link's path."""
    give_up_at = time.monotonic() + 90
    said = ""
    while time.monotonic() < give_up_at and process.poll() is None:
        link = re.search(rf"{re.escape(base)}(/sign-in/\S+)", log.read_text())
        with contextlib.suppress(OSError):
            try:
                with urllib.request.urlopen(f"{base}/readyz", timeout=3) as answer:
                    if answer.status == 200 and link:
                        return link.group(1)
            except urllib.error.HTTPError as error:
                said = json.dumps(error.read().decode(errors="replace"))
        time.sleep(0.1)
    raise AssertionError(f"the console did not get ready: {said}\n{log.read_text()[-3000:]}")
