"""Commits all that a working tree holds to a branch, whatever its users did to index, HEAD, hooks or configuration.

Works with an index of its own and the commands below `git commit`: a lock left by a killed git, a merge half done, a
branch switched or a file hidden from git by the agent lose nothing.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from agents.tools.git import GitFailed, asks, git
from agents.tools.writing import TEMPORARY

_NEW = "0" * 40
# The tree without entries, as git names it everywhere.
_EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
# Names in one command line.
_AT_ONCE = 500


class Tree:
    """A working tree, and the repository that it belongs to: named, where we know it, and not looked for.

    For what stands in the tree may have been changed: its `.git` gone or another one, `core.worktree` elsewhere.
    """

    def __init__(self, path: str, git_dir: str | None = None) -> None:
        self.path = path
        self._named = {"GIT_DIR": git_dir, "GIT_WORK_TREE": path} if git_dir else {}

    def git(self, *arguments: str, extra: Mapping[str, str] | None = None) -> str:
        return git(self.path, *arguments, extra={**self._named, **(extra or {})})

    def asks(self, *arguments: str, extra: Mapping[str, str] | None = None) -> str | None:
        return asks(self.path, *arguments, extra={**self._named, **(extra or {})})


def commit_all(tree: Tree, branch: str, message: str) -> tuple[str, bool]:
    """The tip of the branch afterwards and whether it moved. Raises GitFailed or OSError; then nothing has changed."""
    ref = f"refs/heads/{branch}"
    tip = tree.asks("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    head = tree.asks("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    content = _content(tree, head)
    # If the agent stands elsewhere, on another branch or none, what it committed there becomes a parent as well.
    parents = [commit for commit in dict.fromkeys((tip, head)) if commit is not None]
    if len(parents) == 2 and tip is not None and _is_ancestor(tree, tip, str(head)):
        parents = [str(head)]
    if len(parents) == 1 and content == tree.git("rev-parse", f"{parents[0]}^{{tree}}"):
        if parents[0] != tip:
            tree.git("update-ref", "-m", message, ref, parents[0], tip or _NEW)
        return parents[0], parents[0] != tip
    commit = tree.git("commit-tree", content, *(part for parent in parents for part in ("-p", parent)), "-m", message)
    tree.git("update-ref", "-m", message, ref, commit, tip or _NEW)
    if tree.asks("symbolic-ref", "--quiet", "HEAD") == ref:
        tree.asks("read-tree", "HEAD")  # a workspace that stays shows no false changes
    return commit, True


def untouched(tree: Tree, branch: str, git_dir: str) -> str | None:
    """The tip of the branch, if there is surely nothing to commit: no file, none in the index, none in the tip's tree.

    Most runs that use no files end like this, and a commit's worth of questions would tell no more.
    """
    if os.listdir(tree.path) != [".git"] or not _is_empty(os.path.join(git_dir, "index")):
        return None
    told = tree.asks("rev-parse", "HEAD^{tree}", "HEAD^{commit}", f"refs/heads/{branch}^{{commit}}")
    content, head, tip = told.split("\n") if told is not None else ("", "", None)
    return tip if content == _EMPTY and head == tip else None


def _is_empty(index: str) -> bool:
    """Whether the index is there and lists nothing: the number of its entries follows its name and version."""
    if not os.path.isfile(index):
        return False
    with open(index, "rb") as file:
        head = file.read(12)
    return head[:4] == b"DIRC" and head[8:] == bytes(4)


def embedded_repositories(tree: Tree) -> list[str]:
    """Repositories inside the working tree of which git would keep only a commit's number, and not that commit.

    A submodule without changes whose commit a remote has is none of them. `.` is a new repository in the tree's place.
    """
    path = tree.path
    staged = tree.asks("ls-files", "--stage") or ""
    known = {line.split("\t", 1)[1] for line in staged.splitlines() if line[:6] == "160000"}
    found = ["."] if os.path.isdir(os.path.join(path, ".git")) else []
    for directory, names, files in os.walk(path):
        if directory != path and (".git" in names or ".git" in files):
            inner = os.path.relpath(directory, path)
            kept = inner in known and _is_elsewhere(directory)
            if not kept and (inner in known or tree.asks("check-ignore", "--quiet", inner) is None):
                found.append(inner)
            names.clear()
        names[:] = [name for name in names if name not in (".git", "node_modules", ".venv")]
    return found


def _is_elsewhere(repository: str) -> bool:
    """Whether everything in it is known to a remote as well."""
    return asks(repository, "status", "--porcelain") == "" and bool(
        asks(repository, "branch", "--remotes", "--contains", "HEAD")
    )


def _content(tree: Tree, head: str | None) -> str:
    """The tree object for all that is there."""
    with _own_index(tree, head) as mine:
        what = ("--", ".", f":(exclude,glob)**/{TEMPORARY}*.tmp")
        # Without --sparse git refuses files outside of what a sparse checkout shows; old versions do not know it.
        if tree.asks("add", "--all", "--sparse", *what, extra=mine) is None:
            tree.git("add", "--all", *what, extra=mine)
        return tree.git("write-tree", extra=mine)


@contextmanager
def _own_index(tree: Tree, head: str | None) -> Iterator[Mapping[str, str]]:
    """A copy of the index, with what it knows about files that have not changed; a fresh one if it is broken."""
    with tempfile.TemporaryDirectory(prefix="pilothouse-index-") as directory:
        index = os.path.join(directory, "index")
        mine = {"GIT_INDEX_FILE": index}
        theirs = tree.git("rev-parse", "--path-format=absolute", "--git-path", "index")
        try:
            # With its time: into files as old as the index git looks, those that seem older it takes for unchanged.
            shutil.copy2(theirs, index)
            _unhide(tree, mine)
        except (OSError, GitFailed):
            if os.path.exists(index):
                os.unlink(index)
            if head is not None:
                tree.git("read-tree", head, extra=mine)
        yield mine


def _unhide(tree: Tree, mine: Mapping[str, str]) -> None:
    """Files that git was told not to look at are looked at; those that a sparse checkout left out stay so."""
    tree.asks("update-index", "--really-refresh", "-q", extra=mine)
    entries = tree.git("ls-files", "-v", "-z", extra=mine).split("\0")
    assumed = [entry[2:] for entry in entries if entry[:1].islower()]
    skipped = [entry[2:] for entry in entries if entry[:1] in ("S", "s")]
    there = [name for name in skipped if os.path.lexists(os.path.join(tree.path, name))]
    for option, names in (("--no-assume-unchanged", assumed), ("--no-skip-worktree", there)):
        for at in range(0, len(names), _AT_ONCE):
            tree.git("update-index", option, "--", *names[at : at + _AT_ONCE], extra=mine)


def _is_ancestor(tree: Tree, older: str, newer: str) -> bool:
    return tree.asks("merge-base", "--is-ancestor", older, newer) is not None
