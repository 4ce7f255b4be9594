"""What a failure is answered with: in which order, after which wait, and when no answer is left."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.errors import ClassifiedError
from agents.policy import recovery
from agents.policy.fault_actions import REASONS, actions
from agents.policy.recovery import (
    Chances,
    Compress,
    FallBack,
    GiveUp,
    LowerOutput,
    Repair,
    Retry,
    Rotate,
    Tried,
    WaitForQuota,
    at_rest,
    decide,
)


def fault(reason: str, retry_after_s: float | None = None, kind: str = "") -> ClassifiedError:
    may = actions(reason, kind)
    return ClassifiedError(
        reason=reason,
        retryable=may.retryable,
        should_compress=may.compress,
        should_rotate_credential=may.rotate,
        should_fallback_model=may.fallback,
        retry_after_s=retry_after_s,
        evidence="",
    )


def step(reason: str, *, after: float | None = None, tried: Tried | None = None, **chances: Any) -> recovery.Step:
    return decide(fault(reason, after), tried or Tried(), Chances(**chances), 0.5)


def test_another_key_comes_before_a_wait_and_a_wait_before_another_model() -> None:
    assert isinstance(step("rate_limit", after=3, key=True, model=True, pooled=True), Rotate)
    assert isinstance(step("rate_limit", after=3, model=True, pooled=True), Retry)
    spent = Tried(failures=2)
    assert isinstance(step("rate_limit", after=3, tried=spent, model=True, pooled=True), FallBack)


@pytest.mark.parametrize("reason", ["overloaded", "server_error", "timeout", "connection", "malformed_response"])
def test_what_passes_by_itself_is_tried_three_times_and_then_at_the_next_model(reason: str) -> None:
    kept = [step(reason, tried=Tried(failures=n)) for n in range(3)]
    assert [type(one) for one in kept] == [Retry, Retry, GiveUp]
    assert isinstance(step(reason, tried=Tried(failures=2), model=True), FallBack)


def test_back_off_doubles_and_is_spread() -> None:
    first, second = step("server_error"), step("server_error", tried=Tried(failures=1))
    assert isinstance(first, Retry) and isinstance(second, Retry)
    assert second.wait_s == 2 * first.wait_s
    waits = {decide(fault("server_error"), Tried(), Chances(), n / 10).wait_s for n in range(11)}  # type: ignore[union-attr]
    assert min(waits) >= 0.5 and max(waits) <= 1.0 and len(waits) == 11


def test_a_named_wait_is_kept_within_bounds() -> None:
    assert 7 <= step("rate_limit", after=7).wait_s <= 7.5  # type: ignore[union-attr]
    assert step("rate_limit", after=1e9).wait_s == recovery.MAX_WAIT_S  # type: ignore[union-attr]
    late = step("rate_limit", after=100, tried=Tried(failures=1, waited_s=250))
    assert isinstance(late, GiveUp) and "250 s" in late.why


def test_a_failure_that_says_nothing_gets_one_careful_retry() -> None:
    assert isinstance(step("unknown"), Retry)
    assert isinstance(step("unknown", tried=Tried(failures=1)), GiveUp)


def test_each_repair_is_tried_once() -> None:
    assert isinstance(step("context_overflow", compress=True), Compress)
    assert isinstance(step("context_overflow", compress=True, tried=Tried(compressed=True)), GiveUp)
    assert isinstance(step("payload_too_large", compress=True), Compress)
    assert isinstance(step("invalid_tool_call_history", repair=True), Repair)
    assert isinstance(step("invalid_tool_call_history", repair=True, tried=Tried(repaired=True)), GiveUp)
    assert isinstance(step("invalid_tool_call_history", tried=Tried(repaired=True), model=True), FallBack)


def test_the_output_cap_is_lowered_once_and_a_prompt_that_fills_the_window_is_compressed() -> None:
    lowered = step("format_error", output_cap=8192)
    assert isinstance(lowered, LowerOutput) and lowered.cap == 8192
    assert isinstance(step("format_error", output_cap=8192, tried=Tried(lowered=True)), GiveUp)
    assert isinstance(step("context_overflow", output_cap=-20, compress=True), Compress)


@pytest.mark.parametrize("reason", ["auth", "permission", "format_error", "model_not_found", "content_policy"])
def test_what_no_wait_cures_fails_at_once_or_goes_to_another_model(reason: str) -> None:
    assert isinstance(step(reason), GiveUp)
    assert isinstance(step(reason, model=True), FallBack)


@pytest.mark.case("A7-13")
def test_money_and_long_limits_pause_the_run() -> None:
    assert step("billing") == WaitForQuota(after_s=None, why="the account has no money left")
    assert isinstance(step("billing", rests_s=3600.0, pooled=True), WaitForQuota)
    assert isinstance(step("billing", key=True, pooled=True), Rotate)
    daily = step("rate_limit", after=18_000, pooled=True, rests_s=18_000.0)
    assert isinstance(daily, WaitForQuota) and daily.after_s == 18_000
    assert isinstance(step("rate_limit", after=18_000, pooled=True, model=True), FallBack)
    worn_out = step("rate_limit", tried=Tried(failures=2), pooled=True, rests_s=20.0)
    assert isinstance(worn_out, WaitForQuota) and worn_out.after_s == recovery.PAUSE_S
    far = step("rate_limit", after=1e9, pooled=True)
    assert isinstance(far, WaitForQuota) and far.after_s == recovery.MAX_PAUSE_S


def test_a_limit_of_a_pool_that_is_not_ours_turns_no_key() -> None:
    shared = decide(fault("rate_limit", 3, kind="shared"), Tried(), Chances(key=True, pooled=True), 0.5)
    assert isinstance(shared, Retry)


def test_keys_at_rest_are_waited_for_if_that_is_not_long() -> None:
    assert isinstance(at_rest(20.0, Tried(), model=True, why="", jitter=0.5), Retry)
    assert isinstance(at_rest(200.0, Tried(), model=True, why="", jitter=0.5), FallBack)
    assert at_rest(200.0, Tried(), model=False, why="w", jitter=0.5) == WaitForQuota(after_s=200.0, why="w")
    assert at_rest(math.inf, Tried(), model=False, why="w", jitter=0.5) == WaitForQuota(after_s=None, why="w")
    assert isinstance(at_rest(20.0, Tried(waited_s=290), model=True, why="", jitter=0.5), FallBack)


@given(
    st.sampled_from(sorted(REASONS)),
    st.one_of(st.none(), st.floats(0, 1e12)),
    st.builds(
        Chances,
        key=st.just(False),
        model=st.just(False),
        rests_s=st.one_of(st.none(), st.floats(0, math.inf)),
        pooled=st.booleans(),
        compress=st.booleans(),
        repair=st.booleans(),
        output_cap=st.one_of(st.none(), st.integers(-10, 100_000)),
    ),
    st.floats(0, 1),
)
def test_whatever_happens_there_is_a_wait_before_each_attempt_and_an_end_to_them(
    reason: str, after: float | None, chances: Chances, jitter: float
) -> None:
    tried = Tried()
    for _ in range(12):
        got = decide(fault(reason, after), tried, chances, jitter)
        if isinstance(got, GiveUp | WaitForQuota):
            assert got.why
            assert not isinstance(got, WaitForQuota) or got.after_s is None or got.after_s <= recovery.MAX_PAUSE_S
            return
        assert 0 < got.wait_s <= recovery.MAX_WAIT_S
        tried = Tried(
            failures=tried.failures + isinstance(got, Retry),
            waited_s=tried.waited_s + got.wait_s,
            compressed=tried.compressed or isinstance(got, Compress),
            repaired=tried.repaired or isinstance(got, Repair),
            lowered=tried.lowered or isinstance(got, LowerOutput),
        )
    raise AssertionError("it goes on for ever")
