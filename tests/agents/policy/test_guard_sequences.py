"""Recorded sequences with the verdict expected of the default policy: how many are judged so."""

from tests.agents.policy.guarding import score


def test_recorded_loops_are_caught_and_healthy_runs_left_alone() -> None:
    found = score("sequences.jsonl")
    assert found.caught >= 0.97 * found.loops, found
    assert (found.stopped, found.refused) == (0, 0), found
    assert found.stubbed <= 0.1 * found.healthy, found


def test_our_own_sequences_are_judged_as_they_should_be() -> None:
    found = score("sequences_own.jsonl")
    assert found.caught >= 0.97 * found.loops, found
    assert (found.stopped, found.refused) == (0, 0), found
    assert found.stubbed <= 0.1 * found.healthy, found


def test_sequences_written_blind_are_judged_no_worse_than_at_first_sight() -> None:
    """Written by someone who had not seen the rules. At first sight 22 of 30 loops were caught in time, 1 of 30 healthy
    runs was stopped, none refused, 2 stubbed; what they taught is in the rules since."""
    found = score("sequences_blind.jsonl")
    assert found.caught >= 29, found
    assert (found.stopped, found.refused) == (0, 0), found
    assert found.stubbed <= 2, found
