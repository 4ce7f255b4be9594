"""The drill under its guards, over real HTTP with real tools: loops end early, healthy work never feels it."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agents import kinds, providers
from agents.drill import play as drill
from agents.drill.guards import GUARDS, body_of
from agents.drill.scenarios import SCENARIOS, chosen
from agents.drill.scenarios.flaky import EDITS, TEST_RUNS
from agents.drill.scenarios.invoice import VARIANTS
from agents.drill.scenarios.projects import environment
from agents.drill.script import Scenario
from agents.drill.server import DrillServer
from agents.drill.table import PUBLISHED, lines
from agents.engine.alone import LoneRun, Setting
from agents.events import Event
from agents.policy.limits import of_policy
from agents.spec import DEFAULT_PROMPT, ModelSpec
from agents.tools.git import git
from tests.agents.drill.play import Play

LOOPS = [scenario.name for scenario in SCENARIOS.values() if scenario.kind == "loop"]
HEALTHY = [scenario.name for scenario in SCENARIOS.values() if scenario.kind == "healthy"]
INVOICES = [f"invoice-timeout-{variant}" for variant in VARIANTS]
Rows = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def whole() -> tuple[list[dict[str, Any]], float]:
    """Every scenario with a kind under every guard, and how many seconds that took."""
    began = time.monotonic()
    rows = drill.play(chosen(None), guards=GUARDS)
    return rows, time.monotonic() - began


@pytest.fixture(scope="module")
def rows(whole: tuple[list[dict[str, Any]], float]) -> Rows:
    return {(row["scenario"], row["guard"]): row for row in whole[0]}


def test_whole_drill_is_over_in_ninety_seconds(whole: tuple[list[dict[str, Any]], float]) -> None:
    assert whole[1] < 90
    assert len(whole[0]) == len(GUARDS) * (len(LOOPS) + len(HEALTHY))


@pytest.mark.parametrize("name", LOOPS)
def test_unguarded_loop_goes_on_to_the_cap(rows: Rows, name: str) -> None:
    row = rows[name, "off"]
    assert (row["tool_executions"], row["outcome"]) == (drill.CAP_STEPS, "capped")


@pytest.mark.parametrize("name", INVOICES)
def test_default_ends_every_spelling_of_the_invoice_loop_early(rows: Rows, name: str) -> None:
    row = rows[name, "default"]
    assert row["tool_executions"] <= (4 if name.endswith("suffix-tweaks") else 3)
    assert row["model_calls"] <= 10
    assert row["outcome"] == ("completed" if name.endswith("gives-up") else "tripped")


def test_default_ends_the_flaky_night_within_twelve_executions(rows: Rows) -> None:
    row = rows["flaky-test", "default"]
    assert row["tool_executions"] <= 12
    assert row["outcome"] == "tripped"


@pytest.mark.parametrize("name", LOOPS)
def test_default_leaves_a_loop_a_small_share_of_its_calls_and_cost(rows: Rows, name: str) -> None:
    off, row = rows[name, "off"], rows[name, "default"]
    share = 0.30 if name == "flaky-test" else 0.15
    assert row["tool_executions"] <= share * off["tool_executions"]
    assert float(row["cost_usd"]) <= share * float(off["cost_usd"])


@pytest.mark.parametrize("name", HEALTHY)
def test_default_leaves_healthy_work_alone(rows: Rows, name: str) -> None:
    assert {**rows[name, "default"], "guard": "off"} == rows[name, "off"]
    assert rows[name, "default"]["outcome"] == "completed"


def test_ladder_needs_identity_rules_for_other_spellings(rows: Rows) -> None:
    for variant in ("case-alternation", "trailing-blanks", "fresh-request-id", "number-or-text"):
        name = f"invoice-timeout-{variant}"
        assert rows[name, "ladder"]["outcome"] == "capped"
        assert (rows[name, "ladder-keyed"]["tool_executions"], rows[name, "ladder-keyed"]["outcome"]) == (2, "tripped")
    for name in ("poll-job", "cursor-paging"):
        assert rows[name, "ladder"]["outcome"] == "tripped"
        assert rows[name, "ladder-keyed"]["outcome"] == "completed"


# --- one run, looked at closely --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[DrillServer]:
    with DrillServer() as running:
        yield running


def events_of(server: DrillServer, name: str, guard: str, workspace: Path) -> list[Event]:
    """All events of one run of this scenario."""
    seen: list[Event] = []
    scenario, spec = SCENARIOS[name], ModelSpec(model=name, base_url=server.base_url)
    setting = Setting(
        task=scenario.task,
        model=spec,
        prompt=DEFAULT_PROMPT,
        tools=drill.tools_of(scenario),
        workspace=str(workspace),
        limits=of_policy(body_of(guard)),
        policy=guard,
        policy_body=body_of(guard),
        environment=environment(),
    )

    async def answer(question: str, choices: Sequence[str]) -> tuple[str, str]:
        raise AssertionError("nobody was to be asked")

    async def drive() -> None:
        try:
            run = LoneRun(setting, providers.connect(spec, None), lambda event, body: seen.append(event), answer)
            await run.drive()
        finally:
            await providers.close()

    asyncio.run(drive())
    return seen


def rungs(events: Sequence[Event]) -> list[tuple[int | None, str]]:
    return [(event.turn, event.data.rung) for event in events if isinstance(event.data, kinds.VerdictIssued)]


def test_ladder_observes_the_second_blocks_the_third_and_stops_at_the_sixth(
    server: DrillServer, tmp_path: Path
) -> None:
    events = events_of(server, "invoice-timeout-exact", "ladder", tmp_path)
    assert rungs(events) == [(2, "observe"), (3, "block"), (4, "block"), (5, "block"), (6, "stop")]
    assert isinstance(events[-1].data, kinds.RunTripped) and events[-1].data.rule == "ladder"


@pytest.mark.parametrize("name", ["growing-waits", "poll-job"])
def test_default_refuses_and_stubs_nothing_of_healthy_work(server: DrillServer, tmp_path: Path, name: str) -> None:
    assert {rung for _, rung in rungs(events_of(server, name, "default", tmp_path))} <= {"observe"}


# --- the scripts and what is around them -----------------------------------------------------------------------


def test_flaky_night_left_alone_makes_29_test_runs_and_17_edits() -> None:
    tools = {"run_command": lambda command: "1 failed, 1 passed", "edit_file": lambda path, old, new: "Edited."}
    play = Play("flaky-test", "go", tools, turns=60)
    assert (play.asked.count("run_command"), play.asked.count("edit_file")) == (TEST_RUNS, EDITS) == (29, 17)
    assert "I give up after 29 test runs and 17 edits" in play.final


def test_flaky_night_begins_in_a_worktree_of_its_own(tmp_path: Path) -> None:
    place = drill._worktree(SCENARIOS["flaky-test"], "r1", tmp_path)
    assert place.branch == "agent/r1"
    assert git(place.path, "branch", "--show-current") == "agent/r1"
    assert (Path(place.path) / ".git").is_file() and (Path(place.path) / "rounding.py").exists()
    assert git(place.path, "status", "--porcelain") == ""


@pytest.mark.parametrize("name", ["flaky-test", "edit-until-green"])
def test_model_that_finds_no_project_writes_it_first(name: str) -> None:
    answers = iter(["no tests ran in 0.01s\n[exit code 5]", "4 passed in 0.01s"])
    tools = {"run_command": lambda command: next(answers), "write_file": lambda path, content: "written"}
    play = Play(name, "go", tools, turns=3)
    assert play.asked == ["run_command", *["write_file"] * 4, "run_command"]


@pytest.mark.parametrize("name", ["flaky-test", "edit-until-green"])
def test_model_without_pytest_says_so_and_stops(name: str) -> None:
    play = Play(name, "go", {"run_command": lambda command: "/bin/python: No module named pytest\n[exit code 1]"})
    assert "pytest cannot be run here" in play.final


@pytest.mark.parametrize("name", ["poll-job", "cursor-paging", "growing-waits", "same-acknowledgement"])
def test_healthy_model_without_its_tool_sums_up_and_stops(name: str) -> None:
    play = Play(name, "go", {"read_file": lambda path: "there"})
    assert play.asked == []


def test_suffix_comes_only_after_a_refusal() -> None:
    refusals = iter([False, False, True, False, True])
    asked: list[str] = []

    def get_invoice(invoice_id: str, currency: str) -> str:
        asked.append(invoice_id)
        return "Not run. ladder: 3 times the same call." if next(refusals) else "504 Gateway Timeout"

    Play("invoice-timeout-suffix-tweaks", "go", {"get_invoice": get_invoice}, turns=5)
    assert asked == ["INV-100", "INV-100", "INV-100", "INV-100-1", "INV-100-1"]


def test_family_name_stands_for_all_its_variants() -> None:
    assert [scenario.name for scenario in chosen("invoice-timeout")] == INVOICES
    assert chosen("flaky-test") == [SCENARIOS["flaky-test"]]
    assert chosen("nothing") == []


def test_table_adds_up_and_names_what_others_published() -> None:
    def row(scenario: Scenario, guard: str, executions: int, cost: str) -> dict[str, Any]:
        counts = {"runs": 1, "tool_executions": executions, "model_calls": 9, "tokens": 90, "cost_usd": cost}
        return {"scenario": scenario.name, "kind": scenario.kind, "guard": guard, **counts, "outcome": "completed"}

    two = [SCENARIOS[name] for name in INVOICES[:2]]
    found = [row(one, guard, n, cost) for guard, n, cost in (("off", 40, "0.2"), ("default", 2, "0.01")) for one in two]
    said = list(lines(found, as_json=False))
    assert ["loop", "default", "2", "4", "18", "180", "0.0200", "5", "%", "5", "%"] in [line.split() for line in said]
    assert said[-1] == PUBLISHED
    assert len(list(lines(found, as_json=True))) == 4
