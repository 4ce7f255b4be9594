"""Starting runs: all is checked and frozen first, then one transaction makes the row, its hold and `run.queued`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from agents.events import draft
from agents.ids import new_id
from agents.kinds import RunQueued
from agents.policy.redaction import make_safe, make_safe_value, merge
from agents.spec import Limits, RunSpec
from control.fleet import agents, day_limits, memory, policies
from control.fleet.models import Agent
from control.runs import blocks, hints, limits, log, models_of_runs, publishing, specs, workspaces
from control.runs.clock import database_now
from control.runs.ledger import standing
from control.runs.models import Run
from control.runs.refusals import StartRefused

__all__ = ["StartRefused", "StartRequest", "queue", "spawn_child", "start"]

LONGEST_TASK = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRequest:
    """What is asked for. What is None or empty takes its value from the agent, then from the environment.

    `policy` is a name or a policy's own data; `limits` maps names of fuses to numbers or decimal strings.
    """

    agent: str
    task: str
    model: str | None = None
    base_url: str | None = None
    credential: str | None = None
    policy: str | Mapping[str, Any] | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)
    workspace: str | None = None
    branch: str | None = None
    dry_run: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    project: str | None = None
    priority: int = 0
    replay_of: str | None = None


def start(request: StartRequest, by: str) -> Run:
    """Start a run and return its row, queued. Raises StartRefused with a code and what to do next."""
    agent = known_agent(request.agent)
    task, labels, altered = safe_words(request.task, request.labels)
    model = models_of_runs.choose(
        model=request.model, base_url=request.base_url, credential=request.credential, agent=agent
    )
    policy, version, body = known_policy(request.policy or agent.policy)
    frozen_limits = limits_of(agent, body, request.limits)
    fallbacks = models_of_runs.fallbacks(agent, model)
    models_of_runs.refuse_unknown_helper((model, *fallbacks), body)
    for one in (model, *fallbacks):
        models_of_runs.refuse_unpriced(one, frozen_limits, body, money=standing.limits_money(agent.name))
    pk = new_id()
    try:
        place = workspaces.choose(pk, request.workspace, request.branch)
    except workspaces.WorkspaceRefused as error:
        raise StartRefused(error.code, error.message, detail=error.detail, status=error.status) from error
    spec = RunSpec(
        id=pk,
        root=pk,
        parent=None,
        path=(pk,),
        agent=agent.name,
        task=task,
        prompt=agent.prompt,
        tools=tuple(agent.tools),
        memory=memory.for_run(agent.name),
        mcp_servers=tuple(agent.mcp_servers),
        model=model,
        fallbacks=fallbacks,
        limits=frozen_limits,
        policy=policy,
        policy_version=version,
        policy_body=body,
        workspace=place.spec,
        labels=labels,
        dry_run=request.dry_run,
    )
    run = row_of(
        spec,
        owner=by,
        project=request.project or "default",
        priority=request.priority,
        replay_of=request.replay_of,
    )
    with transaction.atomic():
        refuse_blocked(run)
        queue(run, altered=altered, hold=place.key)
        publishing.publish_later(run.pk)
    return run


def spawn_child(parent_run_id: str, request: Any, *, epoch: int | None = None) -> Run:
    """Start a sub-agent; see `spawning.spawn_child`, which this is."""
    from control.runs import spawning

    return spawning.spawn_child(parent_run_id, request, epoch=epoch)


# --- checks ----------------------------------------------------------------------------------------------------------


def known_agent(name: str) -> Agent:
    agent = agents.current(name) if name and "\x00" not in name else None
    if agent is None:
        raise StartRefused(
            "unknown_agent",
            f"There is no agent {name!r:.120}. List them with GET /api/agents, or use 'default'.",
            status=404,
        )
    return agent


def safe_words(task: str, labels: Mapping[str, str]) -> tuple[str, dict[str, str], dict[str, Any] | None]:
    """Task and labels as log, model and page will all hold them, and what was altered."""
    if not task.strip():
        raise StartRefused("empty_task", "The task is empty. Say in a sentence or more what is to be done.")
    size = len(task.encode("utf-8", "surrogatepass"))
    if size > LONGEST_TASK:
        raise StartRefused(
            "task_too_long",
            f"The task has {size} bytes; at most {LONGEST_TASK} are taken. Put long material into a file of the "
            "workspace and name it in the task.",
            detail={"bytes": size, "limit": LONGEST_TASK},
        )
    safe = make_safe(task)
    pairs = make_safe_value({str(key): str(value) for key, value in labels.items()})
    return safe.text, pairs.value, merge(safe.altered, pairs.altered)


def known_policy(wanted: str | Mapping[str, Any]) -> tuple[str, int | None, dict[str, Any]]:
    """Name, version and data of a policy as it stands now; one that belongs to this run alone has no version."""
    if not isinstance(wanted, str):
        body = {name: value for name, value in wanted.items() if name != "name"}
        return str(wanted.get("name") or "own")[:100], None, body
    row = policies.current(wanted) if "\x00" not in wanted else None
    if row is None:
        raise StartRefused(
            "unknown_policy", f"There is no policy {wanted!r:.120}. List them with GET /api/policies, or use 'default'."
        )
    return row.name, row.version, dict(row.body)


def limits_of(agent: Agent, policy: Mapping[str, Any], given: Mapping[str, Any]) -> Limits:
    """What holds a run of this agent: of all sources the tightest. Raises StartRefused `bad_limits`."""
    from django.conf import settings

    try:
        return limits.tightest(
            limits.read(settings.AGENT_LIMITS, "environment"),
            limits.read(day_limits.without(agent.limits or {}), "agent"),
            limits.read(policies.limits_of(policy), "policy"),
            limits.read(given, "request"),
        )
    except limits.BadLimits as error:
        raise StartRefused("bad_limits", str(error)) from error


def refuse_blocked(run: Run) -> None:
    block = blocks.blocking(agent=run.agent, task=run.task, project=run.project, labels=run.labels)
    if block is not None:
        raise StartRefused(
            "starts_blocked",
            f"{block.by} has blocked new starts: {block.reason}. It lasts until someone lifts it "
            f"(DELETE /api/blocks/{block.pk} with a reason).",
            detail={"block": block.pk, "by": block.by, "reason": block.reason},
            status=423,
        )


# --- the row ---------------------------------------------------------------------------------------------------------


def row_of(spec: RunSpec, *, owner: str, project: str, **columns: Any) -> Run:
    """The row of a run that is to be queued; not saved yet."""
    return Run(
        pk=spec.id,
        root=spec.root,
        parent=spec.parent,
        path="/".join(spec.path),
        owner=owner,
        project=project,
        agent=spec.agent,
        task=spec.task,
        labels=dict(spec.labels),
        policy=spec.policy,
        spec=specs.to_json(spec),
        **columns,
    )


def queue(run: Run, *, altered: Mapping[str, Any] | None = None, hold: str | None = None) -> None:
    """Save the row with its hold and write `run.queued` at epoch 0, in the caller's transaction."""
    now = database_now()
    run.created_at = run.published_at = now
    run.save(force_insert=True)
    if hold is not None:
        try:
            workspaces.hold(run.pk, hold)
        except workspaces.WorkspaceRefused as error:
            raise StartRefused(error.code, error.message, detail=error.detail, status=error.status) from error
    body = RunQueued(agent=run.agent, task=run.task, labels=run.labels, altered=altered)
    done = log.write([log.Batch(run=run.pk, root=run.root, epoch=0, drafts=[draft(body, at=now)])])[0]
    hints.announce_later(run.root, 0, run.pk, done.first, done.last, done.bodies)
    run.last_seq = done.last
