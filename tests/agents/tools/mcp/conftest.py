"""Real MCP servers for tests: as processes over pipes, and behind an address."""

import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.ids import new_id
from agents.ports import ServerState, Tool
from agents.tools.mcp.config import servers_of
from agents.tools.mcp.tools import McpServers

SERVER = str(Path(__file__).parent / "server.py")


def stdio(*how: str, **more: Any) -> dict[str, Any]:
    return {"name": "t", "command": sys.executable, "args": [SERVER, *(how or ("stdio",))], **more}


class Kit:
    """Servers of one run, with what was told of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.worker = new_id()
        self.told: list[ServerState] = []
        self.servers: list[McpServers] = []

    async def connect(self, *raw: dict[str, Any]) -> dict[str, Tool]:
        marks = {"PILOTHOUSE_RUN": new_id(), "PILOTHOUSE_WORKER": self.worker}
        made = McpServers(servers_of(raw), cwd=str(self.path), environment=marks)
        self.servers.append(made)
        return {tool.spec.name: tool for tool in await made.connect(self.told.append)}


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[Kit]:
    made = Kit(tmp_path)
    yield made
    for servers in made.servers:
        await servers.close(at_once=True)


@pytest.fixture
def port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


class Behind:
    """A server behind an address, which a test may stop and freeze."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.config = {"name": "web", "url": f"http://127.0.0.1:{port}/mcp", "timeout": 20}
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, SERVER, "http", str(self.port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                assert time.monotonic() < until
                time.sleep(0.05)
            else:
                return

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def behind(port: int) -> Iterator[Behind]:
    made = Behind(port)
    yield made
    made.kill()
