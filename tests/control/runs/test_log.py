"""The log: seq without gap, the fence, one final event, reads by cursor."""

import threading
from datetime import UTC, datetime

import orjson
import pytest
from django.db import connection

from agents import kinds
from agents.events import draft
from agents.spec import Status
from control.runs import log
from control.runs.models import Call, Event, Run
from control.runs.statements import BUSY
from tests.control.records import batch, drafts, make_run, write

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("quiet")]


def seqs(run: Run) -> list[int]:
    return list(Event.objects.filter(run_id=run.pk).order_by("seq").values_list("seq", flat=True))


def test_append_allocates_seq_without_gap() -> None:
    run = make_run()
    first = write(run, kinds.TurnStarted(), kinds.TurnCompleted(), turn=1)
    second = write(run, kinds.TurnStarted(), turn=2)
    assert (first.first, first.last, second.first, second.last) == (2, 3, 4, 4)
    assert seqs(run) == [1, 2, 3, 4]
    run.refresh_from_db()
    assert run.last_seq == 4
    assert run.turns == 2


def test_stored_bytes_are_the_returned_ones_and_carry_the_envelope() -> None:
    run = make_run()
    done = write(run, kinds.SteerInjected(command="c", note="naïve ☃ \u2028", by="ann"), turn=3)
    assert log.read_after(run.pk, done.first - 1, 10) == done.bodies
    event = orjson.loads(done.bodies[0])
    assert event["run"] == run.pk and event["root"] == run.root and event["seq"] == 2
    assert event["kind"] == "steer.injected" and event["turn"] == 3 and event["v"] == 1
    assert event["data"] == {"command": "c", "note": "naïve ☃ \u2028", "by": "ann"}


def test_a_fenced_batch_changes_nothing_and_hurts_no_other_run() -> None:
    stale, fresh = make_run(), make_run()
    Run.objects.filter(pk=stale.pk).update(epoch=2)
    results = log.append(
        [
            batch(stale, *drafts(kinds.TurnStarted(), turn=1), epoch=1),
            batch(fresh, *drafts(kinds.TurnStarted(), turn=1)),
        ]
    )
    assert [done.fenced for done in results] == [True, False]
    assert seqs(stale) == [1] and seqs(fresh) == [1, 2]
    assert Run.objects.get(pk=stale.pk).turns == 0


def test_an_unknown_run_is_fenced() -> None:
    gone = log.Batch(run="0", root="0", epoch=0, drafts=drafts(kinds.TurnStarted()))
    assert log.append([gone])[0].fenced


def test_two_batches_of_one_run_in_one_append_follow_each_other() -> None:
    run = make_run()
    one, two = log.append([batch(run, *drafts(kinds.TurnStarted(), turn=n)) for n in (1, 2)])
    assert (one.first, one.last, two.first, two.last) == (2, 2, 3, 3)


def test_many_events_in_one_batch_are_all_kept() -> None:
    run = make_run()
    done = write(run, *[kinds.TurnStarted()] * 50, turn=1)
    assert len(log.read_after(run.pk, 0, 100)) == 51
    assert done.last == 51


def test_an_append_that_meets_a_row_in_its_place_leaves_nothing_behind() -> None:
    run, other = make_run(), make_run()
    last = write(run, kinds.TurnStarted(), turn=1).last
    there = Event.objects.get(run_id=run.pk, seq=last)
    Event.objects.create(
        run_id=run.pk, seq=last + 15, kind="x", turn=None, call=None, at=there.at, ts=there.ts, body="{}"
    )
    parts = [batch(other, *drafts(kinds.TurnStarted(), turn=1)), batch(run, *drafts(*[kinds.TurnCompleted()] * 20))]
    with pytest.raises(Exception, match=r"(?i)unique"):
        log.append(parts)
    assert seqs(run) == [*range(1, last + 1), last + 15]
    assert seqs(other) == [1]
    assert Run.objects.get(pk=run.pk).last_seq == last
    Event.objects.filter(run_id=run.pk, seq=last + 15).delete()
    assert [done.last for done in log.append(parts)] == [2, last + 20]


def test_after_the_final_event_only_call_late_is_taken() -> None:
    run = make_run()
    started = kinds.CallStarted(operation="execute_tool", name="deaf", args="{}")
    write(run, started, turn=1, call="c-1")
    write(run, kinds.RunCompleted(final="done"))
    assert write(run, kinds.TurnStarted(), turn=2).fenced
    assert write(run, kinds.RunFailedEvent(error={"reason": "late"})).fenced
    before = Run.objects.values().get(pk=run.pk)
    assert not write(run, kinds.CallLate(call="c-1", status="ok"), call="c-1").fenced
    after = Run.objects.values().get(pk=run.pk)
    assert after.pop("last_seq") == before.pop("last_seq") + 1
    assert after == before
    assert Call.objects.get(id="c-1").late_status == "ok"


def test_a_batch_that_goes_on_after_its_own_final_event_is_refused_whole() -> None:
    run = make_run()
    assert write(run, kinds.RunCompleted(final="x"), kinds.TurnStarted()).fenced
    assert Run.objects.get(pk=run.pk).status == Status.RUNNING


def test_a_final_run_gives_its_lease_back() -> None:
    run = make_run()
    write(run, kinds.RunCompleted(final="done"))
    run.refresh_from_db()
    assert (run.status, run.exit_reason, run.final, run.lease_until) == ("completed", "answered", "done", None)
    assert run.finished_at is not None


def test_reads_go_by_cursor() -> None:
    run = make_run()
    write(run, *[kinds.TurnStarted()] * 9, turn=1)
    page = log.read_after(run.pk, 4, 3)
    assert [orjson.loads(body)["seq"] for body in page] == [5, 6, 7]
    assert log.read_after(run.pk, 10, 3) == []
    assert log.head(run.pk) == (10, 1)
    assert log.head("none") == (0, 0)


def test_an_append_by_another_process_is_seen_before_the_next_one() -> None:
    from control.runs import folds

    run = make_run()
    write(run, kinds.TurnStarted(), turn=1)
    kept = dict(folds._kept)
    assert run.pk in kept
    write(
        run,
        kinds.TurnStarted(),
        kinds.VerdictIssued(
            detector="repeat",
            rung="block",
            rule="R1",
            fingerprint="f",
            step=1,
            count=3,
            evidence=[2],
            wasted_tokens=5,
            explanation="again",
            shadow=False,
        ),
        turn=2,
    )
    # As if this process had slept meanwhile: its kept fold is older than the row.
    folds._kept.clear()
    folds._kept.update(kept)
    folds._kept[run.pk].row.last_seq = 2
    folds._kept[run.pk].row.rung = None
    done = write(run, kinds.TurnStarted(), turn=3)
    run.refresh_from_db()
    assert (done.last, run.turns, run.rung) == (5, 3, "block")


def test_a_rolled_back_append_leaves_no_fold_behind() -> None:
    from django.db import transaction

    run = make_run()
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        log.write([batch(run, *drafts(kinds.TurnStarted(), turn=9))])
        raise ZeroDivisionError
    write(run, kinds.TurnStarted(), turn=1)
    run.refresh_from_db()
    assert run.turns == 1 and seqs(run) == [1, 2]


def test_recorded_time_never_runs_backwards() -> None:
    run = make_run()
    for _ in range(5):
        write(run, kinds.TurnStarted(), turn=1)
    stamps = [orjson.loads(body)["ts"] for body in log.read_after(run.pk, 0, 10)]
    assert stamps == sorted(stamps)


@pytest.mark.case("A4-11")
def test_of_two_writers_only_the_one_at_the_run_epoch_writes() -> None:
    """A worker that woke up after its run was taken away, racing with the new holder."""
    run = make_run()
    Run.objects.filter(pk=run.pk).update(epoch=2)
    start = threading.Barrier(2)
    fenced: dict[int, set[bool]] = {1: set(), 2: set()}

    def drive(epoch: int) -> None:
        try:
            start.wait()
            for turn in range(40):
                item = draft(kinds.TurnStarted(), at=datetime.now(UTC), turn=epoch * 1000 + turn)
                fenced[epoch].add(log.append([batch(run, item, epoch=epoch)])[0].fenced)
        finally:
            connection.close()

    threads = [threading.Thread(target=drive, args=(epoch,)) for epoch in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert fenced == {1: {True}, 2: {False}}
    assert seqs(run) == list(range(1, 42))
    turns = [orjson.loads(body)["turn"] for body in log.read_after(run.pk, 1, 100)]
    assert turns == list(range(2000, 2040))


def test_two_writers_at_one_epoch_never_share_a_seq() -> None:
    run = make_run()
    start = threading.Barrier(2)

    def drive(name: str) -> None:
        try:
            start.wait()
            for _ in range(30):
                write(run, kinds.CallStarted(operation="chat", name=name), turn=1, call=None)
        finally:
            connection.close()

    threads = [threading.Thread(target=drive, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seqs(run) == list(range(1, 62))


# --- owners ---------------------------------------------------------------------------------------------------------


def test_a_new_owner_raises_the_epoch_and_fences_the_old_one() -> None:
    run = make_run()
    won = log.append_as_owner(
        run.pk, expect=[Status.RUNNING], epoch=1, body=kinds.RunRequeued(epoch=2, why="lease lapsed")
    )
    assert won
    assert write(run, kinds.TurnStarted(), turn=1).fenced
    run.refresh_from_db()
    assert (run.epoch, run.status, run.worker, run.lease_until) == (2, "queued", None, None)


def test_of_two_new_owners_one_loses() -> None:
    run = make_run()
    lost = kinds.RunLost(worker="w-1", last_seen=None)
    outcomes = [log.append_as_owner(run.pk, expect=[Status.RUNNING], epoch=1, body=lost) for _ in range(2)]
    assert outcomes == [True, False]
    assert seqs(run) == [1, 2]


def test_an_owner_that_wants_an_unheld_run_does_not_get_a_held_one() -> None:
    run = make_run()
    body = kinds.RunRequeued(epoch=2, why="x")
    assert not log.append_as_owner(run.pk, expect=list(Status), body=body, unheld=True)
    assert Run.objects.get(pk=run.pk).epoch == 1


def test_what_changes_while_a_run_works_is_in_no_index_of_runs() -> None:
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, Run._meta.db_table)
    indexes = [one["columns"] for one in found.values() if not one["check"]]
    indexed = {column for columns in indexes for column in columns}
    assert {"root", "path", "status", "worker"} <= indexed
    assert not indexed & {*BUSY, "lease_until", "epoch", "attempts", "stop_command"}
