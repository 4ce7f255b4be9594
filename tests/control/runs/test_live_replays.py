"""A live replay over real HTTP, at two endpoints that say what they were sent: the key of production goes along only to
where it belongs and only if somebody names it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from agents.spec import Status
from control.runs import replays
from control.runs.models import Run
from control.runs.refusals import StartRefused
from control.runs.replays import Replay
from tests.control.runs.processes import House, answered, reach
from tests.scripted_server import Response, ScriptedServer, ThreadedServer, ask_tools, say

pytestmark = pytest.mark.django_db(transaction=True)
PRODUCTION, SCRATCH, AMBIENT = "sk-canary-of-production", "sk-canary-of-scratch", "sk-canary-of-the-environment"


def script(request: Any) -> Response:
    return say("Done.") if answered(request) else ask_tools(("run_command", {"command": "echo looked"}))


@pytest.fixture
def endpoints() -> Iterator[tuple[ScriptedServer, ScriptedServer]]:
    """Where production answers, and the scratch model."""
    with ThreadedServer(script) as production, ThreadedServer(script) as scratch:
        yield production, scratch


@pytest.fixture
def house(
    endpoints: tuple[ScriptedServer, ScriptedServer],
    tmp_path: Path,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    published: list[str],
) -> Iterator[House]:
    production, scratch = endpoints
    text = ""
    for label, key, server in (("prod", PRODUCTION, production), ("scratch", SCRATCH, scratch)):
        (tmp_path / f"{label}.key").write_text(key)
        text += f'[[credential]]\nlabel = "{label}"\nprovider = "openai"\nbase_urls = ["{server.base_url}"]\n'
        text += f'key_file = "{tmp_path / label}.key"\n'
    (tmp_path / "credentials.toml").write_text(text)
    allowed = [production.base_url, scratch.base_url]
    settings.CREDENTIALS_FILE, settings.ALLOWED_BASE_URLS = str(tmp_path / "credentials.toml"), allowed
    # The provider in one line is the production's as well.
    ambient = {"OPENAI_BASE_URL": production.base_url, "OPENAI_API_KEY": AMBIENT}
    for name, value in ambient.items():
        monkeypatch.setenv(name, value)
    made = House(
        tmp_path,
        production.base_url,
        ALLOWED_BASE_URLS=",".join(allowed),
        CREDENTIALS_FILE=settings.CREDENTIALS_FILE,
        **ambient,
    )
    try:
        yield made
    finally:
        made.close()
        print(made.output())


def keys(server: ScriptedServer) -> list[str | None]:
    """The Authorization header of each request so far, also under the names that other services use."""
    names = ("authorization", "x-api-key", "api-key")
    return [next((seen.headers[name] for name in names if name in seen.headers), None) for seen in server.requests]


def test_no_key_of_production_arrives_anywhere_unless_it_is_named(
    house: House, endpoints: tuple[ScriptedServer, ScriptedServer]
) -> None:
    production, scratch = endpoints
    house.worker()
    run = house.begin(credential="prod")
    reach(run, "completed")
    assert keys(production) == [f"Bearer {PRODUCTION}"] * 2

    def live(server: ScriptedServer, credential: str | None = None) -> list[str | None]:
        """A live replay at this endpoint; the keys that arrived there."""
        before = len(production.requests), len(scratch.requests)
        asked = Replay(live=True, base_url=server.base_url, model="m", credential=credential)
        made = replays.replay(run, asked, by="ann")
        house.publish(made.pk)
        reach(made.pk, "completed")
        other = scratch if server is production else production
        assert len(other.requests) == before[other is scratch], "the other one was not asked at all"
        return keys(server)[before[server is scratch] :]

    assert live(scratch) == [None, None]
    assert live(production) == [None, None], "also where the original's key, and the environment's, would fit"
    assert live(scratch, "scratch") == [f"Bearer {SCRATCH}"] * 2
    assert live(production, "prod") == [f"Bearer {PRODUCTION}"] * 2, "somebody said so"

    count = Run.objects.count()
    for server, credential in ((scratch, "prod"), (production, "scratch")):
        with pytest.raises(StartRefused) as refused:
            live(server, credential)
        assert refused.value.code == "credential_host_mismatch"
    assert Run.objects.count() == count
    # A recorded one asks nobody.
    before = len(production.requests) + len(scratch.requests)
    recorded = replays.replay(run, Replay(), by="ann")
    house.publish(recorded.pk)
    assert reach(recorded.pk, "completed").status == Status.COMPLETED.value
    assert len(production.requests) + len(scratch.requests) == before
