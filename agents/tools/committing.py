"""Commits all that a working tree holds to a branch, whatever its users did to index, HEAD or hooks.

Works with an index of its own and the commands below `git commit`: a lock left by a killed git, a merge half done or a
branch switched by the agent lose nothing.
"""

import os
import shutil
import tempfile

from agents.tools.git import asks, git
from agents.tools.writing import TEMPORARY

_NEW = "0" * 40


def commit_all(path: str, branch: str, message: str) -> tuple[str, bool]:
    """The tip of the branch afterwards and whether it moved. Raises GitFailed or OSError; then nothing has changed."""
    ref = f"refs/heads/{branch}"
    tip = asks(path, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    head = asks(path, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    tree = _tree_of(path, head)
    # If the agent stands elsewhere, on another branch or none, what it committed there becomes a parent as well.
    parents = [commit for commit in dict.fromkeys((tip, head)) if commit is not None]
    if len(parents) == 2 and tip is not None and _is_ancestor(path, tip, str(head)):
        parents = [str(head)]
    if len(parents) == 1 and tree == git(path, "rev-parse", f"{parents[0]}^{{tree}}"):
        if parents[0] != tip:
            git(path, "update-ref", "-m", message, ref, parents[0], tip or _NEW)
        return parents[0], parents[0] != tip
    commit = git(path, "commit-tree", tree, *(part for parent in parents for part in ("-p", parent)), "-m", message)
    git(path, "update-ref", "-m", message, ref, commit, tip or _NEW)
    if asks(path, "symbolic-ref", "--quiet", "HEAD") == ref:
        asks(path, "read-tree", "HEAD")  # a workspace that stays shows no false changes
    return commit, True


def embedded_repositories(path: str) -> list[str]:
    """Repositories inside the working tree that are no submodules: git would keep only their commit's number."""
    known = {line.split("\t", 1)[1] for line in git(path, "ls-files", "--stage").splitlines() if line[:6] == "160000"}
    found = []
    for directory, names, files in os.walk(path):
        if directory != path and (".git" in names or ".git" in files):
            inner = os.path.relpath(directory, path)
            if inner not in known and asks(path, "check-ignore", "--quiet", inner) is None:
                found.append(inner)
            names.clear()
        names[:] = [name for name in names if name not in (".git", "node_modules", ".venv")]
    return found


def _tree_of(path: str, head: str | None) -> str:
    with tempfile.TemporaryDirectory(prefix="pilothouse-index-") as directory:
        index = os.path.join(directory, "index")
        mine = {"GIT_INDEX_FILE": index}
        theirs = git(path, "rev-parse", "--path-format=absolute", "--git-path", "index")
        if os.path.exists(theirs):
            shutil.copyfile(theirs, index)  # with what it knows about files that have not changed
        elif head is not None:
            git(path, "read-tree", head, extra=mine)
        git(path, "add", "--all", "--", ".", f":(exclude,glob)**/{TEMPORARY}*.tmp", extra=mine)
        return git(path, "write-tree", extra=mine)


def _is_ancestor(path: str, older: str, newer: str) -> bool:
    return asks(path, "merge-base", "--is-ancestor", older, newer) is not None
