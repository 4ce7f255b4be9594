"""Two runs in one repository at once: each in its own worktree, the shared checkout untouched, nothing left behind."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_django.fixtures import Settings

from tests.control.runs.processes import House, events, reach, until
from tests.scripted_server import Response, ask_tools, say


def git(where: Path, *words: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    return subprocess.run(
        ["git", "-C", str(where), *identity, *words], check=True, capture_output=True, text=True
    ).stdout


def test_two_runs_in_one_repository_never_see_each_others_edits(
    make_house: Callable[..., House], tmp_path: Path, settings: Settings
) -> None:
    def script(request: Any) -> Response:
        task = next(m["content"] for m in request["messages"] if m["role"] == "user").split()[0]
        results = [m["content"] for m in request["messages"] if m["role"] == "tool"]
        steps = [
            ask_tools(("write_file", {"path": "shared.txt", "content": f"by {task}\n"})),
            ask_tools(("run_command", {"command": "sleep 0.4; cat shared.txt; ls"})),
        ]
        return steps[len(results)] if len(results) < len(steps) else say(results[-1])

    repository = tmp_path / "repository"
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    (repository / "shared.txt").write_text("as it was\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "first")
    (repository / "draft.txt").write_text("not committed\n")
    settings.WORKSPACE_ROOTS = [tmp_path]
    house = make_house(script, WORKSPACE_ROOTS=str(tmp_path))
    house.worker()
    runs = {name: house.begin(name, workspace=str(repository)) for name in ("red", "blue")}
    for name, run in runs.items():
        reach(run, "completed")
        final = events(run)[-1]["data"]["final"]
        assert f"by {name}" in final
        assert "draft.txt" not in final
    # A run is completed a moment before its work is committed to its branch and the worktree removed.
    until(lambda: len(git(repository, "worktree", "list").splitlines()) == 1, what="the worktrees are gone")
    for name, run in runs.items():
        assert git(repository, "show", f"agent/{run}:shared.txt") == f"by {name}\n"
    assert (repository / "shared.txt").read_text() == "as it was\n"
    assert git(repository, "status", "--porcelain") == "?? draft.txt\n"
