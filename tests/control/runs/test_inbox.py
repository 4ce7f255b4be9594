"""Interrupts: idempotent, ordered against the end of the run, verified before they are called done."""

import random
from typing import Any

import orjson
import pytest

from agents import kinds
from agents.commands import CommandKind, Scope
from agents.kinds import FINAL_KINDS
from agents.spec import Status
from control.runs import inbox, leases
from control.runs.models import Call, Command, Receipt, Run
from tests.control.records import make_run, write
from tests.control.runs.verbs import interrupt, kinds_of, parked, receipt, received, stopped, together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("quiet")]

RUN = Scope.RUN


# --- interrupt ------------------------------------------------------------------------------------------------------


def test_interrupt_pressed_five_times_is_one_command_and_five_hints(hinted: list[tuple[str, bytes]]) -> None:
    run = make_run()
    hinted.clear()
    outcomes = [interrupt(run) for _ in range(5)]
    assert [o.changed for o in outcomes] == [True, False, False, False, False]
    assert {o.reason for o in outcomes[1:]} == {"already_interrupting"}
    assert len({o.command.pk for o in outcomes if o.command}) == 1 == Command.objects.count()
    assert hinted == [("commands", orjson.dumps({"run": run.pk}))] * 5
    run.refresh_from_db()
    assert run.stop_command == outcomes[0].command.pk if outcomes[0].command else False
    assert run.status == Status.RUNNING, "requested is not stopped"


def test_an_interrupt_walks_through_its_states_with_the_times_of_the_log() -> None:
    run = make_run()
    command = interrupt(run).command
    assert command is not None
    write(run, received(command))
    assert receipt(command, run) == ("delivered", None)
    write(run, kinds.RunStopping(command=command.pk, by="ann"))
    assert receipt(command, run) == ("stopping", None)
    command.refresh_from_db()
    assert (command.open, command.state) == (True, "stopping")
    write(run, stopped(command))
    row = Receipt.objects.get(command_id=command.pk)
    assert row.delivered_at and row.stopping_at and row.done_at and row.delivered_at <= row.stopping_at <= row.done_at
    command.refresh_from_db()
    run.refresh_from_db()
    assert (command.open, command.state, row.state) == (False, "done", "done")
    assert (run.status, run.exit_reason, run.activity) == ("interrupted", "operator", "stopped in 0.10 s · verified")


def test_an_unverified_stop_is_called_so() -> None:
    run = make_run()
    write(run, kinds.RunInterrupted(command=None, by="ann", reason="", stopped={"seconds": 3, "verified": False}))
    run.refresh_from_db()
    assert run.activity == "stopped in 3.00 s · unverified"


def test_interrupting_a_finished_run_changes_nothing_and_says_so() -> None:
    run = make_run()
    write(run, kinds.RunCompleted(final="x"))
    assert interrupt(run) == inbox.Issued(command=None, changed=False, reason="already_finished")
    assert not Command.objects.exists()


def test_interrupting_an_unknown_run_is_told() -> None:
    with pytest.raises(inbox.NotFound):
        inbox.issue(run_id="nope", kind=CommandKind.INTERRUPT, by="ann")


def test_an_interrupt_of_the_subtree_is_wider_than_one_of_the_run() -> None:
    run = make_run()
    narrow, wide, again = interrupt(run, RUN), interrupt(run), interrupt(run, RUN)
    assert (narrow.changed, wide.changed, again.changed) == (True, True, False)


def test_a_child_of_an_interrupted_tree_is_already_interrupting() -> None:
    parent = make_run()
    child = make_run(parent=parent)
    first = interrupt(parent)
    second = interrupt(child)
    assert second.command == first.command and second.reason == "already_interrupting"


@pytest.mark.case("A4-03")
def test_a_queued_run_that_is_interrupted_never_starts() -> None:
    run = make_run(held=False)
    issued = interrupt(run, reason="not needed")
    run.refresh_from_db()
    assert (run.status, run.exit_reason, run.started_at) == ("interrupted", "operator", None)
    assert run.stopped == {
        "sockets": 0,
        "processes": 0,
        "children": 0,
        "abandoned": [],
        "seconds": 0.0,
        "verified": True,
    }
    assert kinds_of(run) == ["run.queued", "command.received", "run.interrupted"]
    assert issued.command and (issued.command.state, issued.command.open) == ("done", False)
    assert receipt(issued.command, run) == ("done", None)
    assert leases.claim(run.pk, "w-9") is None
    assert interrupt(run).reason == "already_finished"


def test_an_interrupt_and_a_claim_of_a_queued_run_never_both_win() -> None:
    for _ in range(20):
        run = make_run(held=False)
        _, claimed = together(lambda run=run: interrupt(run), lambda run=run: leases.claim(run.pk, "w-1"))
        run.refresh_from_db()
        if claimed is None:
            assert run.status == "interrupted"
        else:
            assert run.status == "running" and run.stop_command
            assert [d.command.kind for d in inbox.open_for([run.pk])] == [CommandKind.INTERRUPT]


def test_a_parked_run_is_interrupted_at_once_and_its_question_gets_a_truthful_end() -> None:
    run = parked()
    interrupt(run)
    run.refresh_from_db()
    assert run.status == "interrupted" and run.waiting_for is None
    assert Call.objects.get(run_id=run.pk).status == "stopped"
    assert kinds_of(run)[-3:] == ["command.received", "call.completed", "run.interrupted"]


def test_a_run_whose_lease_lapsed_is_left_to_the_sweeper() -> None:
    from datetime import UTC, datetime, timedelta

    run = make_run()
    Run.objects.filter(pk=run.pk).update(lease_until=datetime.now(UTC) - timedelta(minutes=1))
    assert interrupt(run).changed
    run.refresh_from_db()
    assert run.status == "running" and run.stop_command


def test_unheld_descendants_end_with_the_tree_and_held_ones_close_the_command_last() -> None:
    parent = make_run()
    queued, held = make_run(parent=parent, held=False), make_run(parent=parent)
    grandchild = make_run(parent=queued, held=False)
    command = interrupt(parent).command
    assert command is not None
    assert {Run.objects.get(pk=r.pk).status for r in (queued, grandchild)} == {"interrupted"}
    assert receipt(command, queued) == ("done", None)
    write(parent, stopped(command))
    command.refresh_from_db()
    assert command.open, "one of the tree still runs"
    write(held, kinds.RunInterrupted(command=command.pk, by="parent", reason="", stopped={}))
    command.refresh_from_db()
    held.refresh_from_db()
    assert (command.open, command.state, held.exit_reason) == (False, "done", "parent")


def test_two_runs_of_a_tree_that_end_at_once_close_their_command() -> None:
    for _ in range(10):
        parent = make_run()
        child = make_run(parent=parent)
        command = interrupt(parent).command
        assert command is not None
        together(
            lambda parent=parent, command=command: write(parent, stopped(command)),
            lambda child=child, command=command: write(child, stopped(command)),
        )
        command.refresh_from_db()
        assert (command.open, command.state) == (False, "done")


def test_a_bulk_interrupt_is_the_kill_switch() -> None:
    queued, held = make_run(held=False), make_run()
    for run in (queued, held):
        command = interrupt(run, bulk="b-1").command
    write(held, stopped(command))
    assert {Run.objects.get(pk=r.pk).exit_reason for r in (queued, held)} == {"kill_switch"}


@pytest.mark.case("A4-05")
def test_interrupt_and_completion_cross_five_hundred_times_and_one_end_stands() -> None:
    """Each round: the worker's last write and an operator's press, in random order or at the same moment."""
    choice = random.Random(4)
    ends: set[str] = set()
    for number in range(500):
        run = make_run()
        outcome: dict[str, Any] = {}

        def press(run: Run = run, outcome: dict[str, Any] = outcome) -> None:
            outcome["issued"] = interrupt(run)

        def finish(run: Run = run, outcome: dict[str, Any] = outcome) -> None:
            # As the loop does it: look once more at the commands, then write the end that follows from them.
            seen = inbox.open_for([run.pk])
            body = stopped(Command.objects.get(pk=seen[0].command.id)) if seen else kinds.RunCompleted(final="x")
            outcome["end"] = write(run, body)
            outcome["late"] = write(run, kinds.RunFailedEvent(error={"reason": "connection"}))

        if number % 5 == 0:
            together(press, finish)
        else:
            for act in choice.sample([press, finish], 2):
                act()
        run.refresh_from_db()
        ends.add(run.status)
        assert sum(kind in FINAL_KINDS for kind in kinds_of(run)) == 1
        assert not outcome["end"].fenced and outcome["late"].fenced
        issued = outcome["issued"]
        if issued.command is None:
            assert (run.status, issued.reason) == ("completed", "already_finished")
        else:
            issued.command.refresh_from_db()
            assert not issued.command.open
            expected = ("done", None) if run.status == "interrupted" else ("refused", "run_finished")
            assert receipt(issued.command, run) == expected
    assert ends == {"completed", "interrupted"}
