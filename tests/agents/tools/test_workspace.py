"""Workspaces: made, found again, committed and put away."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from agents.errors import ConfigError
from agents.ids import new_id
from agents.spec import WorkspaceKind, WorkspaceSpec
from agents.tools.workspace import close, prepare, repository_of


def git(directory: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(directory), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine on which nobody told git who they are."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """One commit, a remote, and a hook that refuses every commit."""
    path = tmp_path / "repository"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    (path / "a.txt").write_text("one\n")
    git(path, "add", ".")
    git(path, "-c", "user.name=u", "-c", "user.email=u@x", "commit", "-qm", "first")
    git(path, "remote", "add", "origin", "https://example.invalid/x.git")
    for name in ("pre-commit", "post-checkout", "commit-msg"):
        hook = path / ".git" / "hooks" / name
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
    return path


def worktree(tmp_path: Path, repository: Path, **changes: str) -> WorkspaceSpec:
    path = str(tmp_path / "trees" / new_id())
    return WorkspaceSpec(**{"path": path, "kind": WorkspaceKind.WORKTREE, "source": str(repository), **changes})


def test_a_fresh_workspace_is_a_repository_with_one_commit(tmp_path: Path) -> None:
    spec = WorkspaceSpec(path=str(tmp_path / "new" / "one"), kind=WorkspaceKind.FRESH)
    made = prepare(spec, new_id())
    assert git(Path(made.path), "rev-list", "--count", "HEAD") == "1"
    assert prepare(spec, new_id()) == made
    (Path(made.path) / "f").write_text("x")
    closed = close(spec, new_id())
    assert closed.committed
    assert not closed.removed
    assert git(Path(made.path), "status", "--porcelain") == ""
    assert git(Path(made.path), "show", "HEAD:f") == "x"


def test_a_plain_directory_is_used_in_place(tmp_path: Path) -> None:
    spec = WorkspaceSpec(path=str(tmp_path), kind=WorkspaceKind.DIRECTORY)
    assert prepare(spec, new_id()).path == os.path.realpath(tmp_path)
    close(spec, new_id())
    assert not (tmp_path / ".git").exists()
    with pytest.raises(ConfigError, match="no directory") as caught:
        prepare(WorkspaceSpec(path=str(tmp_path / "none"), kind=WorkspaceKind.DIRECTORY), new_id())
    assert caught.value.kind == "workspace_missing"


def test_a_worktree_starts_from_head_and_says_what_stays_behind(tmp_path: Path, repository: Path) -> None:
    (repository / "a.txt").write_text("changed\n")
    (repository / "new.txt").write_text("new\n")
    run = new_id()
    made = prepare(worktree(tmp_path, repository), run)
    assert made.branch == f"agent/{run}"
    assert made.note is not None
    assert "2 uncommitted changes" in made.note
    assert (Path(made.path) / "a.txt").read_text() == "one\n"
    assert not (Path(made.path) / "new.txt").exists()


def test_what_was_written_in_the_second_of_the_checkout_is_committed_later_too(
    tmp_path: Path, repository: Path
) -> None:
    """As long as what was there: only its content tells git that it was changed."""
    for attempt in range(10):
        run, spec = new_id(), worktree(tmp_path / str(attempt), repository)
        path = Path(prepare(spec, run).path)
        made = int((path / "a.txt").stat().st_mtime)
        (path / "a.txt").write_text("two\n")
        if int((path / "a.txt").stat().st_ctime) == made:
            break
    else:
        raise AssertionError("ten checkouts took longer than a second each")
    time.sleep(made + 1.1 - time.time())
    assert close(spec, run).committed
    assert git(repository, "show", f"agent/{run}:a.txt") == "two"


def test_everything_is_committed_before_the_worktree_goes(tmp_path: Path, repository: Path) -> None:
    run, spec = new_id(), worktree(tmp_path, repository)
    path = Path(prepare(spec, run).path)
    (path / "a.txt").write_text("two\n")
    (path / "deep").mkdir()
    (path / "deep" / "b.txt").write_text("b\n")
    (path / ".pilothouse-0123.tmp").write_text("left by a crash")
    closed = close(spec, run)
    assert (closed.committed, closed.removed, closed.note) == (True, True, None)
    assert not path.exists()
    assert git(repository, "show", f"agent/{run}:a.txt") == "two"
    assert git(repository, "ls-tree", "-r", "--name-only", f"agent/{run}").split() == ["a.txt", "deep/b.txt"]
    assert len(git(repository, "worktree", "list").splitlines()) == 1
    assert git(repository, "status", "--porcelain") == ""
    assert close(spec, run).commit == closed.commit


def test_a_run_without_changes_makes_no_commit(tmp_path: Path, repository: Path) -> None:
    run, spec = new_id(), worktree(tmp_path, repository)
    made = prepare(spec, run)
    closed = close(spec, run)
    assert (closed.commit, closed.committed, closed.removed) == (made.base, False, True)


def test_preparing_again_finds_the_worktree_with_its_changes(tmp_path: Path, repository: Path) -> None:
    run, spec = new_id(), worktree(tmp_path, repository)
    path = Path(prepare(spec, run).path)
    (path / "a.txt").write_text("half done\n")
    again = prepare(spec, run)
    assert again.path == str(path)
    assert (path / "a.txt").read_text() == "half done\n"


def test_a_worktree_that_went_away_is_made_again_on_its_branch(tmp_path: Path, repository: Path) -> None:
    run, spec = new_id(), worktree(tmp_path, repository)
    path = Path(prepare(spec, run).path)
    (path / "a.txt").write_text("kept\n")
    close(spec, run)
    assert (Path(prepare(spec, run).path) / "a.txt").read_text() == "kept\n"


def test_a_branch_in_use_is_busy(tmp_path: Path, repository: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        prepare(worktree(tmp_path, repository, branch="main"), new_id())
    assert caught.value.kind == "branch_busy"
    prepare(worktree(tmp_path, repository, branch="fix"), new_id())
    with pytest.raises(ConfigError) as caught:
        prepare(worktree(tmp_path, repository, branch="fix"), new_id())
    assert caught.value.kind == "branch_busy"


@pytest.mark.parametrize(("branch", "kind"), [("two..dots", "bad_branch"), ("main/below", "bad_branch")])
def test_a_name_that_cannot_be_a_branch_is_told(tmp_path: Path, repository: Path, branch: str, kind: str) -> None:
    with pytest.raises(ConfigError) as caught:
        prepare(worktree(tmp_path, repository, branch=branch), new_id())
    assert caught.value.kind == kind


def test_pushing_is_disabled_in_the_worktree_alone(tmp_path: Path, repository: Path) -> None:
    goal = tmp_path / "goal.git"
    git(tmp_path, "init", "-q", "--bare", str(goal))
    git(repository, "remote", "set-url", "origin", str(goal))
    second = tmp_path / "second.git"
    git(tmp_path, "init", "-q", "--bare", str(second))
    git(repository, "remote", "add", "own", "https://example.invalid/y.git")
    git(repository, "config", "remote.own.pushurl", str(second))
    path = Path(prepare(worktree(tmp_path, repository), new_id()).path)
    for where in ("origin", "own", str(goal), str(second)):
        with pytest.raises(subprocess.CalledProcessError):
            git(path, "push", "-q", where, "HEAD:refs/heads/leak")
    assert git(goal, "branch", "--list") + git(second, "branch", "--list") == ""
    git(path, "fetch", "-q", "origin")
    git(repository, "push", "-q", "origin", "main")
    assert git(goal, "branch", "--list") == "main"


def test_the_agent_can_commit_though_nobody_is_configured(tmp_path: Path, repository: Path) -> None:
    run, spec = new_id(), worktree(tmp_path, repository)
    path = Path(prepare(spec, run).path)
    (path / "a.txt").write_text("by the agent\n")
    git(path, "commit", "-qam", "own commit", "--no-verify")
    (path / "b.txt").write_text("left\n")
    close(spec, run)
    assert git(repository, "log", "--format=%s", f"agent/{run}").splitlines()[1:] == ["own commit", "first"]


def test_work_on_a_branch_the_agent_switched_to_is_kept_on_both(tmp_path: Path, repository: Path) -> None:
    run, spec = new_id(), worktree(tmp_path, repository)
    path = Path(prepare(spec, run).path)
    git(path, "-c", "core.hooksPath=/dev/null", "checkout", "-qb", "elsewhere")
    (path / "a.txt").write_text("committed elsewhere\n")
    git(path, "commit", "-qam", "elsewhere", "--no-verify")
    (path / "c.txt").write_text("not committed\n")
    assert close(spec, run).removed
    assert git(repository, "show", f"agent/{run}:a.txt") == "committed elsewhere"
    assert git(repository, "show", f"agent/{run}:c.txt") == "not committed"


def test_a_lock_left_by_a_killed_git_does_not_keep_the_work_from_its_branch(tmp_path: Path, repository: Path) -> None:
    run, spec = new_id(), worktree(tmp_path, repository)
    path = Path(prepare(spec, run).path)
    (path / "a.txt").write_text("two\n")
    Path(git(path, "rev-parse", "--path-format=absolute", "--git-path", "index.lock")).write_text("")
    assert close(spec, run).removed
    assert git(repository, "show", f"agent/{run}:a.txt") == "two"


def test_a_worktree_that_cannot_be_committed_stays(tmp_path: Path, repository: Path) -> None:
    run, spec = new_id(), worktree(tmp_path, repository)
    path = Path(prepare(spec, run).path)
    (path / "a.txt").write_text("precious\n")
    shutil.rmtree(repository / ".git" / "worktrees" / path.name)
    closed = close(spec, run)
    assert not closed.removed
    assert closed.note is not None
    assert str(path) in closed.note
    assert (path / "a.txt").read_text() == "precious\n"


def test_a_worktree_with_a_repository_inside_stays(tmp_path: Path, repository: Path) -> None:
    run, spec = new_id(), worktree(tmp_path, repository)
    path = Path(prepare(spec, run).path)
    git(path, "init", "-q", "inner")
    (path / "inner" / "x").write_text("only here")
    closed = close(spec, run)
    assert not closed.removed
    assert "inner" in (closed.note or "")
    assert (path / "inner" / "x").exists()


def test_a_repository_without_commits_has_nothing_to_start_from(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "empty")
    with pytest.raises(ConfigError) as caught:
        prepare(worktree(tmp_path, tmp_path / "empty"), new_id())
    assert caught.value.kind == "no_commits"


def test_a_bare_repository_gives_worktrees_too(tmp_path: Path, repository: Path) -> None:
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "-q", "--bare", str(repository), str(bare))
    run, spec = new_id(), worktree(tmp_path, bare)
    path = Path(prepare(spec, run).path)
    (path / "a.txt").write_text("two\n")
    assert git(path, "status", "--porcelain") == "M a.txt"
    assert close(spec, run).removed
    assert git(bare, "show", f"agent/{run}:a.txt") == "two"
    assert git(bare, "rev-parse", "--is-bare-repository") == "true"


def test_a_directory_inside_a_repository_belongs_to_it(tmp_path: Path, repository: Path) -> None:
    (repository / "sub").mkdir()
    assert repository_of(str(repository / "sub")) == str(repository)
    assert repository_of(str(tmp_path / "home")) is None


def test_a_fresh_workspace_in_which_nothing_was_done_gets_no_further_commit(tmp_path: Path) -> None:
    spec = WorkspaceSpec(path=str(tmp_path / "fresh"), kind=WorkspaceKind.FRESH)
    base = prepare(spec, new_id()).base
    unused = close(spec, new_id())
    assert (unused.branch, unused.commit, unused.committed, unused.note) == ("main", base, False, None)

    (tmp_path / "fresh" / "a.txt").write_text("one")
    added = close(spec, new_id())
    (tmp_path / "fresh" / "a.txt").unlink()
    removed = close(spec, new_id())
    assert added.committed and removed.committed
    assert close(spec, new_id()).commit == removed.commit

    git(tmp_path / "fresh", "checkout", "-q", "--detach", str(added.commit))
    (tmp_path / "fresh" / "a.txt").unlink()
    os.unlink(tmp_path / "fresh" / ".git" / "index")
    assert close(spec, new_id()).note is not None
