"""Where a run works: checks of the place that was asked for, and the exclusive hold on a directory or a branch."""

import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection

from agents.spec import FINAL, WorkspaceKind, WorkspaceSpec
from control.runs.clock import database_now
from control.runs.models import Run, WorkspaceLease

# One number for all holds: two starts that overlap must not look at the same moment.
_LOCK = 0x70686C73
_GIT_SECONDS = 5
_FINAL = [status.value for status in FINAL]
_BAD_BRANCH = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^[-/.]|/\.|[/.]$|\.lock(/|$)")


class WorkspaceRefused(Exception):
    """`code` is one of the start's codes; the text says what to do next."""

    def __init__(self, code: str, message: str, *, status: int = 400, detail: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.detail = detail or {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A workspace to be, and the key of the hold that it needs (None: it is the run's own)."""

    spec: WorkspaceSpec
    key: str | None = None


def choose(run: str, workspace: str | None, branch: str | None) -> Place:
    """The place for a new run. Raises WorkspaceRefused. Touches nothing; the worker prepares it later."""
    if branch is not None:
        check_branch(branch)
    if workspace is None:
        path = str(settings.DATA_DIR / "workspaces" / run)
        return Place(spec=WorkspaceSpec(path=path, kind=WorkspaceKind.FRESH, branch=branch))
    real = _real(workspace)
    if not (real / ".git").exists():
        if branch is not None:
            raise WorkspaceRefused(
                "bad_branch",
                f"{real} is no git repository: it has no branches. Leave the branch out, or git init it.",
            )
        spec = WorkspaceSpec(path=str(real), kind=WorkspaceKind.DIRECTORY)
        return Place(spec=spec, key=f"dir:{real}")
    return worktree(run, str(real), branch)


def worktree(run: str, source: str, branch: str | None) -> Place:
    """A worktree of a repository on a branch of its own."""
    name = branch or f"agent/{run}"
    path = str(settings.DATA_DIR / "worktrees" / run)
    spec = WorkspaceSpec(path=path, kind=WorkspaceKind.WORKTREE, branch=name, source=source)
    if branch is not None and name in _checked_out(source):
        raise _branch_busy(name, source, None)
    return Place(spec=spec, key=f"branch:{source}:{name}")


def _real(workspace: str) -> Path:
    if "\x00" in workspace or len(workspace) > 1000:
        raise WorkspaceRefused("workspace_missing", "The workspace is no path. Give an absolute one.")
    given = Path(workspace).expanduser()
    if not given.is_absolute():
        raise WorkspaceRefused(
            "workspace_missing", f"Give the workspace as an absolute path; {workspace!r:.200} is relative."
        )
    # Links are followed first: what counts is where the tools would really write.
    real = Path(os.path.realpath(given))
    roots = [Path(os.path.realpath(root)) for root in settings.WORKSPACE_ROOTS]
    if not any(real == root or root in real.parents for root in roots):
        listed = ", ".join(str(root) for root in roots)
        raise WorkspaceRefused(
            "workspace_outside_roots",
            f"{real} lies outside of the workspace roots ({listed}). Use a directory in one, or set WORKSPACE_ROOTS.",
        )
    data = Path(os.path.realpath(settings.DATA_DIR))
    if (real == data or real in data.parents) and not (real / ".git").exists():
        raise WorkspaceRefused(
            "workspace_outside_roots", f"{real} holds this console's own data ({data}). Use another directory."
        )
    if not real.is_dir():
        raise WorkspaceRefused("workspace_missing", f"There is no directory {real}. Make it first, or name another.")
    return real


def check_branch(branch: str) -> None:
    if not branch or len(branch) > 200 or branch == "@" or _BAD_BRANCH.search(branch):
        raise WorkspaceRefused(
            "bad_branch", f"{branch!r:.120} is no branch name for git. Use letters, digits, - _ . and single slashes."
        )


def _checked_out(source: str) -> set[str]:
    """Branches that some worktree of this repository has checked out; git allows each only once."""
    try:
        told = subprocess.run(
            ["git", "-C", source, "worktree", "list", "--porcelain"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_GIT_SECONDS,
            check=True,
        ).stdout.decode(errors="replace")
    except (OSError, subprocess.SubprocessError):
        # The worker will meet the same trouble and tell it with git's own words.
        return set()
    mark = "branch refs/heads/"
    return {line.removeprefix(mark) for line in told.splitlines() if line.startswith(mark)}


# --- holds -----------------------------------------------------------------------------------------------------------


def hold(run: str, key: str) -> None:
    """Hold a directory or branch for a run until it ends. Call in the start's transaction. Raises WorkspaceRefused."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
    for lease in _overlapping(key):
        holder = Run.objects.filter(pk=lease.run_id).exclude(status__in=_FINAL).first()
        if holder is not None and holder.pk != run:
            raise _busy(key, holder.pk)
        # Its run has ended or was never kept: the hold means nothing any more.
        lease.delete()
    WorkspaceLease.objects.create(key=key, run_id=run, taken_at=database_now())


def _overlapping(key: str) -> Iterable[WorkspaceLease]:
    """A directory overlaps with every directory that it contains or lies in."""
    if not key.startswith("dir:"):
        return WorkspaceLease.objects.filter(pk=key)
    mine = Path(key.removeprefix("dir:"))
    held = WorkspaceLease.objects.filter(key__startswith="dir:")
    return [lease for lease in held if _contains(mine, Path(lease.key.removeprefix("dir:")))]


def _contains(one: Path, other: Path) -> bool:
    return one == other or one in other.parents or other in one.parents


def _busy(key: str, holder: str) -> WorkspaceRefused:
    if key.startswith("branch:"):
        source, _, branch = key.removeprefix("branch:").rpartition(":")
        return _branch_busy(branch, source, holder)
    return WorkspaceRefused(
        "workspace_busy",
        f"Run {holder} works in {key.removeprefix('dir:')}. Wait until it has ended, interrupt it, or use another one.",
        status=409,
        detail={"run": holder},
    )


def _branch_busy(branch: str, source: str, holder: str | None) -> WorkspaceRefused:
    by = f"run {holder}" if holder else "a worktree of this repository"
    return WorkspaceRefused(
        "branch_busy",
        f"Branch {branch} of {source} is in use by {by}. Name another branch, or leave it out for one of its own.",
        status=409,
        detail={"branch": branch} | ({"run": holder} if holder else {}),
    )
