"""Loops and false alarms as they were met in the field."""

import pytest

from agents.policy.chanting import ChantDetector
from tests.agents.policy.guarding import call, policy, rung_of, walk

LATER = 100


@pytest.mark.case("A8-01")
def test_poll_with_changing_answers_or_a_patient_one_goes_on_and_an_endless_one_is_stopped() -> None:
    poll = {"check_job": {"poll": True}}
    moving = [call("check_job", {"id": 7}, text) for text in ["pending 5%", "10%", "30%", "60%", "90%", "done"]]
    assert walk(moving, hints=poll)["final"] == "none"
    patient = [call("check_job", {"id": 7}, "pending")] * 12 + [call("check_job", {"id": 7}, "done")]
    answer = walk(patient, hints=poll)
    assert answer["executed"] == list(range(1, 14))
    assert answer["final"] == "observe"
    endless = walk([call("check_job", {"id": 7}, "pending")] * 200, hints=poll)
    assert endless["final"] == "stop"
    assert len(endless["executed"]) < 60


@pytest.mark.case("A8-04")
def test_parallel_reads_slips_and_redelivered_events_are_no_loop() -> None:
    reads = [call("read_file", {"path": f"f{n}.py"}, f"text {n}", batch=1) for n in range(8)]
    assert walk(reads)["verdicts"] == []
    slip = [call("read_file", {"path": "a.py"}, "text", batch=1)] * 3 + [
        call("read_file", {"path": "a.py"}, "text", batch=2)
    ]
    assert walk(slip)["final"] == "none"


@pytest.mark.case("A8-05")
@pytest.mark.parametrize("odd", [0, 7])
@pytest.mark.parametrize(
    "lap",
    [
        [call("write_file", {"path": "x", "content": "1"}, "written"), call("read_file", {"path": "x"}, "1")],
        [call("read_page", {"id": n}, f"page {n} text") for n in "abc"],
        [call("get_a", {}, "alpha"), call("get_b", {}, "beta")],
    ],
)
def test_cycle_of_successful_calls_is_noticed_by_the_third_lap_and_held_by_the_fifth(lap: list[dict], odd: int) -> None:
    calls = []
    for n, one in enumerate(lap * 12):
        calls.append(one)
        if odd and n % odd == odd - 1:
            calls.append(call("look_around", {"n": n}, f"something new {n}"))
    answer = walk(calls)
    noticed = min(one["call"] for one in answer["verdicts"])
    held = min(one["call"] for one in answer["verdicts"] if one["rung"] in ("block", "stop"))
    slack = 2 if odd else 0
    assert noticed <= 3 * len(lap) + slack
    assert held <= 5 * len(lap) + slack


@pytest.mark.case("A8-07")
def test_volatile_parts_of_arguments_and_answers_hide_nothing() -> None:
    calls = []
    for n in range(20):
        args = [{"a": 1, "b": 2, "path": "dir"}, {"b": 2, "a": 1.0, "path": "dir/"}][n % 2]
        text = f"error at 2025-01-01T00:00:{n:02d}Z req-8f3a{n:02d} pid 4{n:02d}: connection refused"
        calls.append(call("probe", args, text, error=True))
    answer = walk(calls)
    assert rung_of(answer, 3) == "block"
    assert len({one["fingerprint"] for one in answer["verdicts"] if one["rule"] == "repeat_error"}) == 1
    text = "2025-01-01T00:00:0{0}Z req-8f3a0{0} pid 420{0}: refused"
    body = f'{{{{"status":"error","exit_code":1,"text":"{text}","duration_ms":1{{0}}}}}}'
    assert rung_of(walk([call("probe", {}, body.format(n)) for n in range(4)]), 3) == "block"


@pytest.mark.case("A8-08")
def test_warning_leads_to_a_block_and_coming_back_is_blocked_at_once() -> None:
    failing = call("deploy", {"env": "prod"}, "Error: image missing", error=True)
    away = [failing, failing, failing, call("read_file", {"path": "notes"}, "text"), failing]
    answer = walk(away)
    assert [rung_of(answer, n) for n in (2, 3, 5)] == ["observe", "block", "block"]
    stubborn = walk([failing] * LATER)
    assert stubborn["final"] == "stop"
    assert stubborn["executed"] == [1, 2]


@pytest.mark.case("A8-10")
def test_agents_that_pass_the_task_to_each_other_or_start_anew_are_held() -> None:
    passing = [
        call("transfer_to_b", {"task": "fix it"}, "transferred"),
        call("transfer_to_a", {"task": "fix it"}, "transferred"),
    ]
    assert walk(passing * 8)["final"] in ("block", "stop")
    again = [
        call("delegate", {"task": text}, "I could not complete this: no access.")
        for text in [
            "Find out why the nightly export is empty.",
            "Please find out why the nightly export is empty!",
            "Find out why the nightly export has been empty.",
            "Find out why the nightly export is empty. Be thorough.",
            "Find out why the nightly export is empty, again.",
        ]
    ]
    assert rung_of(walk(again), 5) == "block"
    fan_out = [call("delegate", {"task": f"Part {n}"}, f"done {n}") for n in range(40)]
    assert len(walk(fan_out, policy())["executed"]) == 32


def _heard(text: str, *, code: bool = False, piece: int = 7) -> int | None:
    detector = ChantDetector(code=code)
    for at in range(0, len(text), piece):
        if detector.feed(text[at : at + piece]):
            return at
    return None


@pytest.mark.case("A8-11")
def test_stream_that_chants_is_cut_within_a_few_thousand_characters_and_a_table_is_not() -> None:
    at = _heard("Done. " + "court " * 30_000)
    assert at is not None and at < 3_000
    at = _heard("<li>next item</li>" * 2_000)
    assert at is not None and at < 4_000
    at = _heard('{"content": "' + "court " * 30_000, code=True)
    assert at is not None and at < 6_000
    table = "".join(f"| {n} | order {n * 7} | {n % 13} pieces |\n" for n in range(2_000))
    assert _heard(table) is None
    assert _heard("QUJDRA" * 3_000) is None
    assert _heard("```\n" + "0, 0, 0, 0,\n" * 12 + "```\n") is None
    assert _heard("This is an ordinary sentence about the weather. " * 2) is None
