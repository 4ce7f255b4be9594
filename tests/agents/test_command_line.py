"""`python -m agents` from outside: exit codes, JSON lines, Ctrl-C, and where a key goes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from agents.drill.server import DrillServer
from tests.scripted_server import ThreadedServer, say

HEAVY = ("httpx", "jsonschema", "psutil", "uvicorn", "django", "asyncio")


@pytest.fixture(scope="module")
def server() -> Iterator[DrillServer]:
    with DrillServer() as running:
        yield running


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fresh workspaces go where pytest cleans up."""
    (tmp_path / "fresh").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "fresh"))


def command(*args: str) -> list[str]:
    return [sys.executable, "-m", "agents", *args]


def run(*args: str, answers: str = "", env: Mapping[str, str] | None = None) -> tuple[int, list[dict[str, Any]], str]:
    """Exit code, the JSON lines of standard output, and standard error."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI", "AGENT", "MODEL"))}
    done = subprocess.run(
        command(*args),
        input=answers,
        env={**clean, **(env or {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def at(server: DrillServer, model: str) -> tuple[str, ...]:
    return ("--base-url", server.base_url, "--model", model, "--json")


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["kind"] for event in events]


def test_importing_the_package_takes_less_than_300_ms() -> None:
    def seconds() -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import agents, agents.__main__"], check=True)
        return time.perf_counter() - start

    assert min(seconds() for _ in range(3)) < 0.3


def test_the_command_line_loads_nothing_heavy_before_it_knows_the_command() -> None:
    code = f"import sys, agents.__main__ as m; m.parser(); print([n for n in {HEAVY} if n in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_tour_runs_to_its_answer_in_the_given_directory(server: DrillServer, tmp_path: Path) -> None:
    code, events, asked = run("run", "go", *at(server, "tour"), "--workspace", str(tmp_path), answers="2\n")
    assert code == 0
    assert kinds(events)[0] == "run.queued" and kinds(events)[-1] == "run.completed"
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert "Leave it at that" in events[-1]["data"]["final"]
    assert "Add a README" in asked
    assert (tmp_path / "basket" / "basket.py").exists()


def test_work_on_a_repository_is_committed_to_a_branch_of_its_own(server: DrillServer, tmp_path: Path) -> None:
    repository = tmp_path / "shop"

    def git(*args: str) -> str:
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        return subprocess.run(
            ["git", "-C", str(repository), *who, *args], capture_output=True, text=True, check=True
        ).stdout.strip()

    repository.mkdir()
    git("init", "--quiet", "--initial-branch=main")
    git("commit", "--quiet", "--allow-empty", "-m", "start")
    (repository / "draft.txt").write_text("not committed\n")
    code, events, said = run(
        "run", "go", *at(server, "batch"), "--workspace", str(repository), "--branch", "agent/batch"
    )
    assert code == 0
    assert "stay behind" in said and "work: branch agent/batch" in said
    assert git("ls-tree", "-r", "--name-only", "agent/batch").splitlines() == [
        "notes/alpha.txt",
        "notes/beta.txt",
        "out/delta.txt",
        "out/gamma.txt",
    ]
    assert git("worktree", "list").count("\n") == 0
    assert (git("log", "--format=%s", "main"), git("status", "--porcelain")) == ("start", "?? draft.txt")
    started = next(event for event in events if event["kind"] == "run.started")
    assert started["data"]["branch"] == "agent/batch"


def test_end_of_input_answers_that_nobody_is_there(server: DrillServer, tmp_path: Path) -> None:
    code, events, _ = run("run", "go", *at(server, "tour"), "--workspace", str(tmp_path))
    assert code == 0
    assert "Nobody is here" in events[-1]["data"]["final"]


@pytest.mark.parametrize(
    ("model", "limit", "code", "kind"),
    [
        ("runaway", "--max-turns=3", 3, "run.exhausted"),
        ("runaway", "--max-steps=3", 4, "run.tripped"),
        ("nobody", "--max-turns=3", 6, "run.failed"),
    ],
)
def test_exit_code_says_how_the_run_ended(server: DrillServer, model: str, limit: str, code: int, kind: str) -> None:
    found, events, _ = run("run", "go", *at(server, model), limit)
    assert (found, kinds(events)[-1]) == (code, kind)


def test_tighter_limit_of_the_environment_wins(server: DrillServer) -> None:
    _, events, _ = run("run", "go", *at(server, "runaway"), "--max-turns=9", env={"AGENT_MAX_TURNS": "2"})
    started = next(event for event in events if event["kind"] == "run.started")
    assert started["data"]["limits"]["max_turns"] == {"value": "2", "source": "environment"}
    assert kinds(events).count("turn.started") == 2


def test_sub_agents_tell_their_events_too(server: DrillServer) -> None:
    code, events, _ = run("run", "go seconds=0.2", *at(server, "family"))
    assert code == 0
    assert kinds(events).count("run.completed") == 3
    assert len({event["run"] for event in events}) == 3 and len({event["root"] for event in events}) == 1


def start(*args: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command(*args), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def read_until(process: "subprocess.Popen[str]", kind: str, times: int = 1) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        times -= json.loads(line)["kind"] == kind
        if not times:
            return
    pytest.fail(f"the output ended before {kind}")


def drill_rows(server: DrillServer, marker: str) -> list[dict[str, Any]]:
    address = server.base_url.removesuffix("/v1") + "/drill/requests"
    return list(httpx.get(address, params={"marker": marker}).json()["requests"])


def test_ctrl_c_interrupts_in_order_and_closes_the_socket(server: DrillServer) -> None:
    process = start("run", "go marker=ctrl-c", *at(server, "slow"))
    read_until(process, "call.started")
    deadline = time.monotonic() + 5
    while not (drill_rows(server, "ctrl-c") and drill_rows(server, "ctrl-c")[0]["first_byte"]):
        assert time.monotonic() < deadline
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=10)
    last = json.loads(out.splitlines()[-1])
    assert process.returncode == 5
    assert last["kind"] == "run.interrupted" and last["data"]["stopped"]["verified"]
    assert drill_rows(server, "ctrl-c")[0]["how"] == "client_gone"


def test_second_ctrl_c_ends_the_program_and_its_processes_at_once(server: DrillServer) -> None:
    # A command that ignores TERM keeps an orderly stop waiting, so the second signal comes in the middle of it.
    process = start("run", "go seconds=30", *at(server, "family"))
    read_until(process, "call.started", times=7)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    assert process.returncode in (5, 130)
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "while [ $n -lt 10 ]; do sleep 0.2" not in left


def test_a_reader_that_leaves_ends_the_run(server: DrillServer) -> None:
    process = start("run", "go", *at(server, "runaway"), "--max-turns=5000")
    read_until(process, "turn.started")
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(timeout=20) == 5


def test_key_goes_to_its_own_address_and_nowhere_else() -> None:
    with ThreadedServer(lambda request: say("hello")) as server:
        own = ("run", "go", "--base-url", server.base_url, "--model", "m", "--json")
        home = {"OPENAI_API_KEY": "sk-secret", "OPENAI_BASE_URL": server.base_url}
        assert run(*own, env=home)[0] == 0
        assert run(*own, env={"OPENAI_API_KEY": "sk-secret"})[0] == 0
        assert run(*own, "--api-key-env", "SCRATCH", env={"SCRATCH": "sk-other"})[0] == 0
        sent = [seen.headers.get("authorization") for seen in server.requests]
    assert sent == ["Bearer sk-secret", None, "Bearer sk-other"]


NOWHERE = ("--base-url", "http://127.0.0.1:9/v1", "--model", "m")


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        (("run", "go"), "no_model"),
        (("run", " ", *NOWHERE), "empty_task"),
        (("run", "go", "--base-url", "ftp://x", "--model", "m"), "bad_base_url"),
        (("run", "go", *NOWHERE, "--tools", "fly"), "unknown_tool"),
        (("run", "go", *NOWHERE, "--max-turns", "0"), "bad_limits"),
        (
            ("run", "go", *NOWHERE, "--workspace", "/no"),
            "workspace_missing",
        ),
        (("run", "go", *NOWHERE, "--workspace", "/", "--branch", "b"), "bad_branch"),
        (("drill", "nothing"), "unknown_scenario"),
        (("drill", "--guard", "fence"), "unknown_guard"),
        (("drill", "--runs", "0"), "bad_runs"),
        (("run", "go", *NOWHERE, "--policy", "fence"), "unknown_policy"),
    ],
)
def test_wrong_usage_says_what_to_do_and_exits_2(args: tuple[str, ...], kind: str) -> None:
    code, events, said = run(*args)
    assert (code, events) == (2, [])
    assert said.splitlines()[-1].startswith(f"{kind}: ") and "Traceback" not in said


def test_drill_prints_one_row_of_the_contract_per_scenario_and_guard() -> None:
    code, rows, _ = run("drill", "runaway", "--json", "--runs", "2", "--guard", "all")
    assert code == 0
    fields = "scenario kind guard runs tool_executions model_calls tokens cost_usd outcome"
    assert all(list(row) == fields.split() for row in rows)
    found = {row["guard"]: row for row in rows}
    assert list(found) == ["off", "ladder", "ladder-keyed", "strict", "default"]
    assert (found["off"]["tool_executions"], found["off"]["outcome"]) == (80, "capped")
    assert (found["default"]["tool_executions"], found["default"]["outcome"]) == (4, "tripped")
    assert all(row["tokens"] > 0 and float(row["cost_usd"]) > 0 and row["runs"] == 2 for row in rows)


def test_run_is_guarded_by_the_policy_that_is_named(server: DrillServer, tmp_path: Path) -> None:
    own = tmp_path / "two-steps.toml"
    own.write_text("[fuses]\nmax_steps = 2\n")
    for policy, fuse, rule in (
        ("ladder", None, "ladder"),
        ("strict", "max_identical_calls", None),
        (own, "max_steps", None),
    ):
        code, events, _ = run("run", "go", *at(server, "runaway"), "--policy", str(policy))
        ended = events[-1]["data"]
        assert (code, ended.get("fuse"), ended.get("rule")) == (4, fuse, rule)
        started = next(event for event in events if event["kind"] == "run.started")
        assert started["data"]["policy"] == Path(policy).stem
