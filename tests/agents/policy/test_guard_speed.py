"""What judging costs: little, linear in the size of a call, the same late in a run as early.

Ratios, for machines differ: parsing and checksumming 500 bytes takes 3 microseconds where judging them takes under 100.
"""

import pytest

from agents.policy.guard import Guard
from tests.agents.policy.costing import KINDS, best, floor, judged
from tests.agents.policy.guarding import policy


@pytest.mark.parametrize("kind", KINDS)
def test_call_of_500_bytes_and_of_2_kilobytes_is_judged_quickly(kind: str) -> None:
    small = min(best(kind, 500, rounds=1) / floor("text read", 500) for _ in range(4))
    large = min(best(kind, 2_000, rounds=1, steps=80) / floor("text read", 500) for _ in range(4))
    assert small < 55 and large < 110


@pytest.mark.parametrize("kind", KINDS)
def test_cost_grows_no_faster_than_the_size(kind: str) -> None:
    assert best(kind, 8_000, rounds=2, steps=60) < 16 * best(kind, 500, rounds=2)


@pytest.mark.parametrize("kind", KINDS)
def test_late_call_costs_what_an_early_one_does(kind: str) -> None:
    guard = Guard(policy())
    judged(guard, kind, 200, 10, 4_990)
    # Each late stretch beside an early one, so that a busy machine slows both.
    ratios = [
        judged(guard, kind, 500, 5_000 + 100 * part, 100) / judged(Guard(policy()), kind, 500, 10, 100)
        for part in range(6)
    ]
    assert min(ratios) < 1.5
