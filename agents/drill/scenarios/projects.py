"""Tiny Python projects that models work on with real pytest, and what a model does where it finds none."""

import os
import sys
from collections.abc import Mapping

from agents.drill.script import Asked, Conversation, Reply, Step

TEST_COMMAND = "python -m pytest -q"
_IGNORED = "__pycache__/\n.pytest_cache/\n"
# An own configuration: whatever lies further up is not meant for this project.
_CONFIGURED = "[pytest]\npython_files = test_*.py\n"


def project(files: Mapping[str, str]) -> dict[str, str]:
    """The files of a project with what keeps it clean and on its own."""
    return {".gitignore": _IGNORED, "pytest.ini": _CONFIGURED, **files}


def environment() -> dict[str, str]:
    """For the commands of a drill model: this very Python, whose pytest needs none of the plugins beside it."""
    path = os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH") or os.defpath))
    return {"PATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def run_tests(text: str) -> Reply:
    return Reply(text=text, calls=(Asked(name="run_command", args={"command": TEST_COMMAND}),))


def test_runs(conversation: Conversation) -> list[Step]:
    return conversation.done("run_command", command=TEST_COMMAND)


def without_project(conversation: Conversation, files: Mapping[str, str]) -> Reply | None:
    """What to do after a look at the tests that found none: write them, or tell that pytest is missing."""
    runs = test_runs(conversation)
    said = (runs[-1].result or "") if runs else ""
    if "No module named pytest" in said or "not found" in said:
        return Reply(text=f"pytest cannot be run here, so I stop. The command `{TEST_COMMAND}` said: {said.strip()}")
    if "no tests ran" in said and not conversation.done("write_file"):
        calls = tuple(Asked(name="write_file", args={"path": path, "content": text}) for path, text in files.items())
        return Reply(text="There is no project here yet, so I write it first.", calls=calls)
    return None
