"""The ladder and the strict fuses, by the numbers that were published for them."""

import pytest

from tests.agents.policy.guarding import call, policy, rung_of, walk

FAILS = call("fetch_invoice", {"id": "INV-1", "currency": "USD"}, "Error: timed out", error=True)


def test_ladder_observes_the_second_blocks_the_third_and_stops_at_the_sixth() -> None:
    answer = walk([FAILS] * 8, policy("ladder"))
    assert [rung_of(answer, n) for n in range(1, 7)] == ["none", "observe", "block", "block", "block", "stop"]
    assert answer["executed"] == [1, 2]
    assert answer["final"] == "stop"


def test_ladder_does_not_care_for_the_order_of_keys() -> None:
    other = call("fetch_invoice", {"currency": "USD", "id": "INV-1"}, "Error: timed out", error=True)
    assert rung_of(walk([FAILS, other, FAILS], policy("ladder")), 3) == "block"


@pytest.mark.parametrize("args", [{"id": "inv-1", "currency": "USD"}, {"id": "INV-1 ", "currency": "USD"}])
def test_ladder_is_walked_past_by_another_spelling(args: dict[str, str]) -> None:
    other = call("fetch_invoice", args, "Error: timed out", error=True)
    assert walk([FAILS, other, FAILS, other], policy("ladder"))["final"] == "none"


def test_ladder_counts_a_batch_once() -> None:
    answer = walk([{**FAILS, "batch": 1}] * 5 + [{**FAILS, "batch": 2}], policy("ladder"))
    assert rung_of(answer, 5) == "none"
    assert rung_of(answer, 6) == "observe"


def test_ladder_starts_anew_with_another_identity_of_the_same_tool_only() -> None:
    other_tool, other_id = call("ping", {}), call("fetch_invoice", {"id": "INV-2"}, "Error: timed out", error=True)
    assert rung_of(walk([FAILS, other_tool, FAILS, other_tool, FAILS], policy("ladder")), 5) == "block"
    assert walk([FAILS, other_id, FAILS, other_id, FAILS], policy("ladder"))["final"] == "none"


def test_ladder_by_identity_sees_through_fresh_request_ids() -> None:
    calls = [call("fetch_invoice", {"id": "I", "request_id": n}, "Error", error=True) for n in range(3)]
    keyed = policy("ladder", ladder={"observe": 2, "block": 3, "stop": 6, "identity": {"fetch_invoice": ["id"]}})
    assert rung_of(walk(calls, keyed), 3) == "block"
    exempt = policy("ladder", ladder={"observe": 2, "block": 3, "stop": 6, "identity": {"fetch_invoice": False}})
    assert walk([FAILS] * 9, exempt)["final"] == "none"


def test_ladder_steers_and_escalates_if_it_is_told_to() -> None:
    by = policy("ladder", ladder={"steer": 2, "block": 3, "escalate": 4, "stop": 9}, escalate={"at_most": 2})
    answer = walk([FAILS] * 9, by)
    rungs = [rung_of(answer, n) for n in range(2, 10)]
    assert rungs == ["steer", "block", "escalate", "escalate", "block", "block", "block", "stop"]


def test_strict_trips_on_the_third_identical_call_wherever_it_stands() -> None:
    tests = call("run_tests", {"path": "."}, "1 failed", error=True)
    answer = walk([tests, call("read", {"p": 1}), tests, call("read", {"p": 2}), tests, tests], policy("strict"))
    assert rung_of(answer, 5) == "stop"
    assert answer["verdicts"][-1]["rule"] == "max_identical_calls"
    assert answer["executed"] == [1, 2, 3, 4]


def test_strict_trips_on_the_fifth_content_of_a_file_that_goes_to_and_fro() -> None:
    writes = [call("edit", {"n": n}, edits={"a.py": content}) for n, content in enumerate("ABABA")]
    answer = walk(writes, policy("strict"))
    assert answer["verdicts"][-1] | {"call": 5, "rung": "stop", "rule": "max_oscillations"} == answer["verdicts"][-1]


def test_strict_takes_equal_content_in_a_row_for_no_change() -> None:
    writes = [call("edit", {"n": n}, edits={"a.py": content}) for n, content in enumerate("AAABBBB")]
    assert walk(writes, policy("strict"))["final"] == "none"


def test_strict_trips_on_tokens() -> None:
    by = policy("strict", fuses={"max_tokens": 2_000})
    answer = walk([call("a", {}, tokens=1_500), call("b", {}, tokens=600)], by)
    assert (answer["verdicts"][-1]["rule"], answer["verdicts"][-1]["call"]) == ("max_tokens", 2)
    assert answer["executed"] == [1]


def test_strict_trips_on_the_thirteenth_step() -> None:
    answer = walk([call("read", {"n": n}, f"text {n}") for n in range(20)], policy("strict"))
    assert (answer["verdicts"][-1]["rule"], answer["verdicts"][-1]["call"]) == ("max_steps", 13)


def test_failures_in_a_row_trip_whatever_the_arguments() -> None:
    by = policy("off", stop_when={"max_failures_in_a_row": 3})
    answer = walk([call("t", {"n": n}, f"error {n}", error=True) for n in range(5)], by)
    assert answer["verdicts"][-1]["rule"] == "max_failures_in_a_row"
    assert answer["executed"] == [1, 2, 3]


def test_off_never_speaks() -> None:
    assert walk([FAILS] * 50, policy("off"))["verdicts"] == []
