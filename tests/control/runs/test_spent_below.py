"""What a run cost, and what it cost with its sub-agents: stored once, summed when asked."""

from decimal import Decimal

import pytest

from agents.ids import new_id
from agents.kinds import CallCompleted, CallStarted
from control.runs import log, rows
from control.runs.models import Run
from tests.control.records import batch, drafts, make_run, write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("quiet")]


def spend(run: Run, usd: str | None) -> CallCompleted:
    done = CallCompleted(operation="chat", name="m", status="ok", text="x", cost_usd=usd, cost_source="reported")
    call = new_id()
    write(run, CallStarted(operation="chat", name="m"), done, turn=1, call=call)
    return done


@pytest.mark.case("A7-11")
def test_a_parent_shows_its_own_cost_and_the_sum_with_its_children_and_nothing_counts_twice() -> None:
    parent = make_run()
    child = make_run(parent=parent)
    grandchild = make_run(parent=child)
    spend(parent, "1.00")
    spend(child, "0.70")
    late = spend(grandchild, "0.50")
    parent.refresh_from_db()
    child.refresh_from_db()
    assert rows.run_row(parent)["cost_usd"] == "1"
    assert rows.run_detail(parent)["subtree_cost_usd"] == "2.2"
    assert rows.run_detail(child)["subtree_cost_usd"] == "1.2"
    assert sum(run.cost_usd or 0 for run in Run.objects.filter(root=parent.root)) == Decimal("2.2")
    # A worker that lost the run writes its answer again: the epoch fences it and nothing is added.
    Run.objects.filter(pk=grandchild.pk).update(epoch=2)
    assert log.append([batch(grandchild, *drafts(late, turn=1, call=new_id()), epoch=1)])[0].fenced
    assert rows.run_detail(parent)["subtree_cost_usd"] == "2.2"


def test_an_unknown_part_makes_the_sum_unknown_and_tells_what_is_known() -> None:
    parent = make_run()
    child = make_run(parent=parent)
    spend(parent, "1.00")
    write(
        child,
        CallCompleted(operation="chat", name="m", status="stopped", cost_source="unknown"),
        turn=1,
        call=new_id(),
    )
    detail = rows.run_detail(parent)
    assert detail["subtree_cost_usd"] is None
    assert detail["subtree_cost_known_usd"] == "1"
