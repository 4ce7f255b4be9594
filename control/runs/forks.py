"""Forks: a new run that goes on from an ended one, from a turn of it, with its history, its files and a note.

The new log holds the history itself, in one `run.forked` behind `run.queued`, so it is whole without the old one. What
the old run has used of its fuses, and what its guard had counted, does not count against the new one.
"""

import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.module_loading import import_string

from agents import kinds
from agents.commands import CommandKind, CommandState
from agents.events import draft
from agents.ids import new_id
from agents.messages import AssistantMessage, Message, to_plain
from agents.policy.redaction import make_safe
from agents.spec import FINAL, WorkspaceKind, WorkspaceSpec
from agents.tools import workspace
from control.runs import hints, log, publishing, specs, starts, workspaces
from control.runs.clock import database_now
from control.runs.models import Command, Run
from control.runs.refusals import NotFound, StartRefused

_FINAL = frozenset(status.value for status in FINAL)
_GIT_SECONDS = 10
# A model that had answered for good is asked to go on with something.
GO_ON = "Go on from here."


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What was said up to the end of `turn`; where the log stood then, and when. `last`: nothing came after it."""

    messages: Sequence[Message]
    turn: int
    seq: int
    at: datetime
    last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Forked:
    """The new run, queued, and the record of the wish on the old one."""

    run: Run
    command: Command


def cut_at(old: Run, turn: int | None) -> History:
    """Told by name: the window reaches this room, and the engine, which folds logs, is not for it to know."""
    upto: Callable[[Run, int | None], History] = import_string("control.runs.histories.upto")
    return upto(old, turn)


def fork(run_id: str, *, by: str, turn: int | None = None, note: str | None = None) -> Forked:
    """Start a run that goes on from `turn` of an ended one (None: its last; 0: its task alone).

    Raises NotFound, and StartRefused: run_active, no_such_turn, workspace_gone, workspace_busy, starts_blocked.
    """
    old = Run.objects.filter(pk=run_id).first()
    if old is None:
        raise NotFound(run_id)
    if old.status not in _FINAL:
        text = f"The run is {old.status}. Interrupt it first, then fork it."
        raise StartRefused("run_active", text, status=409)
    cut = cut_at(old, turn)
    said = make_safe(note).text.strip() if note else ""
    pk = new_id()
    place, whence = place_of(old, pk, cut)
    spec = replace(specs.of(old), id=pk, root=pk, parent=None, path=(pk,), workspace=place.spec if place else None)
    row = starts.row_of(
        spec,
        owner=by,
        project=old.project,
        priority=old.priority,
        forked_from=old.pk,
        host=host_of(old, spec.workspace),
    )
    ends_itself = isinstance(cut.messages[-1], AssistantMessage)
    body = kinds.RunForked(
        run=old.pk,
        turn=cut.turn,
        seq=cut.seq,
        by=by,
        messages=[to_plain(message) for message in cut.messages],
        note=said or (GO_ON if ends_itself else None),
        workspace=whence,
    )
    with transaction.atomic():
        starts.refuse_blocked(row)
        starts.queue(row, hold=place.key if place else None)
        done = log.write([log.Batch(run=pk, root=pk, epoch=0, drafts=[draft(body, at=database_now())])])[0]
        hints.announce_later(pk, 0, pk, done.first, done.last, done.bodies)
        row.last_seq = done.last
        command = _recorded(old, by, {"run": pk, "turn": cut.turn, "note": said or None})
        publishing.publish_later(pk)
    return Forked(run=row, command=command)


def _recorded(old: Run, by: str, args: dict[str, Any]) -> Command:
    """A fork is done as soon as it is asked for: the old run's log is closed, and no worker has to do anything."""
    return Command.objects.create(
        run_id=old.pk,
        kind=CommandKind.FORK.value,
        by=by,
        args=args,
        issued_at=database_now(),
        open=False,
        state=CommandState.DONE.value,
    )


# --- the files ----------------------------------------------------------------------------------------------------


def place_of(old: Run, pk: str, cut: History, onto: str | None = None) -> tuple[workspaces.Place | None, str | None]:
    """A branch of its own from where the old run's stood; a plain directory is used as it is now. And that in words."""
    was = specs.of(old).workspace
    if was is None:
        return None, None
    if was.kind is WorkspaceKind.DIRECTORY:
        if not os.path.isdir(was.path):
            raise _gone(f"The directory {was.path} is gone")
        place = workspaces.Place(spec=was, key=f"dir:{was.path}")
        return place, f"the directory {was.path} as it stands now"
    source, branch = _repository(old, was)
    if cut.last and os.path.isdir(was.path):
        # Its worker may be about to do so: what the run left is committed before the branch is looked at.
        workspace.close(was, old.pk)
    commit = _commit(source, branch, None if cut.last else cut.at)
    name = onto or f"agent/{pk}"
    made = workspaces.worktree(pk, source, onto)
    spec = replace(made.spec, branch=name, start=commit)
    told = f"commit {commit[:12]} of {branch}"
    if not cut.last:
        told += ", the last one before that turn ended; later edits, and edits never committed by then, are not in it"
    return workspaces.Place(spec=spec, key=f"branch:{source}:{name}"), told


def _repository(old: Run, was: WorkspaceSpec) -> tuple[str, str]:
    """Where the old run's branch is, and its name; a fresh workspace is a repository of its own."""
    if was.kind is WorkspaceKind.FRESH:
        source, branch = was.path, was.branch or "main"
    else:
        source, branch = was.source or "", was.branch or f"agent/{old.pk}"
    if not os.path.isdir(source):
        raise _gone(f"The workspace {source or 'of the old run'} is not on this machine any more")
    return source, branch


def _commit(source: str, branch: str, before: datetime | None) -> str:
    ref = f"refs/heads/{branch}"
    if before is None:
        found = _git(source, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    else:
        stamp = str(int(before.timestamp()))
        found = _git(source, "rev-list", "-1", f"--before={stamp}", ref) or _git(
            source, "rev-list", "--max-parents=0", ref
        )
    if not found:
        raise _gone(f"Branch {branch} of {source} is gone")
    return found.split("\n")[0]


def _git(source: str, *words: str) -> str:
    """What git says, or nothing where it refuses."""
    try:
        told = subprocess.run(
            ["git", "-C", source, *words],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_GIT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return told.stdout.decode(errors="replace").strip()


def _gone(what: str) -> StartRefused:
    return StartRefused(
        "workspace_gone", f"{what}, so there are no files to go on with. Start a new run instead.", status=409
    )


def host_of(old: Run, place: WorkspaceSpec | None) -> str | None:
    """The files are on the old run's machine."""
    return old.host if place is not None else None
