"""Backtests: what four policies would have done to runs whose truth is known, and how the work gets done."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from agents.spec import Status
from control.fleet.policies import ensure_shipped
from control.incidents.backtest import asking, crew, work
from control.incidents.backtest.asking import Question
from control.incidents.models_backtest import Backtest, BacktestPiece, BacktestResult
from control.runs.models import Run
from control.runs.refusals import StartRefused
from control.runs.selection import Selection
from tests.control.incidents.recording import Made, record, record_all

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]
ALL = ("off", "strict", "ladder", "default")


@pytest.fixture(autouse=True)
def _shipped() -> None:
    ensure_shipped()


def reads(count: int, tokens: int = 1_000) -> list[Made]:
    """Healthy work: every file once, every answer new."""
    return [
        Made(tool="read_file", args={"path": f"src/m{n}.py"}, result=f"def f{n}(): return {n}\n" * 9, tokens=tokens)
        for n in range(count)
    ]


def same_error(count: int) -> list[Made]:
    args = {"path": "gone.py"}
    return [Made(tool="edit_file", args=args, result="error: the old text is not there", failed=True)] * count


def back_and_forth(count: int) -> list[Made]:
    """Contents A B A B … of one file, each written by a call that no other is equal to."""
    return [
        Made(tool="write_file", args={"path": "a.txt", "note": n}, writes={"a.txt": "AB"[n % 2]}) for n in range(count)
    ]


def asked(*policies: Any, **filter: Any) -> Backtest:
    chosen = Selection.of(**{"all": True, **filter})
    return asking.ask(Question(policies=policies or ALL, chosen=chosen), by="ann")


def judged(made: Backtest) -> list[dict[str, Any]]:
    """The figures, after all pieces were done here."""
    for piece in made.pieces.order_by("number"):
        work.judge(piece.pk)
    made.refresh_from_db()
    assert made.state == Backtest.State.DONE
    assert made.figures is not None
    return made.figures


# --- an independent calculation: counters over the calls, nothing of the guard ---------------------------------------


def strict_stops(story: Sequence[Made]) -> int | None:
    """The step at which `strict` ends a run: 12 steps, 80,000 tokens, 2 identical calls, 2 ways back."""
    tokens, calls, contents, back = 0, Counter[str](), list[str](), 0
    for step, one in enumerate(story, 1):
        tokens += one.tokens
        calls[f"{one.tool} {sorted(one.args.items())}"] += 1
        if step > 12 or tokens > 80_000 or max(calls.values()) > 2:
            return step
        for content in one.writes.values():
            back += content in contents and contents[-1] != content
            contents.append(content)
        if back > 2:
            return step
    return None


def ladder_says(story: Sequence[Made]) -> tuple[int, int | None]:
    """How many calls `ladder` refuses, and the step at which it stops: the third to fifth in a row, the sixth."""
    refused, streak, last = 0, 0, None
    for step, one in enumerate(story, 1):
        key = (one.tool, sorted(one.args.items()))
        streak = streak + 1 if key == last else 1
        last = key
        if streak == 6:
            return refused, step
        refused += 3 <= streak < 6
    return refused, None


def default_stops(story: Sequence[Made]) -> int | None:
    """From the table of `default`: the same error stops at its fifth repeat; five ways back to an old content do."""
    if story and story[0].failed:
        return 6 if len(story) >= 6 else None
    if story and story[0].writes:
        return 8 if len(story) >= 8 else None
    return None


def fleet() -> Iterator[tuple[list[Made], Status]]:
    """A thousand runs: most of them healthy, short and long, cheap and dear; the others loop, longer and longer."""
    for n in range(400):
        yield reads(1 + n % 5), Status.COMPLETED
    for n in range(60):
        yield reads(10 + n % 6), Status.COMPLETED
    for n in range(40):
        yield reads(3 + n % 2, tokens=26_000), Status.COMPLETED
    for n in range(300):
        yield same_error(1 + n % 9), Status.INTERRUPTED
    for n in range(200):
        yield back_and_forth(2 + n % 8), Status.FAILED


def test_four_policies_over_a_thousand_runs_come_to_what_counting_by_hand_gives() -> None:
    stories = list(fleet())
    record_all(stories)
    off, strict, ladder, default = judged(asked())
    assert off["runs"] == off["untouched"] == len(stories) == 1_000
    assert (off["stopped"], off["blocked_calls"], off["saved_tokens"]) == (0, 0, 0)

    stops = [(story, at, status) for story, status in stories if (at := strict_stops(story)) is not None]
    assert strict["stopped"] == len(stops)
    assert strict["healthy"]["stopped"] == sum(status is Status.COMPLETED for *_, status in stops) > 0
    assert strict["saved_calls"] == sum(len(story) - at + 1 for story, at, _ in stops)
    # The answer that asked for the call was paid for; what came later was not, a last answer of 500 included.
    after = [sum(one.tokens for one in story[at:]) + 500 * (end is Status.COMPLETED) for story, at, end in stops]
    assert strict["saved_tokens"] == sum(after)

    said = [(story, *ladder_says(story)) for story, _ in stories]
    assert ladder["stopped"] == sum(at is not None for *_, at in said)
    assert ladder["blocked_calls"] == sum(refused for _, refused, _ in said)
    assert ladder["blocked"] == sum(bool(refused) and at is None for _, refused, at in said)
    assert ladder["healthy"]["untouched"] == ladder["healthy"]["runs"] == 500

    assert default["stopped"] == sum(default_stops(story) is not None for story, _ in stories)
    assert default["healthy"]["stopped"] == default["healthy"]["blocked"] == 0


def test_a_result_says_at_which_step_by_which_rule_and_what_it_saves() -> None:
    run = record([*reads(2), *same_error(7)], status=Status.INTERRUPTED)
    made = asked("strict", "ladder")
    judged(made)
    strict, ladder = made.results.order_by("place")
    assert (strict.run_id, strict.outcome, strict.stop_step, strict.stop_turn) == (run.pk, "stopped", 5, 5)
    assert (strict.rule, strict.saved_calls, strict.saved_tokens) == ("max_identical_calls", 5, 4_000)
    assert str(strict.saved_usd) == "0.040000000"
    assert (ladder.first_block_step, ladder.blocked, ladder.stop_step) == (5, 3, 8)
    assert not strict.healthy


def test_turns_and_time_of_a_policy_count_as_well() -> None:
    record(reads(9))
    few = {"name": "few", "fuses": {"max_turns": 4}}
    soon = {"name": "soon", "fuses": {"max_seconds": 1.0}}
    made = asked(few, soon)
    judged(made)
    by_turns, by_time = made.results.order_by("place")
    assert (by_turns.rule, by_turns.stop_step, by_turns.saved_model_calls) == ("max_turns", 5, 6)
    assert by_time.rule == "max_seconds" and by_time.stop_step < 5


def test_a_piece_is_done_once_although_it_comes_twice() -> None:
    record(same_error(8), status=Status.INTERRUPTED)
    made = asked("strict")
    piece = made.pieces.get()
    assert work.judge(piece.pk)
    assert not work.judge(piece.pk)
    assert BacktestResult.objects.count() == 1


def test_a_cancelled_backtest_keeps_what_is_judged_and_judges_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "PIECE_RUNS", 1)
    record_all([(same_error(4), Status.INTERRUPTED)] * 3)
    made = asked("strict")
    first, second, _ = made.pieces.order_by("number")
    work.judge(first.pk)
    assert asking.cancel(made, by="ann") == (True, None)
    assert not work.judge(second.pk)
    made.refresh_from_db()
    told = asking.progress(made)
    assert (made.state, told["done"], told["figures"][0]["stopped"]) == ("cancelled", 1, 1)
    assert asking.cancel(made, by="ann") == (False, "already_cancelled")


def test_a_log_that_cannot_be_judged_fails_its_piece_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "PIECE_RUNS", 1)
    broken, sound = record_all([(same_error(4), Status.INTERRUPTED)] * 2)
    from control.runs.models import Event

    Event.objects.filter(run_id=broken.pk, kind="run.started").update(body="no JSON")
    made = asked("strict")
    for piece in made.pieces.all():
        work.judge(piece.pk)
    made.refresh_from_db()
    assert made.state == Backtest.State.DONE
    assert list(made.results.values_list("run_id", flat=True)) == [sound.pk]
    assert made.pieces.get(state=BacktestPiece.State.FAILED).why.startswith("JSONDecodeError")
    assert asking.progress(made)["failed"] == 1


def test_pieces_are_handed_out_a_few_at_a_time_and_again_when_a_process_died(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "PIECE_RUNS", 1)
    record_all([(reads(1), Status.COMPLETED)] * 20)
    sent: list[str] = []
    monkeypatch.setattr(crew.tasks.judge_piece, "apply_async", lambda args, **_: sent.append(args[0]))
    made = asked("strict")
    assert crew.publish(made) == crew.AHEAD
    assert crew.publish(made) == 0
    work.judge(sent[0])
    assert crew.publish(made) == 1
    # Taken, and its process died: due again once the claim is over.
    work._claimed(sent[1], "dead")
    made.pieces.filter(pk=sent[1]).update(until="2020-01-01T00:00:00Z")
    crew.publish(made)
    assert sent.count(sent[1]) == 2
    assert work.judge(sent[1])


def test_only_runs_that_are_over_and_meant_are_asked_about() -> None:
    old = record(reads(1), agent="night")
    record(reads(1), agent="day")
    Run.objects.create(id="0" * 36, root="0" * 36, path="0" * 36, owner="a", agent="night", created_at=old.created_at)
    made = asked("strict", agent="night")
    assert made.pieces.get().runs == [old.pk]
    with pytest.raises(StartRefused, match="No run that is over matches"):
        asked("strict", agent="nobody")
    with pytest.raises(StartRefused, match="no policy 'nosuch'"):
        asked("nosuch")
    with pytest.raises(StartRefused, match=r"fuses\.max_steps"):
        asked({"fuses": {"max_steps": -1}})
