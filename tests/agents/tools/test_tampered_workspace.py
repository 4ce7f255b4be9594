"""Work is never lost with its worktree, whatever an agent did to git before."""

import os
import subprocess
from pathlib import Path

import pytest

from agents.ids import new_id
from agents.spec import WorkspaceKind, WorkspaceSpec
from agents.tools.workspace import Closed, close, prepare

WHO = {f"GIT_{role}_{part}": "u@x" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
CHANGE = "echo changed > a.txt"


def sh(directory: str | Path, script: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **WHO}
    done = subprocess.run(["sh", "-ec", script], cwd=directory, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "repository"
    path.mkdir()
    sh(path, "git init -q -b main; mkdir d; echo one > a.txt; echo x > d/x; git add .; git commit -qm first")
    return path


class Work:
    """A worktree in which a script has run."""

    def __init__(self, tmp_path: Path, repository: Path, script: str) -> None:
        self.repository, self.run = repository, new_id()
        self.spec = WorkspaceSpec(path=str(tmp_path / "work"), kind=WorkspaceKind.WORKTREE, source=str(repository))
        self.path = Path(prepare(self.spec, self.run).path)
        sh(self.path, script)

    def close(self) -> Closed:
        return close(self.spec, self.run)

    def committed(self, name: str) -> str:
        return sh(self.repository, f"git --work-tree=. show 'agent/{self.run}:{name}'")


@pytest.mark.parametrize(
    "script",
    [
        f"git update-index --assume-unchanged a.txt; {CHANGE}",
        f"git update-index --skip-worktree a.txt; {CHANGE}",
        f"git sparse-checkout set d; {CHANGE}",
        f'{CHANGE}; echo junk > "$(git rev-parse --git-path index)"',
        f'{CHANGE}; : > "$(git rev-parse --git-path index)"',
        f"git config core.worktree /usr/lib; {CHANGE}",
        f"git config core.bare true; {CHANGE}",
        f"rm .git; {CHANGE}",
        f"echo gitdir: /nowhere > .git; {CHANGE}",
    ],
)
def test_what_was_done_is_on_the_branch_before_the_worktree_goes(tmp_path: Path, repository: Path, script: str) -> None:
    work = Work(tmp_path, repository, script)
    closed = work.close()
    assert (closed.committed, closed.removed, closed.note) == (True, True, None)
    assert work.committed("a.txt") == "changed"
    assert work.committed("d/x") == "x"


def test_a_repository_in_the_place_of_the_worktree_keeps_what_it_holds(tmp_path: Path, repository: Path) -> None:
    work = Work(tmp_path, repository, f"rm .git; git init -q; {CHANGE}; git add .; git commit -qm mine")
    closed = work.close()
    assert not closed.removed
    assert work.committed("a.txt") == "changed"
    assert sh(work.path, "git log --format=%s") == "mine"


def test_a_repository_inside_that_was_added_to_the_index_is_not_lost(tmp_path: Path, repository: Path) -> None:
    inner = "git init -q inner; cd inner; echo i > i; git add .; git commit -qm i; cd ..; git add . 2>&1"
    work = Work(tmp_path, repository, f"{inner}; git commit -qm outer")
    closed = work.close()
    assert not closed.removed
    assert "inner" in (closed.note or "")
    assert (work.path / "inner" / "i").exists()


def test_a_clone_inside_whose_commits_a_remote_has_keeps_no_worktree(tmp_path: Path, repository: Path) -> None:
    upstream = tmp_path / "upstream"
    upstream.mkdir()
    sh(upstream, "git init -q; echo u > u; git add .; git commit -qm u")
    work = Work(tmp_path, repository, f"git clone -q {upstream} inner; git add . 2>&1; git commit -qm outer")
    assert work.close().removed


def test_a_fresh_workspace_commits_its_own_files_whatever_its_configuration_says(tmp_path: Path) -> None:
    spec = WorkspaceSpec(path=str(tmp_path / "fresh"), kind=WorkspaceKind.FRESH)
    path = prepare(spec, new_id()).path
    sh(path, f"{CHANGE}; git config core.worktree /usr/lib")
    assert close(spec, new_id()).committed
    assert sh(path, "git ls-tree --name-only HEAD") == "a.txt"
