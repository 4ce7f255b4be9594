"""Sub-agents: checked against stop, budget, depth and number in the transaction that inserts the child.

The root's and the parent's rows are locked while the child is inserted, and an interrupt locks the whole tree: so a
child is either seen by the interrupt or refused by it.
"""

from django.db import transaction

from agents.errors import Fenced, SpawnRefused
from agents.ids import new_id
from agents.policy import accounts
from agents.policy.accounts import run_key, tree_limit
from agents.ports import SpawnRequest
from agents.spec import (
    FINAL,
    MAX_CHILDREN_PER_TREE,
    MAX_DEPTH,
    ModelSpec,
    RunSpec,
    Status,
    WorkspaceKind,
    WorkspaceSpec,
)
from control.fleet import agents, day_limits, memory, policies
from control.fleet.models import Agent
from control.runs import limits, models_of_runs, publishing, specs, starts, workspaces
from control.runs.ledger import book, standing
from control.runs.models import Run
from control.runs.refusals import StartRefused

_FINAL = frozenset(status.value for status in FINAL)


def spawn_child(parent_run_id: str, request: SpawnRequest, *, epoch: int | None = None) -> Run:
    """The child's row, queued. Asked again by the same call of the parent, the child that it has already started.

    Raises SpawnRefused, and Fenced if the parent is no longer held at `epoch`. A detached child is published, an
    attached one is driven by the parent's worker.
    """
    with transaction.atomic():
        parent = _locked_parent(parent_run_id)
        if epoch is not None and parent.epoch != epoch:
            raise Fenced(parent_run_id, epoch)
        known = Run.objects.filter(parent=parent.pk, parent_call=request.call).first()
        if known is not None:
            return known
        _refuse_stopping(parent)
        _refuse_spent(parent)
        agent = _agent(parent, request.agent)
        try:
            child = _child(parent, agent, request)
            starts.refuse_blocked(child.row)
            starts.queue(child.row, altered=child.altered, hold=child.hold)
        except StartRefused as error:
            raise SpawnRefused(error.code, error.message) from error
        _count(parent)
        if request.detached:
            publishing.publish_later(child.row.pk)
        return child.row


def _locked_parent(run_id: str) -> Run:
    root = Run.objects.filter(pk=run_id).values_list("root", flat=True).first()
    if root is None:
        raise SpawnRefused("unknown_parent", f"There is no run {run_id}; its sub-agent was not started.")
    rows = Run.objects.select_for_update(no_key=True).filter(pk__in={root, run_id}).order_by("id")
    return next(run for run in list(rows) if run.pk == run_id)


def _refuse_stopping(parent: Run) -> None:
    """A new statement after the lock: what an interrupt that held it has written is visible now."""
    stopped = Run.objects.filter(pk__in=parent.path.split("/")).exclude(stop_command=None).exists()
    if stopped or parent.status in _FINAL or parent.status == Status.STOPPING.value:
        raise SpawnRefused("parent_stopping", "The run is being stopped, so it starts no sub-agents any more.")


def _refuse_spent(parent: Run) -> None:
    """Depth and number by the tightest policy of the ancestors; money, tokens and model calls by the accounts, which
    the root's lock does not cover: a child that slips through is refused at its first call."""
    above = Run.objects.filter(pk__in=parent.path.split("/")).order_by("path")
    policies_above = [specs.of(run).policy_body for run in above]
    deepest = tree_limit(policies_above, "max_depth", MAX_DEPTH)
    if len(parent.path.split("/")) > deepest:
        raise SpawnRefused("too_deep", f"Sub-agents may be nested {deepest} deep. Do this part of the work yourself.")
    started = Run.objects.values_list("children", flat=True).get(pk=parent.root)
    if started >= tree_limit(policies_above, "max_children", MAX_CHILDREN_PER_TREE):
        raise SpawnRefused(
            "too_many", f"This tree has started {started} sub-agents, the most there may be. Do the rest yourself."
        )
    for account in book.accounts(run_key(run.pk) for run in above):
        if (fuse := accounts.spent(account)) is not None:
            raise SpawnRefused("budget", f"{fuse} is used up. Finish with what you have.")


def _count(parent: Run) -> None:
    """The root counts every sub-agent of its tree, so that one locked row holds the limit."""
    root = Run.objects.get(pk=parent.root)
    Run.objects.filter(pk=parent.root).update(children=root.children + 1)


def _agent(parent: Run, wanted: str | None) -> Agent:
    """The parent's own agent unless another one is named that it may delegate to."""
    own = agents.current(parent.agent)
    name = wanted or parent.agent
    if name != parent.agent and (own is None or name not in own.delegates_to):
        allowed = ", ".join([parent.agent, *(own.delegates_to if own else [])])
        raise SpawnRefused("unknown_agent", f"{parent.agent} may not delegate to {name!r:.80}. Use one of: {allowed}.")
    found = agents.current(name)
    if found is None:
        raise SpawnRefused("unknown_agent", f"There is no agent {name!r:.80} any more. Leave the agent out.")
    return found


class _Child:
    """A child's row before it is saved."""

    __slots__ = ("altered", "hold", "row")

    def __init__(self, row: Run, altered: dict[str, object] | None, hold: str | None) -> None:
        self.row = row
        self.altered = altered
        self.hold = hold


def _child(parent: Run, agent: Agent, request: SpawnRequest) -> _Child:
    above = specs.of(parent)
    task, labels, altered = starts.safe_words(request.task, above.labels)
    pk = new_id()
    place, hold = _place(pk, above, request.detached)
    policy, version, body = (above.policy, above.policy_version, dict(above.policy_body))
    if agent.name != above.agent:
        policy, version, body = starts.known_policy(agent.policy)
    try:
        frozen = limits.tightest(
            limits.named(above.limits, "parent"),
            limits.read(day_limits.without(agent.limits or {}), "agent"),
            limits.read(policies.limits_of(body), "policy"),
        )
    except limits.BadLimits as error:
        raise SpawnRefused("bad_limits", str(error)) from error
    model, fallbacks = _models(agent, above)
    for one in (model, *fallbacks):
        models_of_runs.refuse_unpriced(one, frozen, body, money=standing.limits_money(agent.name))
    spec = RunSpec(
        id=pk,
        root=above.root,
        parent=parent.pk,
        path=(*above.path, pk),
        agent=agent.name,
        task=task,
        prompt=agent.prompt if agent.name != above.agent else above.prompt,
        tools=tuple(agent.tools) if agent.name != above.agent else above.tools,
        memory=memory.for_run(agent.name) if agent.name != above.agent else above.memory,
        mcp_servers=tuple(agent.mcp_servers) if agent.name != above.agent else above.mcp_servers,
        model=model,
        fallbacks=fallbacks,
        limits=frozen,
        policy=policy,
        policy_version=version,
        policy_body=body,
        workspace=place,
        labels=labels,
        dry_run=above.dry_run,
    )
    row = starts.row_of(
        spec,
        owner=parent.owner,
        project=parent.project,
        priority=parent.priority,
        parent_call=request.call,
        detached=request.detached,
    )
    return _Child(row, altered, hold)


def _models(agent: Agent, above: RunSpec) -> tuple[ModelSpec, tuple[ModelSpec, ...]]:
    """A child's model and what stands behind it: its parent's if it is of the same agent."""
    if agent.name == above.agent:
        return above.model, above.fallbacks
    model = models_of_runs.choose(model=None, base_url=None, credential=None, agent=agent, parent=above.model)
    return model, models_of_runs.fallbacks(agent, model)


def _place(pk: str, above: RunSpec, detached: bool) -> tuple[WorkspaceSpec | None, str | None]:
    """Attached children share the parent's workspace; a detached one branches from its last commit, if it has any."""
    shared = above.workspace
    if not detached or shared is None:
        return shared, None
    try:
        if shared.kind is WorkspaceKind.DIRECTORY:
            place = workspaces.choose(pk, None, None)
        else:
            place = workspaces.worktree(pk, shared.path, None)
    except workspaces.WorkspaceRefused as error:
        raise StartRefused(error.code, error.message) from error
    return place.spec, place.key
