"""Makes a run's workspace and puts it away: a fresh directory, a plain one in place, or a git worktree on its branch.

Blocking; called in a thread. Preparing what is prepared and closing what is closed change nothing.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from agents.errors import ConfigError
from agents.spec import WorkspaceKind, WorkspaceSpec
from agents.tools import git as git_commands
from agents.tools.committing import Tree, commit_all, embedded_repositories, untouched
from agents.tools.git import GitFailed, asks, git
from agents.tools.locks import locked

# Where an operator points to, the repository may begin further up.
_ANYWHERE = {"GIT_CEILING_DIRECTORIES": ""}
NO_PUSH = "disabled://pushing-is-an-act-of-an-operator/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """`base` is the commit it starts from; `note` what the operator should know, such as changes that stay behind."""

    path: str
    kind: WorkspaceKind
    branch: str | None = None
    base: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """`commit` is the tip of the branch afterwards, `committed` whether it is new; `removed`: the worktree is gone.

    A worktree that could not be committed whole is never removed; `note` says why and where it is.
    """

    branch: str | None = None
    commit: str | None = None
    committed: bool = False
    removed: bool = False
    note: str | None = None


def repository_of(path: str) -> str | None:
    """The top of the git repository that this directory is in (or the bare repository itself); None if in none."""
    real = os.path.realpath(path)
    if not os.path.isdir(real):
        return None
    top = asks(real, "rev-parse", "--show-toplevel", extra=_ANYWHERE)
    return top if top is not None else asks(real, "rev-parse", "--absolute-git-dir", extra=_ANYWHERE)


def prepare(spec: WorkspaceSpec, run: str, *, start: str = "HEAD") -> Prepared:
    """Make the workspace, or find it as a former worker of this run had made it.

    `start` is the commit that a new branch begins at. Raises ConfigError: workspace_missing, workspace_exists,
    no_commits, bad_branch, branch_busy, git_failed.
    """
    try:
        match spec.kind:
            case WorkspaceKind.DIRECTORY:
                return _in_place(spec)
            case WorkspaceKind.FRESH:
                return _fresh(spec)
            case WorkspaceKind.WORKTREE:
                return _worktree(spec, run, start)
    except GitFailed as error:
        raise ConfigError(error.kind, f"The workspace could not be made: {error.message}") from error


def close(spec: WorkspaceSpec, run: str, *, message: str | None = None) -> Closed:
    """Commit everything to the branch, then remove the worktree; other kinds stay where they are."""
    message = message or f"Work of agent run {run}"
    match spec.kind:
        case WorkspaceKind.DIRECTORY:
            return Closed()
        case WorkspaceKind.FRESH:
            return _commit_fresh(spec, message)
        case WorkspaceKind.WORKTREE:
            return _close_worktree(spec, run, message)


# --- a plain directory, a fresh one ----------------------------------------------------------------------------


def _in_place(spec: WorkspaceSpec) -> Prepared:
    if not os.path.isdir(spec.path):
        raise ConfigError(
            "workspace_missing", f"There is no directory {spec.path}. Make it, or give another workspace."
        )
    return Prepared(
        path=os.path.realpath(spec.path), kind=spec.kind, note="Used in place; no branch keeps its changes."
    )


def _fresh(spec: WorkspaceSpec) -> Prepared:
    os.makedirs(spec.path, exist_ok=True)
    path = os.path.realpath(spec.path)
    if not os.path.lexists(os.path.join(path, ".git")):
        return _first(spec, path)
    if not os.path.isdir(os.path.join(path, ".git")):
        git(path, "init", "--quiet", "--template=", "--initial-branch", spec.branch or "main")
    base = asks(path, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if base is None:
        # Whoever works here may commit without being asked for a name, and pushes nowhere.
        git(path, "config", "user.name", git_commands.AUTHOR)
        git(path, "config", "user.email", git_commands.EMAIL)
        git(path, "config", f"url.{NO_PUSH}.pushInsteadOf", "")
        git(path, "commit", "--quiet", "--allow-empty", "--no-verify", "-m", "Empty workspace")
        base = git(path, "rev-parse", "HEAD")
    branch = asks(path, "symbolic-ref", "--short", "--quiet", "HEAD")
    return Prepared(path=path, kind=spec.kind, branch=branch, base=base)


def _first(spec: WorkspaceSpec, path: str) -> Prepared:
    """The same where nothing is yet, with as few processes as can be: nearly every run begins like this."""
    branch = spec.branch or "main"
    git(path, "init", "--quiet", "--template=", "--initial-branch", branch)
    with open(os.path.join(path, ".git", "config"), "a") as file:
        file.write(
            f"[user]\n\tname = {git_commands.AUTHOR}\n\temail = {git_commands.EMAIL}\n"
            f'[url "{NO_PUSH}"]\n\tpushInsteadOf = \n'
        )
    git(path, "commit", "--quiet", "--allow-empty", "--no-verify", "-m", "Empty workspace")
    return Prepared(path=path, kind=spec.kind, branch=branch, base=git(path, "rev-parse", "HEAD"))


def _commit_fresh(spec: WorkspaceSpec, message: str) -> Closed:
    path = os.path.realpath(spec.path)
    own = os.path.join(path, ".git")
    tree = Tree(path, own if os.path.isdir(own) else None)
    branch = tree.asks("symbolic-ref", "--short", "--quiet", "HEAD")
    if branch is None:
        return Closed(note=f"{spec.path} has no branch to commit to; it stays as it is.")
    try:
        if os.path.isdir(own) and (tip := untouched(tree, branch, own)) is not None:
            return Closed(branch=branch, commit=tip, committed=False)
        commit, committed = commit_all(tree, branch, message)
    except (GitFailed, OSError) as error:
        return Closed(branch=branch, note=f"Nothing was committed, {spec.path} stays as it is: {error}")
    return Closed(branch=branch, commit=commit, committed=committed)


# --- a worktree --------------------------------------------------------------------------------------------------


def _worktree(spec: WorkspaceSpec, run: str, start: str) -> Prepared:
    source = _source(spec)
    branch = spec.branch or f"agent/{run}"
    path = os.path.realpath(spec.path)
    if asks(source, "check-ref-format", "--branch", branch) is None:
        raise ConfigError("bad_branch", f"{branch!r} is no name for a branch. Give one like agent/fix-login.")
    with _only_one_at(source):
        git(source, "worktree", "prune")
        there = _worktrees(source)
        mine = there.get(path)
        if mine is not None and mine.whole and mine.branch in (branch, None):
            return _prepared(spec, path, branch, git(path, "rev-parse", "HEAD"), "Goes on in the worktree of before.")
        if mine is not None and not mine.whole:
            git(source, "worktree", "remove", "--force", "--force", path)
        busy = next((other for other, tree in there.items() if tree.branch == branch and other != path), None)
        if busy is not None or (mine is not None and mine.whole):
            where = busy or path
            raise ConfigError(
                "branch_busy", f"Branch {branch} is in use at {where}. Give another branch or end that work."
            )
        if os.path.isdir(path) and os.listdir(path):
            raise ConfigError("workspace_exists", f"{path} exists and is no worktree of {source}. Move it away first.")
        base, note = _add(source, path, branch, start)
        _forbid_push(source, path)
    return _prepared(spec, path, branch, base, note)


def _prepared(spec: WorkspaceSpec, path: str, branch: str, base: str, note: str | None) -> Prepared:
    return Prepared(path=path, kind=spec.kind, branch=branch, base=base, note=note)


def _source(spec: WorkspaceSpec) -> str:
    source = repository_of(spec.source) if spec.source else None
    if source is None:
        raise ConfigError("workspace_missing", f"There is no git repository at {spec.source}.")
    return source


@dataclass(frozen=True, slots=True)
class _Tree:
    branch: str | None
    whole: bool


def _worktrees(source: str) -> dict[str, _Tree]:
    """All worktrees by real path, the main one included; one whose making was broken off is not whole."""
    found: dict[str, _Tree] = {}
    for block in git(source, "worktree", "list", "--porcelain").split("\n\n"):
        fields = dict(line.partition(" ")[::2] for line in block.splitlines())
        if "worktree" in fields:
            path = os.path.realpath(fields["worktree"])
            branch = fields.get("branch", "").removeprefix("refs/heads/") or None
            whole = fields.get("locked") != "initializing" and os.path.exists(path)
            found[path] = _Tree(branch, whole)
    return found


def _add(source: str, path: str, branch: str, start: str) -> tuple[str, str | None]:
    base = asks(source, "rev-parse", "--verify", "--quiet", f"{start}^{{commit}}")
    if base is None:
        raise ConfigError("no_commits", f"{source} has no commit to start from. Commit something first.")
    notes = []
    tip = asks(source, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}")
    behind = asks(source, "status", "--porcelain")
    if behind:
        count = len(behind.splitlines())
        notes.append(f"{count} uncommitted change{'s' if count > 1 else ''} in {source} stay behind.")
    if tip is not None:
        notes.append(f"Branch {branch} existed; the work goes on from its last commit {tip[:12]}.")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    where = [path, branch] if tip is not None else ["-b", branch, path, base]
    try:
        git(source, "worktree", "add", "--quiet", *where)
    except GitFailed as error:
        if "already" in error.said:  # taken by somebody's own git since the look
            raise ConfigError("branch_busy", f"Branch {branch} is in use: {error.said}") from error
        if "cannot lock ref" in error.said or "cannot create" in error.said:
            raise ConfigError("bad_branch", f"Branch {branch} cannot be made: {error.said}") from error
        raise
    return tip or base, " ".join(notes) or None


def _forbid_push(source: str, path: str) -> None:
    """In this worktree alone: the repository's own configuration keeps its push addresses."""
    if git(source, "config", "--default", "false", "--type=bool", "extensions.worktreeConfig") != "true":
        if asks(source, "config", "--type=bool", "core.bare") == "true":
            # Once worktrees have configurations of their own, `bare` must not reach them.
            common = git(source, "rev-parse", "--absolute-git-dir")
            git(source, "config", "--file", os.path.join(common, "config.worktree"), "core.bare", "true")
            git(source, "config", "extensions.worktreeConfig", "true")
            asks(source, "config", "--local", "--unset", "core.bare")
        else:
            git(source, "config", "extensions.worktreeConfig", "true")
    git(path, "config", "--worktree", f"url.{NO_PUSH}.pushInsteadOf", "")
    for remote in git(path, "remote").splitlines():
        # Several push addresses of one remote all count, so those that exist are led astray, not overridden.
        own = asks(path, "config", "--get-all", f"remote.{remote}.pushurl") or ""
        for address in own.splitlines():
            git(path, "config", "--worktree", "--add", f"url.{NO_PUSH}.insteadOf", address)
        if not own:
            git(path, "config", "--worktree", f"remote.{remote}.pushurl", NO_PUSH + remote)
    if asks(path, "config", "user.email") is None:
        git(path, "config", "--worktree", "user.name", git_commands.AUTHOR)
        git(path, "config", "--worktree", "user.email", git_commands.EMAIL)


def _close_worktree(spec: WorkspaceSpec, run: str, message: str) -> Closed:
    branch = spec.branch or f"agent/{run}"
    path = os.path.realpath(spec.path)
    # Not by `_source`: the configuration, which the agent can write, may say that its top is elsewhere by now.
    source = os.path.realpath(spec.source or "")
    if not spec.source or asks(source, "rev-parse", "--absolute-git-dir", extra=_ANYWHERE) is None:
        return Closed(branch=branch, note=f"There is no git repository at {spec.source}. {path} stays as it is.")
    with _only_one_at(source):
        if not os.path.isdir(path):
            asks(source, "worktree", "prune")
            tip = asks(source, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
            return Closed(branch=branch, commit=tip, removed=True)
        try:
            tree = Tree(path, _records_of(source, path))
            inner = embedded_repositories(tree)
            commit, committed = commit_all(tree, branch, message)
        except (GitFailed, OSError) as error:
            return Closed(branch=branch, note=f"Nothing was committed, so the worktree stays at {path}: {error}")
        if inner:
            note = (
                f"It holds repositories of its own ({', '.join(inner[:5])}), which no commit keeps: it stays at {path}."
            )
            return Closed(branch=branch, commit=commit, committed=committed, note=note)
        return Closed(branch=branch, commit=commit, committed=committed, removed=_remove(source, path))


def _records_of(source: str, path: str) -> str:
    """Where the repository keeps its records of this worktree. Raises OSError if it has none."""
    common = git(source, "rev-parse", "--path-format=absolute", "--git-common-dir", extra=_ANYWHERE)
    for entry in os.scandir(os.path.join(common, "worktrees")):
        try:
            with open(os.path.join(entry.path, "gitdir")) as file:
                if os.path.realpath(os.path.dirname(file.read().strip())) == path:
                    return entry.path
        except (FileNotFoundError, NotADirectoryError):
            continue
    raise OSError(f"the repository at {source} does not know this worktree any more")


def _remove(source: str, path: str) -> bool:
    if asks(source, "worktree", "remove", "--force", "--force", path) is None:
        shutil.rmtree(path, ignore_errors=True)
        asks(source, "worktree", "prune")
    return not os.path.exists(path)


class _Never:
    cancelled = False


@contextmanager
def _only_one_at(source: str) -> Iterator[None]:
    """Two runs that make worktrees of one repository would trip over git's own lock files."""
    common = git(source, "rev-parse", "--absolute-git-dir", extra=_ANYWHERE)
    with locked([os.path.join(common, "worktrees")], _Never()):
        yield
