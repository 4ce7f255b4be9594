"""The pieces of a machine that some tests need: is each one there, and if not, how does one get it?"""

import os
import shutil
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Why a test cannot run here, and the command that mends it."""

    what: str
    how: str

    def __str__(self) -> str:
        return f"{self.what} is missing; to get it: {self.how}"


@cache
def chromium() -> str | None:
    """The browser's path: CHROMIUM if set, else the first known name on PATH."""
    names = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if name and (path := shutil.which(name))), None)


def listens(url: str, default_port: int) -> bool:
    """Whether something accepts connections where the URL points."""
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "127.0.0.1", parts.port or default_port), timeout=2):
            return True
    except OSError:
        return False


@cache
def program(name: str) -> str | None:
    """The path of one of the programs of a database server, which are often not on PATH."""
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: float(path.parts[4]))
    return shutil.which(name) or (str(versions[-1]) if versions else None)


@cache
def missing(marker: str) -> Missing | None:
    """What the tests with this marker lack on this machine; None when they can run."""
    if marker == "browser" and not chromium():
        return Missing(what="Chromium", how="apt-get install chromium, or set CHROMIUM to its path")
    if marker == "servers":
        for name, package in (("initdb", "postgresql"), ("postgres", "postgresql"), ("redis-server", "redis-server")):
            if program(name) is None:
                return Missing(what=name, how=f"apt-get install {package}")
    for name, variable, title, port in (
        ("postgres", "DATABASE_URL", "PostgreSQL", 5432),
        ("redis", "REDIS_URL", "Redis", 6379),
    ):
        url = os.environ.get(variable, "")
        if marker == name and not (url and listens(url, port)):
            return Missing(what=f"{title} at {variable}", how=f"start it and set {variable}, or let 'make test' do so")
    return None
