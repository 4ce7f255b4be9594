"""The models of a run and their keys: over real HTTP, with the pool in the database."""

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import OperationalError
from pytest_django import Settings

from agents.errors import ConfigError, ModelError
from agents.ports import KeyReport
from agents.providers import close as close_wire
from agents.spec import ModelSpec
from control.fleet import pool
from control.fleet.models import CredentialState
from control.runs import models_pool, specs
from control.runs.dbthreads import DbThreads
from control.runs.models_pool import PooledModels
from tests.control.runs.pools import CANARY, ask, close, credentials_file, picked, rests, row, spec_of, whole_database
from tests.scripted_server import ScriptedServer, say, status

pytestmark = pytest.mark.django_db(transaction=True)
HERE = "http://127.0.0.1:9/v1"
M = ModelSpec(model="m", base_url=HERE)


@pytest.fixture
async def database() -> AsyncIterator[DbThreads]:
    threads = DbThreads(2)
    yield threads
    await close(threads)
    await close_wire()


@pytest.fixture(autouse=True)
def no_other_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def use(settings: Settings, directory: Path, *labels: str, base_url: str = HERE, more: str = "") -> Path:
    file = credentials_file(directory, base_url, labels, more)
    settings.CREDENTIALS_FILE = str(file)
    return file


async def test_a_limit_on_one_key_is_followed_by_success_with_the_next(
    settings: Settings, tmp_path: Path, database: DbThreads
) -> None:
    async with ScriptedServer([status(429, retry_after=30), say("hi"), say("again")]) as server:
        use(settings, tmp_path, "a", "b", base_url=server.base_url)
        models = PooledModels(spec_of(ModelSpec(model="m", base_url=server.base_url)), database, jitter=lambda: 0.0)
        first = await picked(models)
        with pytest.raises(ModelError) as caught:
            await ask(first)
        await models.report(KeyReport(credential=first.credential, reason=caught.value.kind, cooldown_s=30.0))
        second = await picked(models, 0, "a")
        await ask(second)
        await models.report(KeyReport(credential=second.credential, spent_usd="0.25"))
        third = await picked(models)
        await ask(third)
        assert [first.credential, second.credential, third.credential] == ["a", "b", "b"]
        assert second.spec == ModelSpec(model="m", base_url=server.base_url, credential="b")
        assert third.model is second.model, "connected once for each key"
        sent = [request.headers["authorization"] for request in server.requests]
        assert sent == [f"Bearer {CANARY}{label}" for label in "abb"]
    await models.settled(5)
    a, b = await database.once(row, "a"), await database.once(row, "b")
    assert a and (a.health, a.failures, a.spent_nano) == ("resting", 1, 0)
    assert b and (b.health, b.failures, b.spent_nano) == ("ok", 0, 250_000_000)


async def test_runs_start_with_different_keys_and_each_stays_with_its_own(
    settings: Settings, tmp_path: Path, database: DbThreads
) -> None:
    use(settings, tmp_path, "a", "b")
    one, two = PooledModels(spec_of(M), database), PooledModels(spec_of(M), database)
    first = [(await picked(one)).credential, (await picked(two)).credential]
    assert sorted(map(str, first)) == ["a", "b"]
    for _ in range(3):
        assert [(await picked(one)).credential, (await picked(two)).credential] == first


async def test_with_all_keys_resting_the_rest_says_until_when_and_why(
    settings: Settings, tmp_path: Path, database: DbThreads
) -> None:
    use(settings, tmp_path, "a", "b")
    models = PooledModels(spec_of(M), database)
    await models.report(KeyReport(credential="a", reason="auth"))
    await models.report(KeyReport(credential="b", reason="rate_limit", cooldown_s=60))
    rest = await rests(models)
    assert rest.until is not None and rest.until - datetime.now(UTC) > timedelta(seconds=50)
    assert "a is dead (auth)" in rest.why and "b rests (rate_limit)" in rest.why
    await models.report(KeyReport(credential="b", reason="billing"))
    assert (await rests(models)).until is None


async def test_a_named_key_is_never_replaced_unless_the_policy_says_rotate(
    settings: Settings, tmp_path: Path, database: DbThreads
) -> None:
    use(settings, tmp_path, "a", "b")
    named = ModelSpec(model="m", base_url=HERE, credential="b")
    strict, free = PooledModels(spec_of(named), database), PooledModels(spec_of(named, credentials="rotate"), database)
    assert (await picked(strict)).credential == (await picked(free)).credential == "b"
    await strict.report(KeyReport(credential="b", reason="rate_limit", cooldown_s=60))
    assert (await rests(strict)).why == "b rests (rate_limit)"
    assert (await picked(free)).credential == "a"
    await database.once(lambda: CredentialState.objects.update(cooldown_until=datetime.now(UTC) - timedelta(seconds=1)))
    assert (await picked(free)).credential == "b", "the named one has its place back when it may"


async def test_places_beyond_the_first_are_the_fallbacks_and_past_the_last_is_an_index_error(
    settings: Settings, tmp_path: Path, database: DbThreads
) -> None:
    use(settings, tmp_path, "a")
    other = ModelSpec(model="claude", base_url="http://127.0.0.1:7/v1", provider="anthropic")
    models = PooledModels(spec_of(M, ModelSpec(model="m2", base_url=HERE), other), database)
    found = [await picked(models, place) for place in range(3)]
    assert [(one.spec.model, one.credential) for one in found] == [("m", "a"), ("m2", "a"), ("claude", None)]
    assert found[2].model.provider == "anthropic"
    for place in (3, -1):
        with pytest.raises(IndexError):
            await models.pick(place)


async def test_a_model_that_needs_no_key_never_meets_the_database(settings: Settings) -> None:
    settings.CREDENTIALS_FILE = ""
    database = DbThreads(1)
    models = PooledModels(spec_of(M), database)
    found = await picked(models)
    await models.report(KeyReport(credential=None, reason="rate_limit"))
    assert found.credential is None and not await database.once(CredentialState.objects.exists)
    await close(database)


async def test_a_key_that_cannot_be_read_or_sent_is_passed_over_and_told_when_none_is_left(
    settings: Settings, tmp_path: Path, database: DbThreads
) -> None:
    use(settings, tmp_path, "a", "b", "c")
    (tmp_path / "a.key").unlink()
    (tmp_path / "b.key").write_text("naïve key")
    models = PooledModels(spec_of(M), database, jitter=lambda: 0.0)
    assert (await picked(models)).credential == "c"
    (tmp_path / "c.key").write_text("")
    rest = await rests(models)
    assert "Credential c has no key: put it into the file" in rest.why and "naïve" not in rest.why
    settings.CREDENTIALS_FILE = "/nowhere"
    gone = await rests(models)
    assert gone.until is None and "cannot be read" in gone.why


async def test_a_key_that_was_exchanged_is_used_at_the_next_pick(
    settings: Settings, tmp_path: Path, database: DbThreads
) -> None:
    async with ScriptedServer([say("one"), say("two")]) as server:
        use(settings, tmp_path, "a", base_url=server.base_url)
        models = PooledModels(spec_of(ModelSpec(model="m", base_url=server.base_url)), database)
        await ask(await picked(models))
        (tmp_path / "a.key").write_text(f"{CANARY}new")
        await ask(await picked(models))
        assert [request.headers["authorization"][-3:] for request in server.requests] == ["f-a", "new"]


async def test_what_a_run_has_spent_counts_for_its_next_pick(
    settings: Settings, tmp_path: Path, database: DbThreads
) -> None:
    use(settings, tmp_path, "a", more='limit_usd = 1\nper = "month"')
    models = PooledModels(spec_of(M), database)
    await picked(models)
    await models.report(KeyReport(credential="a", spent_usd="1.00"))
    rest = await rests(models)
    assert rest.until is not None and rest.until.day == 1 and "spent its limit of $1" in rest.why


@pytest.mark.parametrize("amount", ["NaN", "-5", "a lot", "", "Infinity"])
async def test_a_cost_that_is_no_amount_counts_as_unknown(
    settings: Settings, tmp_path: Path, database: DbThreads, amount: str
) -> None:
    use(settings, tmp_path, "a")
    await (models := PooledModels(spec_of(M), database)).report(KeyReport(credential="a", spent_usd=amount))
    await models.settled(5)
    state = await database.once(row, "a")
    assert state and state.spent_nano == 0


async def test_a_report_never_raises_and_outlives_the_stop_of_its_run(
    settings: Settings, tmp_path: Path, database: DbThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(settings, tmp_path, "a")
    models = PooledModels(spec_of(M), database)
    real, asked = pool.report, asyncio.Event()
    loop = asyncio.get_running_loop()

    def away_once(*given: object) -> None:
        if not asked.is_set():
            loop.call_soon_threadsafe(asked.set)
            raise OperationalError("the database is away")
        real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(pool, "report", away_once)
    waiting = asyncio.create_task(models.report(KeyReport(credential="a", reason="auth", spent_usd="0.5")))
    await asked.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await models.settled(5)
    state = await database.once(row, "a")
    assert state and (state.health, state.spent_nano) == ("dead", 500_000_000)
    monkeypatch.setattr(pool, "report", lambda *_: 1 / 0)
    await models.report(KeyReport(credential="a", reason="auth"))


def test_a_run_whose_pool_has_no_key_at_all_does_not_begin(settings: Settings, tmp_path: Path) -> None:
    use(settings, tmp_path, "a", "b")
    models_pool.check(spec_of(M))
    (tmp_path / "a.key").unlink()
    models_pool.check(spec_of(M))
    (tmp_path / "b.key").write_text("\x07")
    for model, kind in (
        (M, "no_key"),
        (ModelSpec(model="m", base_url=HERE, credential="b"), "bad_api_key"),
        (ModelSpec(model="m", base_url=HERE, credential="z"), "unknown_credential"),
        (ModelSpec(model="m", base_url="http://127.0.0.1:7/v1", credential="a"), "credential_host_mismatch"),
        (ModelSpec(model="m", base_url=HERE, provider="smoke"), "unknown_provider"),
    ):
        with pytest.raises(ConfigError) as caught:
            models_pool.check(spec_of(model))
        assert caught.value.kind == kind


def test_fallbacks_survive_the_row_and_rows_from_before_them_are_read() -> None:
    spec = spec_of(M, ModelSpec(model="m2", base_url=HERE, provider="anthropic", credential="x"))
    raw = specs.to_json(spec)
    assert specs.from_json(raw) == spec
    del raw["fallbacks"]
    assert specs.from_json(raw).fallbacks == ()
    raw["model"]["something_newer"] = 1
    assert specs.from_json(raw).model == M


async def test_a_key_is_nowhere_but_on_the_wire_to_its_own_host(
    settings: Settings, tmp_path: Path, database: DbThreads, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    echo = {"error": {"message": f"Incorrect API key provided: {CANARY}a", "code": "invalid_api_key"}}
    async with ScriptedServer([status(401, body=echo)]) as server, ScriptedServer([say("hi")]) as stranger:
        use(settings, tmp_path, "a", base_url=server.base_url)
        away = ModelSpec(model="m", base_url=stranger.base_url)
        models = PooledModels(spec_of(ModelSpec(model="m", base_url=server.base_url), away), database)
        found = await picked(models)
        with pytest.raises(ModelError) as caught:
            await ask(found)
        await models.report(KeyReport(credential="a", reason=caught.value.kind, spent_usd="0"))
        rest = await rests(models)
        other = await picked(models, 1)
        await ask(other)
        assert "authorization" not in stranger.requests[0].headers
    out = StringIO()
    await database.once(lambda: call_command("credentials", stdout=out))
    ready = models_pool.Ready(label="a", key=f"{CANARY}a")
    shown = [repr(one) for one in (found, found.model, rest, models, vars(models)["_models"], ready, caught.value)]
    told = [
        await database.once(whole_database),
        caplog.text,
        out.getvalue(),
        str(caught.value),
        str(caught.value.wire),
        *shown,
    ]
    assert "dead (auth)" in out.getvalue()
    assert not [text for text in told if CANARY in text]
