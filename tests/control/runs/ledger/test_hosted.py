"""The ledger of a run in its worker: several calls from one hold, given back when idle; days, keys and the fleet."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from agents import kinds
from agents.engine.local import SystemClock
from agents.policy.accounts import NOTHING, Amounts, Ceilings, Grant, Need, Short
from agents.testing import memory_spec
from control.fleet.models import Agent, CredentialState
from control.runs.dbthreads import DbThreads
from control.runs.ledger import book, hosted, orphans, standing
from control.runs.ledger.hosted import HostLedger
from control.runs.models import Account, Reservation, Run
from tests.control.records import make_run, write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("quiet")]
NEED = Need(input_tokens=100, output_tokens=900, usd=100_000, usd_per_token=Decimal(1000))
ONE = Amounts(usd=50_000, tokens=50, calls=1)
WIDE = Ceilings(tokens=5_000_000, calls=300)


@pytest.fixture(autouse=True)
def _no_limits(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.AGENT_DAY_LIMITS = settings.FLEET_DAY_LIMITS = {}
    monkeypatch.setattr(standing, "_read", {})


def _disconnect() -> None:
    connection.close()


@pytest.fixture
async def database(transactional_db: None) -> AsyncIterator[DbThreads]:
    threads = DbThreads(1)
    yield threads
    await threads.once(_disconnect)
    await sync_to_async(_disconnect)()
    threads.close()


Make = Callable[..., HostLedger]


@pytest.fixture
def ledger_of(database: DbThreads) -> Make:
    def make(run: str = "r", agent: str = "default") -> HostLedger:
        spec = memory_spec(id=run, root=run, path=(run,), agent=agent)
        return HostLedger(spec, database, SystemClock(), worker="w", epoch=1)

    return make


async def asked(ledger: HostLedger, call: str = "c", credential: str | None = None) -> Grant | Short:
    return await ledger.reserve(NEED, call=call, attempt=1, credential=credential)


async def granted(ledger: HostLedger, call: str = "c", credential: str | None = None) -> Grant:
    got = await asked(ledger, call, credential)
    assert isinstance(got, Grant), got
    return got


@sync_to_async
def account(key: str = "run:r") -> Any:
    return book.account(key)


async def until(state: Callable[[], Awaitable[Any]]) -> None:
    give_up_at = time.monotonic() + 10
    while not await state():
        assert time.monotonic() < give_up_at
        await asyncio.sleep(0.01)


async def test_sixteen_calls_are_paid_from_one_hold(ledger_of: Make) -> None:
    ledger = ledger_of()
    ledger.open(WIDE, NOTHING)
    for number in range(16):
        ledger.settle(await granted(ledger, f"c{number}"), ONE)
    assert await Reservation.objects.acount() == 1
    ledger.settle(await granted(ledger, "c16"), ONE)
    assert await Reservation.objects.acount() == 2
    await ledger.close()
    now = await account()
    assert (now.held, now.spent) == (NOTHING, ONE * 17)


async def test_near_a_limit_every_call_holds_its_own_need(ledger_of: Make) -> None:
    ledger = ledger_of()
    ledger.open(Ceilings(tokens=4000), NOTHING)
    grant = await granted(ledger)
    assert grant.held == NEED.whole == (await account()).held
    ledger.settle(grant, ONE)
    await ledger.close()
    assert (await account()).spent == ONE


async def test_an_idle_hold_is_given_back(ledger_of: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosted, "IDLE_S", 0.05)
    ledger = ledger_of()
    ledger.open(WIDE, NOTHING)
    ledger.settle(await granted(ledger), ONE)
    assert (await account()).held.calls == 16

    async def given_back() -> bool:
        return bool((await account()).held == NOTHING)

    await until(given_back)
    assert (await account()).spent == ONE
    await ledger.close()


async def test_during_a_long_call_only_its_own_need_stays_held(
    ledger_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosted, "IDLE_S", 0.05)
    ledger = ledger_of()
    ledger.open(WIDE, NOTHING)
    ledger.settle(await granted(ledger, "a"), ONE)
    grant = await granted(ledger, "b")

    async def shrunk() -> bool:
        return bool((await account()).held == NEED.whole)

    await until(shrunk)
    assert (await Reservation.objects.aget()).call == "b"
    ledger.settle(grant, ONE)
    await ledger.close()
    now = await account()
    assert (now.held, now.spent) == (NOTHING, ONE * 2)


async def test_a_hold_that_nobody_waits_for_any_more_is_given_back(ledger_of: Make) -> None:
    ledger = ledger_of()
    ledger.open(Ceilings(tokens=4000), NOTHING)
    asking = asyncio.create_task(asked(ledger))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait({asking})
    await ledger.close()

    async def given_back() -> bool:
        open_ = await Reservation.objects.filter(settled_at=None).aexists()
        return not open_ and (await account()).held == NOTHING

    await until(given_back)


async def test_an_agents_day_is_shared_by_its_runs_and_changed_while_they_run(
    ledger_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "KEEP_S", -1.0)
    made = {"prompt": "x", "created_at": timezone.now(), "created_by": "ann"}
    agent = await Agent.objects.acreate(name="scout", limits={"max_cost_per_day": "0.0015"}, **made)
    first, second = ledger_of("a", "scout"), ledger_of("b", "scout")
    for ledger in (first, second):
        ledger.open(Ceilings(), NOTHING)
    await granted(first)
    short = await asked(second)
    assert isinstance(short, Short) and (short.fuse, short.waits) == ("agent_max_cost_per_day", True)
    agent.limits = {"max_cost_per_day": "0.0030"}
    await agent.asave()
    await granted(second)
    for ledger in (first, second):
        await ledger.close()


async def test_the_fleets_day_begins_with_what_the_record_knows(ledger_of: Make, settings: Settings) -> None:
    settings.FLEET_DAY_LIMITS = {"max_cost_per_day": Decimal("0.50")}

    @sync_to_async
    def spend() -> None:
        run = make_run()
        write(run, kinds.CallStarted(operation="chat", name="m"), call="c-1")
        done = kinds.CallCompleted(operation="chat", name="m", status="ok", cost_usd="0.4995", cost_source="reported")
        write(run, done, call="c-1")

    await spend()
    ledger = ledger_of()
    ledger.open(Ceilings(), NOTHING)
    short = await asked(ledger)
    assert isinstance(short, Short) and (short.fuse, short.waits) == ("fleet_max_cost_per_day", False)


async def test_a_keys_limit_is_held_before_the_call_and_tells_when_it_ends(
    ledger_of: Make, tmp_path: Path, settings: Settings
) -> None:
    (tmp_path / "a.key").write_text("sk-a")
    (tmp_path / "keys.toml").write_text(
        f'[[credential]]\nlabel = "a"\nprovider = "openai"\nbase_urls = ["http://h/v1"]\n'
        f'key_file = "{tmp_path}/a.key"\nlimit_usd = 1\nper = "day"\n'
    )
    settings.CREDENTIALS_FILE = str(tmp_path / "keys.toml")
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    await CredentialState.objects.acreate(label="a", period_nano=999_500_000, period_start=today)
    ledger = ledger_of()
    ledger.open(Ceilings(), NOTHING)
    short = await asked(ledger, credential="a")
    assert isinstance(short, Short) and short.fuse == "credential_limit"
    assert short.until == today + timedelta(days=1)
    await granted(ledger, credential="b")
    await ledger.close()


@pytest.mark.parametrize("ended", [True, False])
def test_what_a_dead_worker_held_for_several_calls_is_settled_by_the_log_if_it_knows_all(ended: bool) -> None:
    run = make_run()
    need = {"tokens": 16_000, "usd": 16_000_000, "calls": 16}
    held = Reservation.objects.create(
        id="r-1", run_id=run.pk, epoch=1, worker="w-1", accounts=["run:x"], at=timezone.now(), **need
    )
    Account.objects.create(key="run:x", **{f"{name}_held": amount for name, amount in need.items()})
    for call in ("c-1", "c-2"):
        write(run, kinds.CallStarted(operation="chat", name="m"), call=call)
        if ended or call == "c-1":
            usage = {"input": 30, "output": 20}
            cost = {"usage": usage, "cost_usd": "0.00005", "cost_source": "price_table"}
            write(run, kinds.CallCompleted(operation="chat", name="m", status="ok", **cost), call=call)
    assert orphans.orphans(timezone.now()) == []
    Run.objects.filter(pk=run.pk).update(epoch=2)
    orphans.settle_orphans()
    held.refresh_from_db()
    now = book.account("run:x")
    assert now is not None and now.held == NOTHING
    assert (held.settled_by, now.spent) == (("log", ONE * 2) if ended else ("held", Amounts(**need)))
