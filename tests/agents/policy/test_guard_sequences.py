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
