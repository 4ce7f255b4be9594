"""The default policy on small runs: what it lets through, what it holds, and what sets it back."""

import json
from dataclasses import replace

import pytest

from agents.policy.asked import Answered, Asked
from agents.policy.guard import Guard, refuses
from agents.policy.verdict_texts import hint, refusal, stub
from agents.verdicts import BlockMode, Rung
from tests.agents.policy.guarding import call, policy, rung_of, user, walk

FAILS = call("fetch", {"id": 1}, "Error: upstream timed out", error=True)


def test_third_call_after_two_equal_errors_is_refused() -> None:
    answer = walk([FAILS] * 4)
    assert [rung_of(answer, n) for n in (1, 2, 3, 4)] == ["none", "observe", "block", "block"]
    assert answer["executed"] == [1, 2]
    assert answer["verdicts"][1]["mode"] == "refuse"


@pytest.mark.parametrize(
    "spellings",
    [
        [{"id": 1, "cur": "USD"}, {"cur": "USD", "id": 1}, {"id": "1", "cur": "usd "}],
        [{"id": 1, "request_id": "a1"}, {"id": 1, "request_id": "b2"}, {"id": 1.0, "request_id": "c3"}],
        [{"id": "INV 9"}, {"id": "inv  9"}, {"id": "INV 9 "}],
    ],
)
def test_another_spelling_is_the_same_call(spellings: list[dict[str, object]]) -> None:
    answer = walk([call("fetch", args, "Error: upstream timed out", error=True) for args in spellings])
    assert rung_of(answer, 3) == "block"


def test_same_call_several_times_in_one_message_counts_once() -> None:
    answer = walk([{**FAILS, "batch": 1}] * 5 + [{**FAILS, "batch": 2}] * 2)
    assert answer["executed"] == [1, 2, 3, 4, 5, 6, 7]
    assert {one["rung"] for one in answer["verdicts"]} == {"observe"}


def test_changing_answers_are_progress() -> None:
    answer = walk([call("check_job", {"id": 7}, f"running {percent} %") for percent in range(0, 100, 4)])
    assert answer["final"] == "none"


def test_read_is_verified_before_it_is_stubbed() -> None:
    reads = [call("read_file", {"path": "a.txt"}, text) for text in ["one", "one", "one", "one", "two", "two"]]
    answer = walk(reads)
    assert answer["verdicts"][1]["mode"] == "stub"
    assert rung_of(answer, 5) == "observe"
    assert answer["executed"] == [1, 2, 3, 4, 5, 6]


def test_edit_between_makes_a_test_worth_running_again() -> None:
    calls = []
    for n in range(8):
        calls += [
            call("edit_file", {"path": "a.py", "old": str(n), "new": str(n + 1)}, edits={"a.py": f"x = {n}"}),
            call("run_command", {"command": "pytest -q"}, "12 passed"),
        ]
    assert walk(calls)["final"] == "none"


def test_remarks_and_papers_do_not_excuse_a_failing_test_for_ever() -> None:
    calls = []
    for n in range(8):
        calls += [
            call("edit_file", {"path": "README.md", "old": str(n), "new": "x"}, edits={"README.md": f"v{n}"}),
            call("run_command", {"command": "pytest -q"}, "FAILED test_a - assert 1 == 2", error=True),
        ]
    assert walk(calls)["final"] in ("block", "stop")


def test_mail_is_not_sent_a_third_time() -> None:
    mail = {"to": "ann@x.io", "subject": "Hello", "body": "We are late."}
    answer = walk([call("send_email", mail, json.dumps({"id": f"m-{n}a7"})) for n in range(4)])
    assert answer["executed"] == [1, 2]


def test_mail_to_many_people_is_work() -> None:
    assert (
        walk([call("send_email", {"to": f"p{n}@x.io", "body": "We are late."}, "sent") for n in range(30)])["final"]
        == "none"
    )


def test_word_of_a_person_starts_the_counts_anew() -> None:
    answer = walk([FAILS, FAILS, user("I have restarted the upstream, please try it."), FAILS, FAILS])
    assert answer["executed"] == [1, 2, 4, 5]


def test_mere_nudge_is_no_news() -> None:
    answer = walk([FAILS, FAILS, user("please continue"), FAILS])
    assert rung_of(answer, 4) == "block"


def test_repeats_that_a_person_ordered_are_let_through() -> None:
    runs = [call("send_probe", {"to": "db-1"}, "sent")] * 6
    assert walk([user("Send the probe six times."), *runs])["final"] in ("none", "observe")


def test_loop_goes_on_across_a_compression() -> None:
    answer = walk([FAILS, FAILS, {"tool": "__compaction__", "args": {}}, FAILS])
    assert rung_of(answer, 4) == "block"


def test_read_after_compression_is_no_repeat() -> None:
    read = call("read_file", {"path": "a.txt"}, "a long text\nof lines")
    answer = walk([read, read, read, {"tool": "__compaction__", "args": {}}, read])
    assert rung_of(answer, 5) == "none"


def test_shadow_speaks_and_does_not_act() -> None:
    answer = walk([FAILS] * 8, policy(shadow=True))
    assert answer["executed"] == list(range(1, 9))
    assert answer["final"] == "none"
    assert all(one["shadow"] for one in answer["verdicts"])


def test_tool_exempt_by_identity_is_never_judged() -> None:
    assert walk([FAILS] * 12, policy(identity={"fetch": False}))["final"] == "none"


def test_identity_by_fields_makes_other_arguments_irrelevant() -> None:
    calls = [call("look", {"url": "https://a.io", "mood": n}, "Error: gone away", error=True) for n in range(3)]
    assert rung_of(walk(calls, policy(identity={"look": ["url"]})), 3) == "block"


def test_declared_poll_has_a_longer_leash() -> None:
    polls = [call("check_job", {"id": 7}, "pending")] * 14
    assert walk(polls, hints={"check_job": {"poll": True}})["final"] == "observe"
    assert walk(polls)["final"] == "block"


def test_read_only_hint_beats_the_name() -> None:
    calls = [call("send_query", {"q": "a"}, "row 1\nrow 2")] * 4
    assert {one.get("mode") for one in walk(calls, hints={"send_query": {"read_only": True}})["verdicts"]} <= {
        None,
        "stub",
    }


def test_dear_repeats_are_stopped_early() -> None:
    answer = walk([call("summarise", {"doc": 1}, "The same summary.", cost_usd=0.5)] * 10)
    assert answer["verdicts"][-1] | {"rung": "stop"} == answer["verdicts"][-1]
    assert answer["verdicts"][-1]["call"] <= 8


def test_stronger_model_takes_the_turn_at_most_as_often_as_the_policy_says() -> None:
    by = policy(escalate={"model": "big", "at_most": 1})
    answer = walk([FAILS] * 5, by)
    assert [rung_of(answer, n) for n in (3, 4)] == ["escalate", "block"]


def _play(guard: Guard, numbers: range) -> list[Rung | None]:
    rungs = []
    for n in numbers:
        verdict = guard.judge(Asked(call=n, batch=n, tool="fetch", args={"id": 1}))
        if verdict is None or not refuses(verdict):
            guard.observe(n, Answered(text="Error: no", is_error=True))
        rungs.append(verdict.rung if verdict else None)
    return rungs


def test_state_survives_a_restart_as_plain_json() -> None:
    whole = _play(Guard(policy()), range(1, 7))
    first = Guard(policy())
    begun = _play(first, range(1, 3))
    state = json.loads(json.dumps(first.state()))
    assert begun + _play(Guard(policy(), state), range(3, 7)) == whole


def test_call_told_twice_counts_once() -> None:
    guard = Guard(policy())
    _play(guard, range(1, 3))
    assert _play(guard, range(1, 3)) == [None, None]
    assert guard.judge(Asked(call=3, batch=3, tool="fetch", args={"id": 1})) is not None
    assert guard.observe(99, Answered(text="never asked")) is None


def test_verdict_names_evidence_and_a_way_out() -> None:
    guard = Guard(policy())
    for n in (1, 2):
        guard.judge(Asked(call=n, batch=n, tool="fetch", args={"id": 1}, tokens=500, cost_usd=0.01))
        guard.observe(n, Answered(text="Error: no", is_error=True))
    verdict = guard.judge(Asked(call=3, batch=3, tool="fetch", args={"id": 1}))
    assert verdict is not None
    assert (verdict.rule, verdict.mode, verdict.evidence) == ("repeat_error", BlockMode.REFUSE, (1, 2))
    assert (verdict.wasted_tokens, verdict.wasted_usd, verdict.step, verdict.count) == (500, "0.01", 3, 2)
    assert "Not run" in refusal(verdict)
    assert "answered the same" in stub(verdict, "a")
    weighed = stub(replace(verdict, rule="stagnation"), "3 of 8 are up\n" + "x" * 900)
    assert weighed.startswith("Unchanged but for details") and "call" not in weighed.split("answered")[0]
    assert "3 of 8 are up" in weighed and len(weighed) < 700
    assert "Guard" in hint(verdict)


def test_spawning_has_an_end() -> None:
    calls = [call("delegate", {"task": f"part {n} of the report on topic {n}"}, f"done: {n} pages") for n in range(40)]
    answer = walk(calls)
    assert rung_of(answer, 33) == "block"
    assert rung_of(answer, 20) == "none"


def test_file_that_goes_back_and_forth_is_left_alone_in_the_end() -> None:
    calls = [
        call("write_file", {"path": "a", "content": content}, edits={"a": content})
        for content in ["1", "2", "1", "2", "1", "2"]
    ]
    answer = walk(calls)
    assert rung_of(answer, 5) == "block"
    assert 5 not in answer["executed"]


def test_fold_over_a_log_with_stubs_learns_what_the_run_had_learnt() -> None:
    live, fold = Guard(policy()), Guard(policy())
    for n in range(1, 9):
        asked = Asked(call=n, batch=n, tool="read_file", args={"path": "a.txt", "offset": n})
        verdict = live.judge(asked)
        assert fold.judge(asked) == verdict
        settled = live.observe(n, Answered(text="one line\nand another line\nand a third"))
        if settled is not None and settled.mode is BlockMode.STUB:
            kept = json.loads(json.dumps(live.heard(n)))
            assert fold.observe(n, Answered(text=stub(settled, "a"), heard=kept)) == settled
        else:
            fold.observe(n, Answered(text="one line\nand another line\nand a third"))
    assert fold.state() == live.state()
