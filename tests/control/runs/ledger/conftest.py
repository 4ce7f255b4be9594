"""A house whose scripted model has a price, and that counts by itself what it has charged."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from control.fleet import agents
from tests.control.runs.conftest import make_house
from tests.control.runs.processes import House
from tests.scripted_server import Response, ask_tools

__all__ = ["make_house"]

CATALOG = '[[model]]\nname = "m"\nprice = { input = "0.50", output = "1.50" }\n'
# Of each answer, unless the request allows less.
OUTPUT = 900


@dataclass(slots=True)
class Till:
    """What the provider charges: input by its length, output by what was allowed."""

    requests: list[Any] = field(default_factory=list)
    usd: Decimal = Decimal(0)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def charge(self, request: Any, output: int = OUTPUT) -> dict[str, Any]:
        """The usage that goes out with the answer."""
        tokens = len(str(request["messages"])) // 4
        allowed = request.get("max_tokens") or request.get("max_completion_tokens") or output
        written = min(output, allowed)
        with self.lock:
            self.requests.append(request)
            self.usd += (tokens * Decimal("0.50") + written * Decimal("1.50")) / 1_000_000
        return {"prompt_tokens": tokens, "completion_tokens": written, "total_tokens": tokens + written}


def look(till: Till, request: Any) -> Response:
    """An answer that always wants to look at something else."""
    used = till.charge(request)
    return ask_tools(("list_files", {"path": "."}), text=f"look {len(till.requests)}", used=used)


@pytest.fixture
def till() -> Till:
    return Till()


@pytest.fixture
def priced_house(
    make_house: Callable[..., House], tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., House]]:
    catalog = tmp_path / "models.toml"
    catalog.write_text(CATALOG)
    monkeypatch.setenv("MODEL_CATALOG", str(catalog))
    settings.AGENT_LIMITS = {}
    agents.ensure_default()

    def make(script: Callable[[Any], Any], **environment: str) -> House:
        return make_house(script, MODEL_CATALOG=str(catalog), **environment)

    yield make
