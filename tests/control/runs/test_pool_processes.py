"""A worker in a process of its own, with keys from a file: what it does with them, and that they are nowhere after."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from control.fleet.models import CredentialState
from tests.control.runs.pools import CANARY, credentials_file, whole_database
from tests.control.runs.processes import House, answered, events, reach
from tests.scripted_server import Response, ask_tools, say, status

pytestmark = [pytest.mark.chaos]
MakeHouse = Callable[..., House]
# What a model may be brought to run: everything that its worker lets a tool see.
PEEK = "env; cat /proc/$PPID/environ | tr '\\0' '\\n' | grep -c . ; echo looked"


@pytest.fixture
def keyed_house(
    make_house: MakeHouse, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[[Any], Response]], House]:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    keys = tmp_path / "keys"
    keys.mkdir()

    def make(script: Callable[[Any], Response]) -> House:
        house = make_house(script, CREDENTIALS_FILE=str(keys / "credentials.toml"))
        settings.CREDENTIALS_FILE = str(credentials_file(keys, house.model_url, "ab"))
        return house

    return make


def everything(house: House) -> dict[str, str]:
    """All that a house leaves behind: the database, and every file but the keys' own."""
    found = {"database": whole_database()}
    for path in house.root.rglob("*"):
        if path.is_file() and path.suffix != ".key" and "sqlite3" not in path.name:
            found[str(path)] = path.read_bytes().decode("utf-8", "replace")
    return found


def test_a_key_that_its_provider_quotes_is_in_no_row_event_or_log(keyed_house: Callable[..., House]) -> None:
    def script(request: Any) -> Response:
        if not answered(request):
            return ask_tools(("run_command", {"command": PEEK}))
        said = f"Incorrect API key provided: {CANARY}a"
        return status(401, body={"error": {"message": said, "code": "invalid_api_key"}})

    house = keyed_house(script)
    house.worker()
    run = house.begin(credential="a")
    reach(run, "failed", "waiting")
    chats = [event["data"] for event in events(run) if event["kind"] == "call.started" and "model" in event["data"]]
    assert {chat["credential"] for chat in chats} == {"a"}
    assert CredentialState.objects.exists()
    assert any("looked" in text for text in everything(house).values())
    assert [name for name, text in everything(house).items() if CANARY in text] == []


def test_two_runs_at_once_take_a_key_each(keyed_house: Callable[..., House]) -> None:
    house = keyed_house(lambda request: say("done"))
    house.worker()
    runs = [house.begin("one"), house.begin("two")]
    for run in runs:
        reach(run, "completed", "failed")
    used = [event["data"]["credential"] for run in runs for event in events(run) if event["kind"] == "call.started"]
    assert sorted(used) == ["a", "b"]
