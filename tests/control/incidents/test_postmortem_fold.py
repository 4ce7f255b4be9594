"""The report of a run, and its numbers worked out again from the raw log."""

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random

import orjson
import pytest

from agents import kinds
from agents.policy.policies import policy_from, shipped
from agents.policy.recorded import judge_sequence
from agents.policy.sequences import sequence_of
from control.incidents.postmortem.facts import Alert, Allowance, NamedPolicy, Neighbour
from control.incidents.postmortem.fold import NotFinished, report_of
from control.incidents.postmortem.report import Report
from tests.control.incidents.looking_back import facts, recounted
from tests.control.incidents.pace import best_of
from tests.fixtures.night import BEGIN, STATES, TEST, Pen, night

RESULTS = ("ok, 3 found", "nothing", "E  AssertionError", "line 1\nline 2")


def finished(pen: Pen) -> Pen:
    pen.tell(kinds.RunCompleted(final="Done."), turn=False)
    return pen


def wandering(seed: int) -> Pen:
    """A run of one call per turn: some new, some repeated, some that fail first, a file among three contents."""
    chance, pen, held = Random(seed), Pen(), "A"
    pen.begin()
    for turn in range(30):
        usd, read = f"{chance.randint(1, 900) / 10_000:.4f}", chance.randint(100, 9_000)
        if chance.random() < 0.3:
            to = chance.choice("ABC")
            (call,) = pen.ask(("edit_file", {"path": "a.py", "old": held, "new": to}), read=read, usd=usd)
            if to != held:
                pen.write(call, "a.py", STATES[held], STATES[to])
                pen.answer(call, "edit_file", f"now {to}")
            else:
                pen.answer(call, "edit_file", f"nothing to change in turn {turn}")
            held = to
            continue
        if chance.random() < 0.2:
            retry = kinds.CallRetried(
                error={"reason": "overloaded", "status": 529, "message": ""}, action="retry", wait_s=1.0, until="",
                attempt=1, usage={"input": 70, "cache_read": 5, "output": 3}, cost_usd="0.0007", cost_source="reported",
            )  # fmt: skip
            pen.turn = (pen.turn or 0) + 1
            pen.tell(retry, call="m-broken")
            pen.turn -= 1
        name = chance.choice(("read_file", "search_files"))
        (call,) = pen.ask((name, {"path": f"src/{chance.randint(1, 3)}.py"}), read=read, usd=usd)
        pen.answer(call, name, chance.choice(RESULTS), status=chance.choice(("ok", "error", "blocked")))
    return finished(pen)


def check(report: Report, pen: Pen) -> None:
    told, again = report.impact, recounted(pen.bodies)
    for name in ("model_calls", "tool_calls", "edits", "tokens_in", "tokens_out", "cost_usd"):
        assert getattr(told, name) == again[name], name
    assert (told.wasted_calls, told.wasted_usd) == again["wasted"]
    span = datetime.fromisoformat(again["ended"]) - datetime.fromisoformat(again["begun"])
    assert told.duration_s == span.total_seconds()
    assert report.turns[-1].total_usd == again["cost_usd"]


def test_numbers_of_the_night_are_those_of_its_log() -> None:
    pen = night()
    report = report_of(facts(pen))
    check(report, pen)
    assert report.impact.wasted_calls == 47 and report.impact.wasted_usd == Decimal("2.2714")
    tests = report.repeats[0]
    assert (tests.tool, tests.times, tests.answers) == ("run_tests", 27, 3)
    raw = [orjson.loads(body) for body in pen.bodies]
    assert tests.times == sum(e["kind"] == "call.completed" and e["data"]["name"] == "run_tests" for e in raw)


@pytest.mark.parametrize("seed", range(25))
def test_numbers_of_any_run_are_those_of_its_log(seed: int) -> None:
    pen = wandering(seed)
    check(report_of(facts(pen)), pen)


def test_a_file_that_goes_back_and_forth_is_told_by_letters_and_differences() -> None:
    (file,) = report_of(facts(night())).oscillations
    assert file.letters.startswith("A B A B A B C A B") and file.returns == 24
    assert [write.back for write in file.writes[:6]] == [False, True, True, True, True, False]
    change = file.changes[0]
    assert (change.before, change.after, change.times) == ("A", "B", 22)
    assert change.diff is not None
    assert "-    return round(sum(lines), 4)\n+    return round(sum(lines), 2)" in change.diff


def test_each_policy_stops_where_judge_says_and_saves_what_came_after() -> None:
    pen = night()
    report = report_of(facts(pen))
    events = [orjson.loads(body) for body in pen.bodies]
    row = sequence_of(pen.run, events, pen.content_of)
    found = {one.policy: one for one in report.earlier}
    for name in ("default", "strict", "ladder"):
        judged = judge_sequence(row, policy_from(shipped(name), name))["verdicts"][-1]
        stop = found[name].stop
        # The night has no notes before its end, so calls and steps have the same numbers.
        assert judged["rung"] == "stop" and stop is not None and stop.step == judged["call"], name
        paid = [e for e in events if e["kind"] == "call.completed" and e["data"]["operation"] == "chat"]
        after = paid[stop.step :]
        assert found[name].saved_usd == sum(Decimal(e["data"]["cost_usd"]) for e in after)
        assert found[name].saved_model_calls == len(after)
    assert found["strict"].stop is not None and found["strict"].stop.step == 6
    assert found["off"].own and found["off"].stop is None


def test_a_policy_with_a_turn_budget_would_have_ended_it_there() -> None:
    short = NamedPolicy(name="short", version=3, body={"fuses": {"max_turns": 10}})
    (row,) = report_of(facts(night(), policies=[short])).earlier
    assert row.stop is not None and (row.stop.rule, row.stop.turn, row.saved_model_calls) == ("max_turns", 11, 45)


def test_delays_are_from_the_first_wasted_call_to_the_one_who_noticed_and_to_the_stop() -> None:
    delays = report_of(facts(night())).delays
    assert delays.detect.seconds is not None and delays.detect.seconds > 1300
    assert delays.acknowledge.seconds == 70 and delays.acknowledge.how == "an operator's steer"
    assert delays.stop.seconds == pytest.approx(0.038) and "verified" in delays.stop.how


def test_an_alert_that_came_first_is_what_detected_it() -> None:
    at = BEGIN + timedelta(minutes=3)
    alerts = [
        Alert(at=at, kind="opened", text="incident opened (error): repeated calls"),
        Alert(at=at + timedelta(seconds=4), kind="delivered", text="pagerduty trigger sent · 202"),
        Alert(at=at + timedelta(minutes=2), kind="acknowledged", text="acknowledged by an operator", by_person=True),
    ]
    report = report_of(facts(night(), alerts=alerts))
    assert report.delays.detect.end == at and report.delays.acknowledge.seconds == 120
    assert "nobody_paged" not in {one.code for one in report.factors}
    assert "pagerduty trigger sent · 202" in [one.text for one in report.timeline]


def test_factors_are_conditions_with_evidence_and_never_persons() -> None:
    report = report_of(
        facts(
            night(note="ask m.ops"),
            allowances=[Allowance(what="credential main", limit="200", per="month")],
            neighbours=[Neighbour(run="r", agent="importer", overlaps=False)],
        )
    )
    codes = [one.code for one in report.factors]
    assert codes == [
        "no_fuse", "wide_alarm", "same_answer", "oscillation", "guard_off", "shared_checkout", "late_detection",
        "nobody_paged",
    ]  # fmt: skip
    assert all(one.evidence for one in report.factors)
    assert not any("m.ops" in f"{one.title} {one.evidence}" for one in report.factors)
    # Names stay out of the timeline as well: a note's own words are the only place where one may stand.
    assert not any("m.ops" in one.text for one in report.timeline if "steered" not in one.text)


def test_a_fuse_that_was_near_is_no_factor_and_a_far_one_is_called_loose() -> None:
    near = {"max_cost": {"value": "5", "source": "agent"}}
    far = {"max_cost": {"value": "100", "source": "agent"}}
    codes = [{one.code for one in report_of(facts(night(limits=one))).factors} for one in (near, far)]
    assert "loose_fuse" not in codes[0] and "no_fuse" not in codes[0]
    assert "loose_fuse" in codes[1]


def test_failures_that_retries_and_commands_hide_are_told() -> None:
    pen = Pen()
    pen.begin()
    for number in range(4):
        error = {"reason": "server_error", "status": 500, "message": "boom"}
        body = kinds.CallRetried(error=error, action="retry", wait_s=2, until="", attempt=number + 1)
        pen.tell(body, call="m1")
    (call,) = pen.ask(("run_command", {"command": "pytest -q || true"}))
    pen.answer(call, "run_command", "1 failed")
    found = {one.code: one for one in report_of(facts(finished(pen))).factors}
    assert "4 attempts failed with server_error" in found["retries_swallowed"].evidence
    assert "hid how it ended" in found["exception_swallowed"].evidence


def test_a_healthy_run_wasted_nothing_and_has_nothing_to_excuse() -> None:
    pen = Pen()
    pen.begin()
    for number in range(6):
        (call,) = pen.ask(("read_file", {"path": f"src/{number}.py"}))
        pen.answer(call, "read_file", f"def f{number}(): ...")
    report = report_of(facts(finished(pen), status="completed", exit_reason="answered"))
    assert report.impact.wasted_calls == 0 and report.factors == () and report.oscillations == ()
    assert report.milestone is not None and report.milestone.text == "the run answered its task"
    assert all(one.stop is None for one in report.earlier)


def test_two_equal_calls_of_one_batch_repeat_nothing() -> None:
    pen = Pen()
    pen.begin()
    for call in pen.ask(("run_tests", TEST), ("run_tests", TEST)):
        pen.answer(call, "run_tests", "1 failed")
    (call,) = pen.ask(("run_tests", TEST))
    pen.answer(call, "run_tests", "1 failed")
    assert report_of(facts(finished(pen))).impact.wasted_calls == 1


def test_a_run_that_still_goes_on_has_no_postmortem() -> None:
    pen = Pen()
    pen.begin()
    with pytest.raises(NotFinished):
        report_of(facts(pen))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (kinds.RunFailedEvent(error={"reason": "auth", "message": "no key"}), "failed: auth, no key"),
        (kinds.RunLost(worker="w", last_seen=None, why="attempts"), "lost: its worker died"),
        (kinds.RunExhausted(limit="max_turns", final="", final_by="log"), "out of turns"),
        (kinds.RunTripped(step=3, fuse="max_steps"), "tripped by fuse max_steps at step 3"),
    ],
)
def test_every_end_has_a_report_even_without_a_turn(body: kinds.Body, words: str) -> None:
    pen = Pen()
    pen.tell(kinds.RunQueued(agent="a", task="t", labels={}), turn=False)
    pen.tell(body, turn=False)
    report = report_of(facts(pen))
    assert words in report.about.ended and report.impact.cost_usd is None and report.turns == ()


def test_what_is_unknown_is_never_nothing() -> None:
    pen = Pen()
    pen.begin()
    (call,) = pen.ask(("run_tests", TEST))
    pen.answer(call, "run_tests", "1 failed")
    raw = [
        body.replace(b'"cost_usd":"0.02","cost_source":"reported"', b'"cost_usd":null,"cost_source":"unknown"')
        for body in finished(pen).bodies
    ]
    report = report_of(facts(pen, bodies=raw))
    assert report.impact.cost_usd is None and not report.impact.cost_complete
    assert report.impact.wasted_usd is None and report.earlier[0].saved_usd is None


def busy() -> Pen:
    """A run that no policy stops early: ever new reads, edits to new contents, and tests whose figures move."""
    pen, number = Pen(), 0
    pen.begin()
    while len(pen.bodies) < 10_000:
        number += 1
        (call,) = pen.ask(("read_file", {"path": f"src/m{number}.py"}))
        pen.answer(call, "read_file", f"def f{number}(x):\n    return x + {number}\n" * 20)
        (call,) = pen.ask(("edit_file", {"path": f"src/m{number}.py", "old": "x +", "new": f"x * {number} +"}))
        pen.write(call, f"src/m{number}.py", "", f"def f{number}(x):\n    return x * {number}\n" * 20)
        pen.answer(call, "edit_file", f"1 replacement in src/m{number}.py")
        (call,) = pen.ask(("run_command", {"command": "pytest -q"}))
        pen.answer(call, "run_command", f"{number} passed, {2000 - number} failed in 3.1s\n" * 4)
    return finished(pen)


@pytest.mark.parametrize("long", [lambda: night(laps=910), busy])
def test_ten_thousand_events_take_under_two_seconds(long: Callable[[], Pen]) -> None:
    pen = long()
    assert len(pen.bodies) >= 10_000
    took, _ = best_of(lambda: report_of(facts(pen)), below=2)
    print(f"{len(pen.bodies):,} events: {took:.2f} s of work")
    assert report_of(facts(pen)).impact.tool_calls > 1_000 and took < 2, took
