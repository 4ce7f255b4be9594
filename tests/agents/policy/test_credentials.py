"""The pool's judgement: whose turn it is, and what an attempt means for its key."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.policy.credentials import (
    LONGEST_NAMED_S,
    LONGEST_REST_S,
    Health,
    KeyState,
    Report,
    Rest,
    after,
    choose,
    period,
    rest_of,
    revived,
)

NOW = datetime(2030, 5, 15, 12, 30, tzinfo=UTC)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def resting(label: str, seconds: float) -> KeyState:
    return KeyState(label=label, health=Health.RESTING, reason="rate_limit", cooldown_until=ago(-seconds), failures=1)


def dead(label: str, reason: str = "auth") -> KeyState:
    return KeyState(label=label, health=Health.DEAD, reason=reason)


def test_the_key_that_was_used_longest_ago_has_its_turn_and_a_new_one_before_it() -> None:
    states = [KeyState(label="a", last_used=ago(5)), KeyState(label="b", last_used=ago(9))]
    assert choose(states, NOW, set(), 0.5) == "b"
    assert choose([*states, KeyState(label="c")], NOW, set(), 0.5) == "c"


def test_of_keys_used_equally_long_ago_the_one_that_spent_least_has_its_turn() -> None:
    states = [KeyState(label="a", spent_usd=Decimal("0.2")), KeyState(label="b", spent_usd=Decimal("0.1"))]
    assert choose(states, NOW, set(), 0.99) == "b"


def test_jitter_decides_between_equals_and_reaches_all_of_them() -> None:
    states = [KeyState(label=label) for label in "abc"]
    assert [choose(states, NOW, set(), jitter) for jitter in (0.0, 0.5, 0.99, 1.0)] == ["a", "b", "c", "c"]


def test_no_dead_resting_spent_or_avoided_key_is_chosen() -> None:
    spent = KeyState(label="spent", limit_usd=Decimal(1), spent_usd=Decimal(1), period_ends=ago(-60))
    states = [dead("dead"), resting("tired", 30), spent, KeyState(label="tried"), KeyState(label="good")]
    assert choose(states, NOW, {"tried"}, 0.0) == "good"


def test_when_all_rest_the_first_one_that_is_back_tells_until_when_and_each_tells_why() -> None:
    found = choose([dead("a"), resting("b", 30), resting("c", 20)], NOW, {"c"}, 0.0)
    assert isinstance(found, Rest)
    assert found.until == ago(-20)
    assert "a is dead (auth) until an operator revives it" in found.why and "b rests (rate_limit)" in found.why


def test_when_only_a_person_can_help_there_is_no_time() -> None:
    for_ever = KeyState(label="b", limit_usd=Decimal(1), spent_usd=Decimal(2))
    found = choose([dead("a", "billing"), for_ever], NOW, set(), 0.0)
    assert isinstance(found, Rest) and found.until is None and "billing" in found.why and "$1" in found.why
    assert isinstance(none := choose([], NOW, set(), 0.0), Rest) and none.until is None


def test_a_key_that_was_only_passed_over_is_back_in_a_moment() -> None:
    found = choose([KeyState(label="a")], NOW, {"a"}, 0.0)
    assert isinstance(found, Rest) and found.until is not None and NOW < found.until <= ago(-1)


def test_a_rest_is_over_at_its_time() -> None:
    assert choose([resting("a", 0)], NOW, set(), 0.0) == "a"
    assert choose([resting("a", -1)], NOW, set(), 0.0) == "a"
    assert rest_of(resting("a", 1), NOW) is not None


def test_a_spent_key_that_also_rests_is_back_when_both_are_over() -> None:
    state = replace(resting("a", 90), limit_usd=Decimal(1), spent_usd=Decimal(1), period_ends=ago(-60))
    assert (rest := rest_of(state, NOW)) is not None and rest.until == ago(-90)


def test_bad_credentials_kill_a_key_and_only_an_operator_revives_it() -> None:
    state = after(KeyState(label="a"), Report(reason="auth"), NOW)
    assert (state.health, state.reason) == (Health.DEAD, "auth")
    assert after(state, Report(), NOW) == state
    assert after(state, Report(reason="rate_limit", cooldown_s=5), NOW) == state
    assert revived(state) == KeyState(label="a")


def test_a_key_without_money_is_dead_unless_the_time_of_the_reset_is_known() -> None:
    assert after(KeyState(label="a"), Report(reason="billing"), NOW).health is Health.DEAD
    told = after(KeyState(label="a"), Report(reason="billing", cooldown_s=3600), NOW)
    assert (told.health, told.reason, told.cooldown_until) == (Health.RESTING, "billing", ago(-3600))


@pytest.mark.parametrize(
    "reason",
    ["permission", "overloaded", "server_error", "timeout", "connection", "context_overflow", "unknown", "cancelled"],
)
def test_what_is_not_the_keys_fault_leaves_it_alone(reason: str) -> None:
    state = KeyState(label="a", failures=2)
    assert after(state, Report(reason=reason), NOW) == state


def test_a_limit_without_a_wait_rests_the_key_longer_each_time_and_a_success_starts_anew() -> None:
    state, now, rests = KeyState(label="a"), NOW, []
    for _ in range(12):
        state = after(state, Report(reason="rate_limit"), now)
        assert state.cooldown_until is not None
        rests.append((state.cooldown_until - now).total_seconds())
        now = state.cooldown_until
    assert rests[:4] == [5, 10, 20, 40] and rests[-1] == LONGEST_REST_S
    assert after(state, Report(), now) == KeyState(label="a")


def test_a_burst_of_failures_is_one_failure_and_a_longer_wait_within_it_counts() -> None:
    first = after(KeyState(label="a"), Report(reason="rate_limit"), NOW)
    assert after(first, Report(reason="rate_limit"), NOW) == first
    assert after(first, Report(reason="rate_limit", cooldown_s=2), NOW) == first
    longer = after(first, Report(reason="rate_limit", cooldown_s=60), NOW)
    assert (longer.failures, longer.cooldown_until) == (1, ago(-60))


def test_a_success_that_began_before_the_rest_does_not_end_it() -> None:
    state = after(resting("a", 60), Report(), NOW)
    assert (state.health, state.cooldown_until, state.failures) == (Health.RESTING, ago(-60), 0)


@pytest.mark.parametrize(("given_s", "rests_s"), [(float("inf"), LONGEST_NAMED_S), (-3.0, 0.0), (float("nan"), 5.0)])
def test_a_wait_that_makes_no_sense_is_bounded(given_s: float, rests_s: float) -> None:
    state = after(KeyState(label="a"), Report(reason="rate_limit", cooldown_s=given_s), NOW)
    assert state.cooldown_until == ago(-rests_s)


@pytest.mark.parametrize(
    ("per", "start", "end"),
    [
        ("hour", datetime(2030, 5, 15, 12, tzinfo=UTC), datetime(2030, 5, 15, 13, tzinfo=UTC)),
        ("day", datetime(2030, 5, 15, tzinfo=UTC), datetime(2030, 5, 16, tzinfo=UTC)),
        ("week", datetime(2030, 5, 13, tzinfo=UTC), datetime(2030, 5, 20, tzinfo=UTC)),
        ("month", datetime(2030, 5, 1, tzinfo=UTC), datetime(2030, 6, 1, tzinfo=UTC)),
    ],
)
def test_a_limit_counts_by_the_clock_of_utc(per: str, start: datetime, end: datetime) -> None:
    assert period(per, NOW.astimezone()) == (start, end)


def test_the_year_turns_within_a_month_of_december() -> None:
    start, end = period("month", datetime(2030, 12, 31, 23, 59, tzinfo=UTC))
    assert (start.month, end) == (12, datetime(2031, 1, 1, tzinfo=UTC))


_moments = st.none() | st.integers(-100, 100).map(lambda s: ago(-s))
_states = st.lists(
    st.builds(
        KeyState,
        label=st.sampled_from("abcdef"),
        health=st.sampled_from(Health),
        cooldown_until=_moments,
        failures=st.integers(0, 9),
        spent_usd=st.decimals(0, 5, places=2),
        limit_usd=st.none() | st.decimals(0, 5, places=2),
        period_ends=_moments.map(lambda at: at and max(at, ago(-1))),
        last_used=_moments,
    ),
    unique_by=lambda state: state.label,
)


@given(_states, st.sets(st.sampled_from("abcdef")), st.floats(0, 1))
def test_whatever_the_pool_holds_the_chosen_key_may_be_used_or_the_end_of_the_rest_lies_ahead(
    states: list[KeyState], avoid: set[str], jitter: float
) -> None:
    found = choose(states, NOW, avoid, jitter)
    if isinstance(found, Rest):
        assert all(state.label in avoid or rest_of(state, NOW) for state in states)
        assert found.until is None or found.until > NOW
    else:
        state = next(state for state in states if state.label == found)
        assert found not in avoid and rest_of(state, NOW) is None
