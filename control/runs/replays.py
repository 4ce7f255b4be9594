"""Replays: a new run that plays an ended one again, from its recorded answers or with a scratch model.

A recorded one changes nothing and costs nothing: model and tools answer what the log holds. A live one asks the model
that it is given, on a branch of its own, dry unless said otherwise, without a key unless one is named. Both keep the
fuses of the original; another policy takes the place of the original's, not of what else limits it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction

from agents import kinds
from agents.events import draft
from agents.ids import new_id
from agents.messages import to_plain
from agents.spec import FINAL, LIMIT_NAMES, Limits, ModelSpec, RunSpec, WorkspaceKind
from control.fleet import policies
from control.runs import forks, hints, limits, log, models_of_runs, publishing, specs, starts, workspaces
from control.runs.clock import database_now
from control.runs.models import Run
from control.runs.refusals import NotFound, StartRefused

_FINAL = frozenset(status.value for status in FINAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What is asked for. `policy` None: the original's, as it was frozen. `from_turn`: the turns before it are history,
    and guard and fuses begin to count there. `model`, `base_url`, `credential`, `branch`, `dry_run` are for a live one.
    """

    policy: str | Mapping[str, Any] | None = None
    from_turn: int | None = None
    live: bool = False
    base_url: str | None = None
    model: str | None = None
    credential: str | None = None
    branch: str | None = None
    dry_run: bool = True


def replay(run_id: str, asked: Replay, *, by: str) -> Run:
    """Start it. Raises NotFound, and StartRefused: run_active, no_such_turn, not_live, no_scratch_model, no_branch,
    unknown_policy, unpriced_model, workspace_gone, branch_busy, starts_blocked, and what is wrong with the model."""
    old = Run.objects.filter(pk=run_id).first()
    if old is None:
        raise NotFound(run_id)
    if old.status not in _FINAL:
        raise StartRefused("run_active", f"The run is {old.status}; it can be replayed once it has ended.", status=409)
    _check(asked)
    pk, was = new_id(), specs.of(old)
    policy, version, body = _policy(was, asked)
    model = _model(was, asked) if asked.live else was.model
    frozen = _limits(was, body)
    if asked.live:
        models_of_runs.refuse_unpriced(model, frozen, body)
    history = forks.cut_at(old, asked.from_turn - 1) if asked.from_turn and asked.from_turn > 1 else None
    place, whence = _place(old, was, pk, asked, history)
    recorded = None if asked.live else {"run": old.pk, "from_turn": history.turn if history else 0}
    spec = replace(
        was,
        id=pk,
        root=pk,
        parent=None,
        path=(pk,),
        model=model,
        fallbacks=(),
        limits=frozen,
        policy=policy,
        policy_version=version,
        policy_body=body,
        workspace=place.spec,
        dry_run=asked.dry_run or not asked.live,
        recorded=recorded,
    )
    host = forks.host_of(old, was.workspace) if asked.live else None
    row = starts.row_of(
        spec, owner=by, project=old.project, priority=old.priority, replay_of=old.pk, host=host if whence else None
    )
    bodies: list[kinds.Body] = [_told(old, asked, by)]
    if history is not None:
        messages: list[kinds.JSON] = [to_plain(message) for message in history.messages]
        bodies.append(
            kinds.RunForked(run=old.pk, turn=history.turn, seq=history.seq, by=by, messages=messages, workspace=whence)
        )
    with transaction.atomic():
        starts.refuse_blocked(row)
        starts.queue(row, hold=place.key)
        drafts = [draft(one, at=database_now()) for one in bodies]
        done = log.write([log.Batch(run=pk, root=pk, epoch=0, drafts=drafts)])[0]
        hints.announce_later(pk, 0, pk, done.first, done.last, done.bodies)
        row.last_seq = done.last
        publishing.publish_later(pk)
    return row


def _told(old: Run, asked: Replay, by: str) -> kinds.RunReplayed:
    mode = "live" if asked.live else "recorded"
    return kinds.RunReplayed(run=old.pk, mode=mode, by=by, from_turn=asked.from_turn)


def _check(asked: Replay) -> None:
    if asked.live and not (asked.base_url and asked.model):
        raise StartRefused(
            "no_scratch_model",
            "A live replay asks a scratch model: name its base_url and its model. Without `live` the recorded answers "
            "are played.",
            status=422,
        )
    given = [name for name in ("base_url", "model", "credential", "branch") if getattr(asked, name) is not None]
    if not asked.live and (given or not asked.dry_run):
        what = ", ".join(given) or "no dry run"
        raise StartRefused("not_live", f"{what} is for a live replay; say `live` as well.", status=422)


def _policy(was: RunSpec, asked: Replay) -> tuple[str, int | None, dict[str, Any]]:
    if asked.policy is None:
        return was.policy, was.policy_version, dict(was.policy_body)
    return starts.known_policy(asked.policy)


def _limits(was: RunSpec, body: Mapping[str, Any]) -> Limits:
    """The original's but for those of its policy, and those of the policy that holds now."""
    old = {name: one for name in LIMIT_NAMES if (one := getattr(was.limits, name)) is not None}
    kept = {name: one for name, one in old.items() if one.source not in ("policy", "default")}
    return limits.tightest(kept, limits.read(policies.limits_of(body), "policy"))


def _model(was: RunSpec, asked: Replay) -> ModelSpec:
    """The scratch model. No key goes along that was not named, also where one would fit."""
    assert asked.base_url and asked.model
    address = models_of_runs.checked(asked.base_url)
    if asked.credential is None:
        provider = was.model.provider if address == was.model.base_url else models_of_runs.PLAIN
        name = models_of_runs.named_well(asked.model, address)
        return ModelSpec(model=name, base_url=address, provider=provider, keyless=True)
    return models_of_runs.spec_of(asked.model, address, asked.credential)


def _place(
    old: Run, was: RunSpec, pk: str, asked: Replay, history: forks.History | None
) -> tuple[workspaces.Place, str | None]:
    """For a live one the files as they were, on a branch of its own; a recorded one needs none, so a bare directory."""
    try:
        if not asked.live or was.workspace is None:
            return workspaces.choose(pk, None, None), None
        if was.workspace.kind is WorkspaceKind.DIRECTORY and not asked.dry_run:
            raise StartRefused(
                "no_branch",
                f"{was.workspace.path} is no git repository, so there is no branch to work on apart from it. Only a "
                "dry run is possible there.",
                status=409,
            )
        if asked.branch is not None:
            workspaces.check_branch(asked.branch)
            if asked.branch == was.workspace.branch:
                raise StartRefused("branch_busy", f"{asked.branch} is the original's. Name another branch.", status=409)
        if history is None and was.workspace.kind is WorkspaceKind.FRESH:
            # It began with nothing.
            return workspaces.choose(pk, None, asked.branch), None
        cut = history or forks.cut_at(old, 0)
        place, whence = forks.place_of(old, pk, cut, asked.branch)
        assert place is not None
        return place, whence
    except workspaces.WorkspaceRefused as error:
        raise StartRefused(error.code, error.message, detail=error.detail, status=error.status) from error
