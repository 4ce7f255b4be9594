"""Notes, answers, pauses and raises: each is answered in every case, also when the run ends meanwhile."""

import pytest

from agents import kinds
from agents.commands import CommandKind
from agents.events import decode
from control.runs import inbox, leases, log
from control.runs.models import Command, Receipt, Run
from tests.control.records import batch, drafts, make_run, write
from tests.control.runs.verbs import asking, interrupt, parked, receipt, received, steer, together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("quiet")]


# --- steer ----------------------------------------------------------------------------------------------------------


def test_a_note_is_delivered_injected_and_then_done_with_its_turn() -> None:
    run = make_run()
    note = steer(run)
    assert [(d.run, d.command.args["note"]) for d in inbox.open_for([run.pk])] == [(run.pk, "use b")]
    write(run, received(note))
    assert len(inbox.open_for([run.pk])) == 1, "a worker may have died with it: it is told again"
    write(run, kinds.SteerInjected(command=note.pk, note="use b", by="ann"), turn=4)
    assert inbox.open_for([run.pk]) == []
    row = Receipt.objects.get(command_id=note.pk)
    note.refresh_from_db()
    assert (row.state, row.turn, note.state, note.open) == ("done", 4, "done", False)


def test_a_note_to_a_finished_run_is_refused() -> None:
    run = make_run()
    write(run, kinds.RunCompleted(final="x"))
    with pytest.raises(inbox.RunFinished) as caught:
        steer(run)
    assert caught.value.code == "run_finished"


@pytest.mark.case("A3-04")
def test_a_note_that_races_with_the_end_is_refused_or_closed_never_lost() -> None:
    for _ in range(60):
        run = make_run()
        note, _ = together(lambda run=run: steer(run), lambda run=run: write(run, kinds.RunCompleted(final="x")))
        if isinstance(note, Command):
            note.refresh_from_db()
            assert (note.open, note.state) == (False, "refused")
            assert receipt(note, run) == ("refused", "run_finished")
        else:
            assert isinstance(note, inbox.RunFinished)


def test_a_note_does_not_reach_the_children() -> None:
    parent = make_run()
    child = make_run(parent=parent)
    steer(parent)
    interrupt(parent)
    told = {(d.run, d.command.kind) for d in inbox.open_for([parent.pk, child.pk])}
    assert told == {
        (parent.pk, CommandKind.STEER),
        (parent.pk, CommandKind.INTERRUPT),
        (child.pk, CommandKind.INTERRUPT),
    }


def test_a_refused_note_keeps_its_code() -> None:
    run = make_run()
    note = steer(run)
    write(run, kinds.SteerRefused(command=note.pk, code="no_turn_left"))
    note.refresh_from_db()
    assert receipt(note, run) == ("refused", "no_turn_left") and note.state == "refused"


def test_a_note_of_a_queued_run_is_withdrawn_at_once() -> None:
    run = make_run(held=False)
    note = steer(run)
    assert inbox.withdraw(note.pk, "ann").changed
    note.refresh_from_db()
    assert (note.open, note.state) == (False, "withdrawn")
    assert inbox.open_for([run.pk]) == []
    assert inbox.withdraw(note.pk, "ann").reason == "already_withdrawn"


def test_a_note_of_a_held_run_is_withdrawn_when_the_run_takes_that_in() -> None:
    run = make_run()
    note = steer(run)
    write(run, received(note))
    asked = inbox.withdraw(note.pk, "ann")
    assert (asked.changed, asked.reason) == (True, "requested")
    assert inbox.withdraw(note.pk, "ann").changed is False
    wish = Command.objects.get(kind="withdraw")
    write(run, received(wish))
    note.refresh_from_db()
    wish.refresh_from_db()
    assert (note.state, note.open, wish.state, wish.open) == ("withdrawn", False, "done", False)


def test_a_withdrawal_that_comes_too_late_is_refused() -> None:
    run = make_run()
    note = steer(run)
    inbox.withdraw(note.pk, "ann")
    wish = Command.objects.get(kind="withdraw")
    write(run, received(note), kinds.SteerInjected(command=note.pk, note="x", by="ann"), received(wish), turn=2)
    note.refresh_from_db()
    assert note.state == "done" and receipt(wish, run) == ("refused", "too_late")


# --- questions, pause, raise ----------------------------------------------------------------------------------------


def answer(run: Run, call: str | None, text: str = "a") -> inbox.Issued:
    return inbox.issue(run_id=run.pk, kind=CommandKind.ANSWER, by="ann", args={"call": call, "text": text})


def test_the_first_answer_wins() -> None:
    run = make_run()
    asking(run, "q-1")
    run.refresh_from_db()
    assert (run.status, run.waiting_for, run.waiting_call, run.activity) == (
        "waiting",
        "question",
        "q-1",
        "asks: a or b?",
    )
    first, second = answer(run, "q-1"), answer(run, "q-1", "b")
    assert first.changed and second.reason == "already_answered" and second.command == first.command
    assert first.command is not None
    write(run, received(first.command), kinds.RunContinued(), turn=1, call="q-1")
    run.refresh_from_db()
    first.command.refresh_from_db()
    assert (first.command.state, run.status, run.activity) == ("done", "running", "clarify a?")


def test_an_answer_nobody_waits_for_is_refused() -> None:
    run = make_run()
    assert answer(run, "q-9").reason == "not_waiting"
    assert not Command.objects.exists()


def test_the_answer_to_a_parked_run_requeues_it(published: list[str]) -> None:
    run = parked()
    assert answer(run, run.waiting_call).changed
    old = run.epoch
    run.refresh_from_db()
    assert (run.status, run.epoch, run.attempts, run.worker) == ("queued", old + 1, 0, None)
    assert published == [run.pk]
    event = decode(log.read_after(run.pk, run.last_seq - 1, 1)[0])
    assert event.data == kinds.RunRequeued(epoch=run.epoch, why="answer by ann")
    assert [d.command.kind for d in inbox.open_for([run.pk])] == [CommandKind.ANSWER]
    assert leases.claim(run.pk, "w-2") is not None


def test_pause_and_unpause_are_idempotent_and_settled_by_the_log() -> None:
    run = make_run()

    def say(kind: CommandKind) -> inbox.Issued:
        return inbox.issue(run_id=run.pk, kind=kind, by="ann", args={})

    assert say(CommandKind.UNPAUSE).reason == "not_paused"
    pause = say(CommandKind.PAUSE)
    assert say(CommandKind.PAUSE).reason == "already_pausing" and pause.command
    write(run, received(pause.command), kinds.RunWaiting(reason="pause"))
    run.refresh_from_db()
    assert (run.waiting_for, run.activity) == ("pause", "paused")
    assert say(CommandKind.PAUSE).reason == "already_paused"
    unpause = say(CommandKind.UNPAUSE)
    assert say(CommandKind.UNPAUSE).reason == "already_unpausing" and unpause.command
    write(run, received(unpause.command), kinds.RunContinued())
    assert [receipt(c, run)[0] for c in (pause.command, unpause.command)] == ["done", "done"]


def test_a_pause_that_is_taken_back_in_time_is_settled() -> None:
    run = make_run()
    pause = inbox.issue(run_id=run.pk, kind=CommandKind.PAUSE, by="ann").command
    unpause = inbox.issue(run_id=run.pk, kind=CommandKind.UNPAUSE, by="ann").command
    assert pause and unpause
    write(run, received(pause), received(unpause))
    assert receipt(pause, run) == ("refused", "unpaused") and receipt(unpause, run) == ("done", None)


def test_a_raise_is_done_when_the_fuse_was_raised() -> None:
    run = make_run()
    command = inbox.issue(run_id=run.pk, kind=CommandKind.RAISE, by="ann", args={"limits": {"max_turns": 120}}).command
    assert command
    write(run, received(command))
    assert receipt(command, run) == ("delivered", None)
    write(run, kinds.FuseRaised(limits={"max_turns": "120"}, by="ann", reason="more"))
    assert receipt(command, run) == ("done", None)


def test_a_batch_that_is_fenced_leaves_the_commands_alone() -> None:
    run = make_run()
    note = steer(run)
    done = log.append([batch(run, *drafts(kinds.SteerInjected(command=note.pk, note="x", by="a")), epoch=0)])
    assert done[0].fenced
    note.refresh_from_db()
    assert note.open and not Receipt.objects.exists()
