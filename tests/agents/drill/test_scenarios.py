"""The scripted models: each plays its part to the end, and a note visibly changes what it does next."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from agents.drill.scenarios import SCENARIOS
from agents.drill.scenarios.tour import MODULE, README
from agents.drill.script import split_notes
from tests.agents.drill.play import Play, workspace_tools


def test_tour_mends_the_bug_and_mentions_the_answer(tmp_path: Path) -> None:
    play = Play("tour", "get it green", workspace_tools(tmp_path, answer="Leave it at that, says Ada"))
    assert play.asked.count("run_command") == 2
    assert play.asked.count("clarify") == 1
    assert "tests are green" in play.final and "Leave it at that, says Ada" in play.final
    assert "price * quantity" in (tmp_path / MODULE).read_text()
    assert not (tmp_path / README).exists()


def test_tour_adds_the_readme_when_the_operator_wants_it(tmp_path: Path) -> None:
    Play("tour", "get it green", workspace_tools(tmp_path, answer="Add a README"))
    assert (tmp_path / README).exists()


def test_tour_on_a_mended_project_finds_nothing_to_mend(tmp_path: Path) -> None:
    tools = workspace_tools(tmp_path)
    Play("tour", "get it green", tools)
    again = Play("tour", "get it green", tools)
    assert "edit_file" not in again.asked
    assert "nothing to mend" in again.final and "tests are green" in again.final


def test_note_to_skip_the_tests_is_obeyed_and_acknowledged(tmp_path: Path) -> None:
    play = Play("tour", "get it green", workspace_tools(tmp_path), notes={2: "skip the tests please"})
    assert "skip the tests please" in play.replies[2].text
    assert "run_command" not in play.asked
    assert "edit_file" in play.asked
    assert "skipped as you asked" in play.final


def test_note_to_answer_now_ends_the_tour(tmp_path: Path) -> None:
    play = Play("tour", "get it green", workspace_tools(tmp_path), notes={1: "answer now"})
    assert play.asked == ["list_files"]
    assert "answer now" in play.final and "as you asked" in play.final


def test_note_that_orders_nothing_is_acknowledged_once(tmp_path: Path) -> None:
    play = Play("tour", "get it green", workspace_tools(tmp_path), notes={3: "mind the cents"})
    assert [i for i, said in enumerate(play.replies) if "mind the cents" in said.text] == [3]


def test_note_after_the_answer_is_a_message_and_gets_its_own_answer() -> None:
    play = Play("chat", "hello", {}, notes={1: "and goodbye"})
    assert "and goodbye" in play.replies[1].text


def test_tour_without_tools_sums_up_honestly(tmp_path: Path) -> None:
    tools = workspace_tools(tmp_path)
    play = Play("tour", "get it green", tools, turns=3)
    text = play.ask({}).text
    assert "4 calls" in text and "run_command" in text and "What is left" in text
    assert not play.ask({}).calls


def test_tour_with_few_tools_still_comes_to_an_end(tmp_path: Path) -> None:
    tools = workspace_tools(tmp_path)
    few = {name: tools[name] for name in ("list_files", "write_file")}
    assert "not green" in Play("tour", "go", few).final


def test_runaway_never_ends_but_for_a_note() -> None:
    tools = {"read_file": lambda path: "no such file"}
    assert Play("runaway", "go", tools, turns=30).asked == ["read_file"] * 30
    assert "as you asked" in Play("runaway", "go", tools, turns=30, notes={5: "stop"}).final


def test_batch_asks_eight_calls_in_one_turn(tmp_path: Path) -> None:
    play = Play("batch", "go sleep=0.01", workspace_tools(tmp_path))
    assert [len(said.calls) for said in play.replies] == [2, 8, 0]
    assert any("sleep 0.01" in str(call.args) for call in play.replies[1].calls)


def test_family_delegates_to_two_at_once_and_reports_both(tmp_path: Path) -> None:
    play = Play("family", "go seconds=1 marker=m7", workspace_tools(tmp_path))
    first = play.replies[0]
    assert [call.name for call in first.calls] == ["delegate", "delegate"]
    assert all("marker=m7" in call.args["task"] and "seconds=1" in call.args["task"] for call in first.calls)
    assert "Sub-task A" in play.final and "Sub-task B" in play.final


@pytest.mark.parametrize("model", ["family", "family-child"])
def test_family_child_is_known_by_its_task_under_either_model(model: str) -> None:
    play = Play(model, "Sub-task A: nap. seconds=4", {"run_command": lambda command: "rested"})
    assert play.asked == ["run_command", "run_command"]


def test_family_child_may_have_a_child_of_its_own(tmp_path: Path) -> None:
    tools = {"run_command": lambda command: "rested", "delegate": lambda task: "done"}
    play = Play("family-child", "Sub-task B: nap. seconds=4 depth=1", tools)
    assert play.asked == ["delegate", "run_command", "run_command"]


def test_tree_starts_eight_parts_that_are_each_hard_to_stop_in_their_way() -> None:
    tools: dict[str, Callable[..., str]] = {
        "delegate": lambda task, detached: "started",
        "run_command": lambda command, timeout: "ended",
    }
    briefs = [call.args["task"] for call in Play("tree", "go trap=1 marker=m7 tokens=3", tools).replies[0].calls]
    assert len(briefs) == 8 and all("marker=m7" in brief for brief in briefs)
    commands = [Play("tree", f"{brief} tokens=3", tools).replies[0].calls for brief in briefs]
    assert [len(calls) for calls in commands] == [1, 1, 0, 1, 0, 1, 1, 0]
    assert sum("trap '' TERM" in call.args["command"] for calls in commands for call in calls) == 3


def test_bench_takes_as_many_turns_as_the_task_says() -> None:
    tools = {"look": lambda: "."}
    assert len(Play("bench", "Take 7 turns", tools).asked) == 7
    assert len(Play("bench", "go", tools, turns=60).asked) == 50
    real = {"write_file": lambda path, content: "written", "read_file": lambda path, start, lines: f"line {start}"}
    assert Play("bench", "Take 4 turns", real).asked == ["write_file", "read_file", "read_file", "read_file"]


def test_slow_says_as_many_tokens_as_asked_at_its_pace() -> None:
    said = Play("slow", "tokens=40 pace_ms=5", {}).replies[0]
    assert len(said.text.split()) == 40
    assert said.pace_s == 0.005
    assert Play("slow", "go", {}).replies[0].pace_s == 0.05


def test_scripted_waits_stay_short(tmp_path: Path) -> None:
    commands: list[str] = []

    def run_command(command: str) -> str:
        commands.append(command)
        return "1 failed\n[exit code 1]"

    own = {"run_command": run_command, "fetch_report": lambda month: "503 Service Unavailable"}
    tools = {**workspace_tools(tmp_path), **own}
    for name in SCENARIOS.keys() - {"slow", "tree"}:  # these are there to be stopped
        for said in Play(name, SCENARIOS[name].task + " seconds=0.2", tools, turns=12).replies:
            assert said.pace_s * len(said.text.split()) <= 0.2
    naps = [float(found) for command in commands for found in re.findall(r"sleep ([\d.]+)", command)]
    assert len(naps) > 6 and max(naps) <= 0.2


@pytest.mark.parametrize(
    ("text", "plain", "notes"),
    [
        ("result", "result", ()),
        ("result\n\n[User note: go on]", "result", ("go on",)),
        ("result\n\n[User note: a [b] c]\n\n[User note: two\nlines]", "result", ("a [b] c", "two\nlines")),
        ("[User note: alone]", "", ("alone",)),
        ("said [User note: inside] the text", "said [User note: inside] the text", ()),
    ],
)
def test_notes_are_told_from_the_text_before_them(text: str, plain: str, notes: tuple[str, ...]) -> None:
    assert split_notes(text) == (plain, notes)
