"""Bulks are durable: asked in pieces, ended midway, taken up again, written down when they are over; notes for many."""

import json

import pytest
from django.core.management import CommandError, call_command

from agents.kinds import CommandReceived, RunCompleted, RunInterrupted, SteerInjected
from control.accounts.models import AuditEntry
from control.api.outputs import BulkDryOut, BulkOut, BulkRunsOut, BulkStartedOut
from control.runs import bulks, starts
from control.runs.models import Bulk, Command, Receipt, Run
from tests.control.api.callers import UNKNOWN, Caller
from tests.control.records import make_run, write

pytestmark = pytest.mark.django_db
STOPPED = {"sockets": 1, "processes": 0, "children": 0, "abandoned": [], "seconds": 0.1, "verified": True}


@pytest.fixture
def _one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that gets one run done before its moment is over."""
    monkeypatch.setattr(bulks, "PIECE", 1)
    monkeypatch.setattr(bulks, "MOMENT_S", 0.0)


def kill(caller: Caller, **given: object) -> str:
    given = {"filter": {"all": True}, "reason": "runaway spend", **given}
    return str(caller.post("/api/interrupt", given).body["bulk"])


def asked(bulk: str) -> set[str]:
    return set(Command.objects.filter(bulk=bulk).values_list("run_id", flat=True))


def stop(run: Run) -> None:
    command = Command.objects.get(run_id=run.pk, kind="interrupt")
    write(run, RunInterrupted(command=command.pk, by=command.by, reason="", stopped=STOPPED))


@pytest.mark.usefixtures("_one_at_a_time")
def test_the_answer_does_not_wait_for_the_last_run_and_the_desk_goes_on(operator: Caller):
    runs = [make_run() for _ in range(4)]
    bulk = kill(operator)
    assert asked(bulk) == {runs[0].pk}
    told = operator.get(f"/api/bulk/{bulk}").body
    assert (told["eligible"], told["commands"], told["left"], told["finished"]) == (4, 1, 3, False)
    for _ in range(5):
        bulks.go_on()
    assert asked(bulk) == {run.pk for run in runs}
    assert operator.get(f"/api/bulk/{bulk}").body["left"] == 0


@pytest.mark.usefixtures("_one_at_a_time")
def test_a_bulk_ended_midway_asks_nobody_else_and_takes_nothing_back(operator: Caller):
    runs = [make_run() for _ in range(3)]
    bulk = kill(operator)
    assert operator.delete(f"/api/bulk/{bulk}").status == 422
    assert operator.delete(f"/api/bulk/{bulk}", {"reason": "wrong filter"}).body == {"changed": True, "reason": None}
    for _ in range(4):
        bulks.go_on()
    assert asked(bulk) == {runs[0].pk}
    stop(runs[0])
    bulks.go_on()
    told = operator.get(f"/api/bulk/{bulk}").body
    assert (told["finished"], told["total"], told["left"], told["cancelled_by"]) == (True, 1, 0, "token:test operator")
    again = operator.delete(f"/api/bulk/{bulk}", {"reason": "once more"}).body
    assert again == {"changed": False, "reason": "already_cancelled"}
    assert {row.action for row in AuditEntry.objects.all()} == {"interrupt_many", "cancel_bulk"}


def test_there_is_nothing_to_end_once_all_are_asked(operator: Caller):
    make_run()
    bulk = kill(operator)
    assert operator.delete(f"/api/bulk/{bulk}", {"reason": "x"}).body == {"changed": False, "reason": "all_asked"}
    assert operator.delete(f"/api/bulk/{UNKNOWN}", {"reason": "x"}).status == 404


@pytest.mark.usefixtures("_one_at_a_time")
def test_a_run_that_ends_before_its_turn_is_left_alone(operator: Caller):
    first, second = make_run(), make_run()
    bulk = kill(operator)
    write(second, RunCompleted(final="done"))
    for _ in range(3):
        bulks.go_on()
    assert asked(bulk) == {first.pk}


def test_how_it_came_out_is_written_down_with_its_seconds(operator: Caller):
    runs = [make_run() for _ in range(2)]
    bulk = kill(operator)
    for run in runs:
        stop(run)
    bulks.go_on()
    kept = Bulk.objects.get(pk=bulk)
    assert kept.finished_at is not None and kept.figures["counts"]["verified"] == 2
    reply = operator.get(f"/api/bulk/{bulk}")
    BulkOut.model_validate(reply.body)
    assert reply.body["finished"] and 0 <= reply.body["seconds"] < 60
    assert all(run.stop_seconds is not None and run.stop_seconds >= 0 for run in Run.objects.all())
    assert {run.exit_reason for run in Run.objects.all()} == {"kill_switch"}


def test_a_start_that_slipped_past_the_block_is_found_by_the_last_look(operator: Caller):
    make_run()
    bulk = kill(operator, block_new_starts=True)
    late = make_run()
    bulks.go_on()
    assert late.pk in asked(bulk)
    assert Bulk.objects.get(pk=bulk).asked_at is None, "it looks again until a start under way must have shown"


def test_hundreds_that_nobody_holds_end_in_few_statements(operator: Caller, django_assert_max_num_queries):
    runs = [make_run(held=False) for _ in range(30)]
    with django_assert_max_num_queries(220):
        kill(operator)
    assert {run.status for run in Run.objects.filter(pk__in=[run.pk for run in runs])} == {"interrupted"}
    assert Receipt.objects.filter(state="done").count() == 30
    assert not Command.objects.filter(open=True).exists()


def test_what_stops_already_is_signalled_again_with_the_others(
    operator: Caller, hinted: list[tuple[str, bytes]], django_capture_on_commit_callbacks
):
    stopping, fresh = make_run(), make_run()
    operator.post(f"/api/runs/{stopping.pk}/interrupt")
    hinted.clear()
    with django_capture_on_commit_callbacks(execute=True):
        bulk = kill(operator)
    assert asked(bulk) == {fresh.pk}
    named = b"".join(message for topic, message in hinted if topic == "commands")
    assert stopping.pk.encode() in named and fresh.pk.encode() in named


def test_a_stop_of_the_parent_reaches_a_child_born_since(operator: Caller):
    parent = make_run()
    bulk = kill(operator, filter={"ids": [parent.pk]})
    child = make_run(parent=parent)
    assert operator.get(f"/api/bulk/{bulk}").body["total"] == 2
    write(child, RunInterrupted(command=None, by="parent", reason="", stopped=STOPPED))
    assert operator.get(f"/api/bulk/{bulk}").body["counts"]["stopped"] == 1


# --- notes ------------------------------------------------------------------------------------------------------------


def test_many_runs_get_one_note_each_with_a_receipt_of_its_own(operator: Caller):
    scouts = [make_run(agent="scout") for _ in range(2)]
    make_run(agent="other")
    reply = operator.post("/api/steer", {"filter": {"agent": "scout"}, "note": "Stop at noon."})
    BulkStartedOut.model_validate(reply.body)
    assert (reply.status, reply.body["eligible"]) == (202, 2)
    bulk = reply.body["bulk"]
    notes = {command.run_id: command for command in Command.objects.all()}
    assert notes.keys() == {run.pk for run in scouts}
    assert {command.args["note"] for command in notes.values()} == {"Stop at noon."}
    first = notes[scouts[0].pk].pk
    write(scouts[0], CommandReceived(command=first, command_kind="steer", by="x"), turn=3)
    write(scouts[0], SteerInjected(command=first, note="Stop at noon.", by="x"), turn=3)
    told = operator.get(f"/api/bulk/{bulk}").body
    assert (told["counts"]["injected"], told["counts"]["requested"], told["finished"]) == (1, 1, False)
    page = operator.get(f"/api/bulk/{bulk}/runs?limit=1").body
    BulkRunsOut.model_validate(page)
    assert [(line["run"], line["state"], line["turn"]) for line in page["runs"]] == [(scouts[0].pk, "injected", 3)]
    rest = operator.get(f"/api/bulk/{bulk}/runs?after={page['next']}").body
    assert [line["state"] for line in rest["runs"]] == ["requested"] and rest["next"] is None


def test_a_dry_run_of_a_note_touches_nothing(operator: Caller):
    make_run()
    done = make_run()
    write(done, RunCompleted(final="done"))
    reply = operator.post("/api/steer", {"filter": {"all": True}, "note": "Hello", "dry_run": True})
    BulkDryOut.model_validate(reply.body)
    assert (reply.status, reply.body["eligible"], reply.body["not_eligible"][0]["count"]) == (200, 1, 1)
    assert not Command.objects.exists() and not Bulk.objects.exists()


@pytest.mark.parametrize(("given", "code"), [({"note": " "}, "empty_note"), ({"note": "x"}, "empty_filter")])
def test_a_note_for_many_needs_text_and_a_filter(operator: Caller, given: dict[str, str], code: str):
    filter = {"all": True} if code == "empty_note" else {}
    reply = operator.post("/api/steer", {"filter": filter, **given})
    assert (reply.status, reply.code) == (400, code)


def test_looking_is_not_acting(viewer: Caller):
    make_run()
    assert viewer.post("/api/steer", {"filter": {"all": True}, "note": "x"}).status == 403
    assert viewer.post("/api/interrupt", {"filter": {"all": True}, "reason": "x"}).status == 403
    assert viewer.delete(f"/api/bulk/{UNKNOWN}", {"reason": "x"}).status == 403


def test_a_note_that_the_run_never_read_is_refused_at_its_end(operator: Caller):
    run = make_run()
    bulk = operator.post("/api/steer", {"filter": {"all": True}, "note": "Hello"}).body["bulk"]
    write(run, RunCompleted(final="done"))
    bulks.go_on()
    told = operator.get(f"/api/bulk/{bulk}").body
    assert told["finished"] and told["failures"][0]["code"] == "run_finished"


def test_a_blocked_start_is_told_by_whom(operator: Caller):
    make_run()
    kill(operator, block_new_starts=True)
    with pytest.raises(starts.StartRefused, match="token:test operator has blocked new starts: runaway spend"):
        starts.start(starts.StartRequest(agent="default", task="go"), by="ann")


# --- the command line -------------------------------------------------------------------------------------------------


def said(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    call_command(*words)
    return json.loads(capsys.readouterr().out.strip().splitlines()[-1])


def test_the_command_line_stops_steers_forks_and_withdraws(capsys: pytest.CaptureFixture[str]):
    runs = [make_run(agent="scout") for _ in range(2)]
    assert said(capsys, "steer", "--agent", "scout", "--dry-run", "Hello")["eligible"] == 2
    assert not Command.objects.exists()
    said(capsys, "steer", "--ids", ",".join(run.pk for run in runs), "Hello")
    note = Command.objects.filter(kind="steer").first()
    assert note is not None and Command.objects.count() == 2
    assert said(capsys, "withdraw", note.pk) == {"changed": True, "reason": "requested"}
    told = said(capsys, "interrupt", "--all", "--status", "running", "--block-new-starts", "--reason", "spend")
    assert (told["eligible"], told["changed"]) == (2, True) and told["block"]
    assert Command.objects.filter(kind="interrupt", bulk=told["bulk"]).count() == 2
    with pytest.raises(CommandError, match="Interrupt it first"):
        call_command("fork", runs[0].pk)


@pytest.mark.parametrize("words", [("steer", "Hello"), ("steer", "--all", "one", "two"), ("interrupt",)])
def test_the_command_line_says_what_it_needs(words: tuple[str, ...]):
    with pytest.raises(CommandError):
        call_command(*words)
