"""What fits into accounts, and who is told what when it does not."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.policy import accounts
from agents.policy.accounts import NANO, Account, Amounts, Ceilings, Need, Short, fit
from agents.spec import Limit, Limits

OWN = "run:r"


def account(key: str = OWN, **given: object) -> Account:
    return Account(key=key, **given)  # type: ignore[arg-type]


def need(input_tokens: int = 100, output_tokens: int = 8000, **given: object) -> Need:
    """At $0.50 and $1.50 per million."""
    priced = {"usd": input_tokens * 500, "usd_per_token": Decimal(1500)}
    return Need(input_tokens=input_tokens, output_tokens=output_tokens, **(priced | given))  # type: ignore[arg-type]


def test_without_limits_the_whole_output_fits() -> None:
    assert fit(need(), [account(limit=Ceilings())], OWN) == 8000


def test_the_output_is_lowered_to_what_fits() -> None:
    assert fit(need(), [account(limit=Ceilings(tokens=5000))], OWN) == 4900
    assert fit(need(), [account(limit=Ceilings(usd=3_050_000))], OWN) == 2000


def test_below_the_floor_the_call_is_refused_with_the_numbers() -> None:
    short = fit(need(), [account(limit=Ceilings(usd=NANO // 50), spent=Amounts(usd=19_000_000))], OWN)
    assert isinstance(short, Short)
    assert (short.fuse, short.waits) == ("max_cost", False)
    assert short.explanation == "$0.001 of $0.02 left, a model call may take $0.001586"


def test_a_cap_below_the_floor_is_the_floor() -> None:
    assert fit(need(output_tokens=200), [account(limit=Ceilings(tokens=300))], OWN) == 200


def test_what_others_hold_is_waited_for() -> None:
    holding = account(limit=Ceilings(tokens=9000), held=Amounts(tokens=8500))
    short = fit(need(), [holding], OWN)
    assert isinstance(short, Short) and short.waits and "8500 tokens held by other calls" in short.explanation


def test_the_account_that_will_never_do_is_named_first() -> None:
    waits = account("run:parent", limit=Ceilings(tokens=9000), held=Amounts(tokens=8500))
    never = account(limit=Ceilings(calls=3), spent=Amounts(calls=3))
    short = fit(need(), [waits, never], OWN)
    assert isinstance(short, Short) and (short.fuse, short.waits) == ("max_model_calls", False)


@pytest.mark.parametrize(
    ("key", "fuse"),
    [
        ("run:r", "max_cost"),
        ("agent:default:2026-01-01", "agent_max_cost_per_day"),
        ("fleet:2026-01-01", "fleet_max_cost_per_day"),
        ("credential:a:ever", "credential_limit"),
    ],
)
def test_each_account_has_its_own_fuse(key: str, fuse: str) -> None:
    short = fit(need(), [account(key, limit=Ceilings(usd=1))], OWN)
    assert isinstance(short, Short) and short.fuse == fuse


def test_without_a_price_no_limit_of_money_is_passed_by() -> None:
    free = need(usd=0, usd_per_token=Decimal(0), priced=False)
    assert fit(free, [account(limit=Ceilings(tokens=10_000))], OWN) == 8000
    short = fit(free, [account(limit=Ceilings(usd=NANO))], OWN)
    assert isinstance(short, Short) and short.fuse == "max_cost" and "no price" in short.explanation


def test_the_spare_is_kept_for_the_last_word_alone() -> None:
    kept = account(limit=Ceilings(tokens=4000), spare=Amounts(tokens=1500))
    assert fit(need(), [kept], OWN) == 2400
    assert fit(need(), [kept], "run:child") == 2400
    assert fit(need(last_word=True), [kept], OWN) == 3900
    assert fit(need(last_word=True), [kept], "run:child") == 2400


def test_far_from_a_limit_calls_are_held_ahead_and_near_it_none() -> None:
    one = need(1000, 9000)
    assert accounts.ahead(one, [account(limit=Ceilings(tokens=5_000_000, calls=300))]) == 16
    assert accounts.ahead(one, [account(limit=Ceilings(tokens=800_000))]) == 5
    half = account(limit=Ceilings(tokens=800_000), spent=Amounts(tokens=380_000))
    assert accounts.ahead(one, [half]) == 2
    assert accounts.ahead(one, [account(limit=Ceilings(tokens=80_000))]) == 1


def test_a_limit_taken_over_from_the_parent_is_kept_by_the_parents_account() -> None:
    limits = Limits(
        max_cost=Limit(value=Decimal(2), source="parent"), max_tokens=Limit(value=Decimal(9), source="agent")
    )
    assert accounts.ceilings_of(limits, {}, root=False) == Ceilings(tokens=9)
    assert accounts.ceilings_of(limits, {}, root=True).calls == 300
    assert accounts.ceilings_of(limits, {"fuses": {"max_model_calls": 7}}, root=False).calls == 7


def test_what_nobody_knows_counts_as_all_that_was_held() -> None:
    held = Amounts(usd=500, tokens=70, calls=1)
    assert accounts.spent_of(None, None, "unknown", held) == held
    assert accounts.spent_of(None, "0", "none", held) == Amounts()
    used = {"input": 4, "output": 3, "cache_read": 2, "reasoning": 3}
    assert accounts.spent_of(used, "0.0000000011", "reported", held) == Amounts(usd=2, tokens=9, calls=1)


amounts = st.builds(Amounts, usd=st.integers(0, 10**7), tokens=st.integers(0, 20_000), calls=st.integers(0, 5))
ceilings = st.builds(
    Ceilings,
    usd=st.none() | st.integers(0, 10**8),
    tokens=st.none() | st.integers(0, 50_000),
    calls=st.none() | st.integers(0, 9),
)
some = st.builds(Account, key=st.sampled_from([OWN, "run:p", "fleet:d"]), limit=ceilings, spent=amounts, held=amounts)


@given(
    st.lists(some, max_size=3),
    st.integers(0, 9000),
    st.integers(1, 9000),
    st.decimals(0, 9000, places=3, allow_nan=False),
)
def test_whatever_fits_passes_no_limit(given: list[Account], tokens: int, output: int, rate: Decimal) -> None:
    asked = Need(input_tokens=tokens, output_tokens=output, usd=tokens * 7, usd_per_token=rate)
    got = fit(asked, given, OWN)
    if isinstance(got, Short):
        return
    assert asked.least <= got <= output
    for one in given:
        after = one.hold(asked.amounts(got))
        for name in accounts.DIMENSIONS:
            left = after.left(name)
            assert left is None or left >= 0
