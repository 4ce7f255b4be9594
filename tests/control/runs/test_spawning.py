"""Sub-agents: checked in the transaction that inserts them, never missed by an interrupt."""

import threading
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from pytest_django import Settings

from agents import kinds
from agents.commands import CommandKind, Scope
from agents.errors import Fenced, SpawnRefused
from agents.ids import new_id
from agents.ports import SpawnRequest
from agents.spec import WorkspaceKind
from control.fleet.models import Agent
from control.runs import inbox, spawning, specs, starts
from control.runs.models import Account, Run
from tests.control.records import write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("quiet")]


@pytest.fixture(autouse=True)
def _embedded(settings: Settings, tmp_path: Path) -> None:
    settings.EMBEDDED = True
    settings.MODEL_BASE_URL_GIVEN = False
    settings.AGENT_LIMITS = {}
    settings.DATA_DIR = tmp_path


def parent_run(**given: Any) -> Run:
    """A started run, held at epoch 1."""
    run = starts.start(starts.StartRequest(agent="default", task="lead", **given), by="ann")
    Run.objects.filter(pk=run.pk).update(epoch=1, status="running", worker="w-1")
    run.refresh_from_db()
    return run


def spawn(parent: Run, **given: Any) -> Run:
    request = SpawnRequest(**({"parent": parent.pk, "call": new_id(), "task": "part"} | given))
    return starts.spawn_child(parent.pk, request)


def test_a_child_stands_below_its_parent_and_inherits_what_was_frozen() -> None:
    parent = parent_run(limits={"max_tokens": 5000}, labels={"team": "ops"}, project="p")
    child = spawn(parent)
    grandchild = spawn(child)
    assert grandchild.path == f"{parent.pk}/{child.pk}/{grandchild.pk}" and grandchild.root == parent.pk
    assert (child.owner, child.project, child.labels) == ("ann", "p", {"team": "ops"})
    above, spec = specs.of(parent), specs.of(child)
    assert (spec.model, spec.workspace, spec.tools) == (above.model, above.workspace, above.tools)
    assert spec.limits.max_tokens and (spec.limits.max_tokens.value, spec.limits.max_tokens.source) == (5000, "parent")
    assert spec.depth == 1
    parent.refresh_from_db()
    assert parent.children == 2


def test_only_detached_children_are_published(published: list[str]) -> None:
    parent = parent_run()
    published.clear()
    spawn(parent)
    detached = spawn(parent, detached=True)
    assert published == [detached.pk]
    workspace, above = specs.of(detached).workspace, specs.of(parent).workspace
    assert workspace and above and workspace.kind is WorkspaceKind.WORKTREE and workspace.source == above.path


def test_the_same_call_asked_again_gets_the_child_that_it_has() -> None:
    parent = parent_run()
    first = spawn(parent, call="c-1")
    assert spawn(parent, call="c-1").pk == first.pk
    assert Run.objects.filter(parent=parent.pk).count() == 1


def test_depth_number_and_budget_have_ends() -> None:
    parent = parent_run(limits={"max_tokens": 100})
    child = spawn(parent)
    grandchild = spawn(child)
    assert refused(grandchild) == "too_deep"
    Run.objects.filter(pk=parent.pk).update(children=32)
    assert refused(child) == "too_many"
    Run.objects.filter(pk=parent.pk).update(children=2)
    Account.objects.create(key=f"run:{parent.pk}", tokens_limit=100, tokens_spent=100)
    assert refused(parent) == "budget"
    assert refused(child) == "budget"
    assert refused(parent_run(), task=" ") == "empty_task"
    assert refused(parent_run(), agent="stranger") == "unknown_agent"


def test_the_policy_of_a_tree_may_say_how_many_and_how_deep() -> None:
    parent = parent_run(policy={"fuses": {"max_children": 2, "max_depth": 1}})
    child = spawn(parent)
    assert refused(child) == "too_deep"
    spawn(parent)
    assert refused(parent) == "too_many"


def test_a_sub_agent_whose_model_has_no_price_is_not_started_under_a_limit_of_money() -> None:
    from django.utils import timezone

    Agent.objects.create(
        name="scout", prompt="look", tools=[], model="m", base_url="http://127.0.0.1:9/v1", created_at=timezone.now()
    )
    Agent.objects.filter(name="default").update(delegates_to=["scout"])
    assert refused(parent_run(limits={"max_cost": "1"}), agent="scout") == "unpriced_model"
    assert spawn(parent_run(), agent="scout").agent == "scout"


def refused(parent: Run, **given: Any) -> str:
    with pytest.raises(SpawnRefused) as caught:
        spawn(parent, **given)
    return caught.value.kind


def test_an_agent_may_delegate_to_those_that_it_names() -> None:
    from django.utils import timezone

    Agent.objects.create(name="scout", prompt="look", tools=["read_file"], created_at=timezone.now(), created_by="a")
    Agent.objects.filter(name="default").update(delegates_to=["scout"])
    spec = specs.of(spawn(parent_run(), agent="scout"))
    assert (spec.agent, spec.prompt, spec.tools, spec.model.model) == ("scout", "look", ("read_file",), "tour")


def test_a_fenced_parent_starts_no_child() -> None:
    parent = parent_run()
    request = SpawnRequest(parent=parent.pk, call="c", task="part")
    with pytest.raises(Fenced):
        spawning.spawn_child(parent.pk, request, epoch=0)


def test_a_stopping_or_finished_parent_starts_no_child() -> None:
    stopping, finished = parent_run(), parent_run()
    write(stopping, kinds.RunStopping(command=None, by="ann"))
    write(finished, kinds.RunCompleted(final="x"))
    assert refused(stopping) == refused(finished) == "parent_stopping"


def test_nobody_below_an_interrupted_run_starts_a_child() -> None:
    parent = parent_run()
    child = spawn(parent)
    Run.objects.filter(pk=child.pk).update(epoch=1, status="running", worker="w-1", lease_until=parent.created_at)
    inbox.issue(run_id=parent.pk, kind=CommandKind.INTERRUPT, by="ann", scope=Scope.SUBTREE)
    assert refused(child) == "parent_stopping"


@pytest.mark.case("A4-09")
def test_a_child_born_at_the_moment_of_the_interrupt_is_refused_or_stopped() -> None:
    """The spawn and the interrupt meet in every order; the child never runs on."""
    for _ in range(25):
        parent = parent_run()
        sibling = spawn(parent)
        outcome = _race(parent, sibling)
        for run in Run.objects.filter(root=parent.pk).exclude(pk=parent.pk):
            assert (run.status, run.stopped["verified"]) == ("interrupted", True)
        assert isinstance(outcome, Run | SpawnRefused)


def _race(parent: Run, sibling: Run) -> object:
    start = threading.Barrier(2)
    results: list[object] = []

    def give_birth() -> None:
        try:
            start.wait()
            results.append(spawn(sibling))
        except SpawnRefused as error:
            results.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=give_birth)
    thread.start()
    start.wait()
    inbox.issue(run_id=parent.pk, kind=CommandKind.INTERRUPT, by="ann", scope=Scope.SUBTREE)
    thread.join()
    return results[0]


@pytest.mark.case("A4-09")
def test_an_interrupt_waits_for_the_spawn_that_holds_the_tree_and_stops_its_child() -> None:
    """A barrier inside the spawn's transaction: the child commits after the interrupt has begun to look."""
    parent = parent_run()
    begun, looked = threading.Event(), threading.Event()
    children: list[Run] = []

    def give_birth() -> None:
        try:
            with transaction.atomic():
                children.append(spawn(parent))
                begun.set()
                looked.wait(0.3)  # the interrupt is waiting for our locks by then, or comes after: both must work
        finally:
            connection.close()

    thread = threading.Thread(target=give_birth)
    thread.start()
    begun.wait()
    issued = inbox.issue(run_id=parent.pk, kind=CommandKind.INTERRUPT, by="ann", scope=Scope.SUBTREE)
    looked.set()
    thread.join()
    child = Run.objects.get(pk=children[0].pk)
    assert issued.changed and child.status == "interrupted"
