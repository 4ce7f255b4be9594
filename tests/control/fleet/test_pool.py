"""The pool in the database: shared by threads and processes, changed by conditional updates, free of keys."""

import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connections
from django.db.models import Sum

from agents.policy.credentials import Health, Report, Rest
from control.fleet import pool
from control.fleet.credentials import Credential
from control.fleet.models import CredentialState

pytestmark = pytest.mark.django_db(transaction=True)
NOTHING = Decimal(0)


def key(label: str, **given: object) -> Credential:
    return Credential(label=label, provider="openai", base_urls=("https://a.example/v1",), key_env="K", **given)  # type: ignore[arg-type]


A, B, C = key("a"), key("b"), key("c")


def take(*credentials: Credential, avoid: frozenset[str] = frozenset(), prefer: tuple[str, ...] = ()) -> str | Rest:
    return pool.take(credentials, avoid, prefer, 0.0)


def told(credential: Credential, reason: str | None = None, cooldown_s: float | None = None, usd: str = "0") -> None:
    pool.report(credential.label, credential, Report(reason=reason, cooldown_s=cooldown_s), Decimal(usd))


def state(credential: Credential) -> pool.Seen:
    return pool.seen([credential])[0][credential.label]


def test_keys_take_turns() -> None:
    assert [take(A, B, C) for _ in range(6)] == ["a", "b", "c", "a", "b", "c"]


def test_a_preferred_key_is_kept_without_a_write_while_it_may_be_used() -> None:
    take(A, B)
    version = state(B).version
    assert take(A, B, prefer=("b",)) == "b" and state(B).version == version
    assert take(A, B, prefer=("b", "a"), avoid=frozenset("b")) == "a"
    told(B, "auth")
    assert take(A, B, prefer=("b",)) == "a"


def test_what_one_worker_reports_the_next_pick_of_any_other_knows() -> None:
    told(A, "rate_limit", 60)
    assert take(A, B) == take(A, B) == "b"
    told(B, "billing")
    rest = take(A, B)
    assert isinstance(rest, Rest) and rest.until is not None
    assert timedelta(seconds=50) < rest.until - datetime.now(UTC) < timedelta(seconds=61)


def test_a_rest_is_over_at_its_time_and_a_success_makes_the_key_well() -> None:
    told(A, "rate_limit", 60)
    CredentialState.objects.update(cooldown_until=datetime.now(UTC) - timedelta(seconds=1))
    assert take(A) == "a"
    told(A)
    row = CredentialState.objects.get(label="a")
    assert (row.health, row.failures, row.cooldown_until, row.reason) == ("ok", 0, None, None)


def test_a_key_past_its_limit_rests_until_the_period_ends() -> None:
    daily = key("daily", limit_usd=Decimal("0.50"), per="day")
    told(daily, usd="0.30")
    assert take(daily) == "daily"
    told(daily, usd="0.20")
    rest = take(daily)
    assert isinstance(rest, Rest) and rest.until is not None
    assert rest.until.hour == 0 and timedelta(0) < rest.until - datetime.now(UTC) <= timedelta(days=1)
    CredentialState.objects.update(period_start=datetime.now(UTC) - timedelta(days=1, minutes=1))
    assert take(daily) == "daily"
    told(daily, usd="0.10")
    seen = state(daily)
    assert (seen.state.spent_usd, seen.total_usd) == (Decimal("0.1"), Decimal("0.6"))


def test_a_limit_without_a_period_never_starts_anew() -> None:
    told(key("once"), usd="3")
    assert isinstance(rest := take(key("once", limit_usd=Decimal(3))), Rest) and rest.until is None


def test_money_adds_up_to_the_billionth() -> None:
    for _ in range(30):
        told(A, usd="0.000000001")
        told(A, usd="0.1")
    assert state(A).total_usd == Decimal("3.00000003")


def test_a_report_from_before_the_turn_of_the_period_does_not_bring_it_back() -> None:
    daily = key("daily", limit_usd=Decimal(5), per="day")
    tomorrow = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    told(daily, usd="1")
    CredentialState.objects.update(period_start=tomorrow, period_nano=7)
    told(daily, usd="1")
    row = CredentialState.objects.get()
    assert (row.period_start, row.period_nano, row.spent_nano) == (tomorrow, 10**9 + 7, 2 * 10**9)


def test_a_cost_beyond_belief_overflows_nothing() -> None:
    told(A, "auth", usd="1e40")
    assert state(A).state.health is Health.DEAD and state(A).total_usd == pool.DEAREST


def test_a_credential_that_left_the_file_keeps_its_account() -> None:
    pool.report("gone", None, Report(reason="auth"), Decimal("0.25"))
    assert state(key("gone")).state.health is Health.DEAD and state(key("gone")).total_usd == Decimal("0.25")


def test_an_operator_revives_a_dead_key_and_what_it_spent_stays() -> None:
    told(A, "auth", usd="1")
    before, after = pool.revive(A)
    assert (before.health, after.health) == (Health.DEAD, Health.OK)
    assert take(A) == "a" and state(A).total_usd == 1
    assert pool.revive(A)[0] == pool.revive(A)[1]


def test_a_judgement_on_an_outdated_state_is_not_written() -> None:
    take(A)
    old = state(A)
    told(A, "auth")
    assert not pool._change(old, old.state)
    assert state(A).state.health is Health.DEAD


# --- races ----------------------------------------------------------------------------------------------------------


def _closing(work: Callable[[int], object], number: int) -> object:
    try:
        return work(number)
    finally:
        connections.close_all()


@contextmanager
def _crowd(kind: str) -> Iterator[Executor]:
    connections.close_all()
    if kind == "threads":
        with ThreadPoolExecutor(4) as threads:
            yield threads
    else:
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as processes:
            yield processes


def _all(kind: str, work: Callable[[int], object], times: int) -> list[object]:
    with _crowd(kind) as crowd:
        return list(crowd.map(_closing, [work] * times, range(times)))


def _take_one(_: int) -> object:
    return take(A, B, C)


def _spend_some(number: int) -> object:
    return told((A, B)[number % 2], usd="0.01")


def _burst(number: int) -> object:
    return told(A, "rate_limit", None if number % 2 else 30.0, usd="0.01")


def _mixed(number: int) -> object:
    if number == 7:
        told(A, "auth")
    elif number % 3 == 0:
        told(A)
    elif number % 3 == 1:
        told(A, "rate_limit", 1)
    return take(A, B)


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_of_workers_that_ask_at_once_each_gets_the_next_key(kind: str) -> None:
    assert Counter(_all(kind, _take_one, 30)) == {"a": 10, "b": 10, "c": 10}


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_what_many_spend_at_once_is_all_counted(kind: str) -> None:
    _all(kind, _spend_some, 40)
    assert CredentialState.objects.aggregate(all=Sum("spent_nano"))["all"] == 40 * 10_000_000
    assert state(A).total_usd == state(B).total_usd == Decimal("0.2")


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_a_burst_of_limits_from_many_workers_is_one_failure(kind: str) -> None:
    _all(kind, _burst, 24)
    row = CredentialState.objects.get(label="a")
    assert (row.failures, row.health, row.spent_nano) == (1, "resting", 24 * 10_000_000)
    assert row.cooldown_until is not None and row.cooldown_until > datetime.now(UTC) + timedelta(seconds=20)


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_no_race_brings_a_dead_key_back(kind: str) -> None:
    found = _all(kind, _mixed, 30)
    assert state(A).state.health is Health.DEAD
    assert set(found) <= {"a", "b"} and take(A, B) == "b"


def test_what_the_provider_says_of_a_key_is_kept_while_it_is_not_well() -> None:
    sentence = "You requested up to 4096 tokens, but can only afford 310."
    pool.report("a", A, Report(reason="billing", said=sentence), NOTHING)
    assert state(A).state.said == sentence
    pool.revive(A)
    assert state(A).state.said == ""
    pool.report("a", A, Report(reason="rate_limit", cooldown_s=60, said="x" * 1_000), NOTHING)
    told(A)
    assert state(A).state.said == "x" * 240
