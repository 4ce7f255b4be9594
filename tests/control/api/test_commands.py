"""Commands through the API: issued once, told truthfully, refused with a next step."""

import pytest

from agents.commands import CommandState
from agents.kinds import CommandReceived, RunCompleted, RunContinued, RunInterrupted, RunStopping, RunWaiting
from control.accounts.models import AuditEntry
from control.api.outputs import CommandOut, IssuedOut
from control.runs.models import Command, Run
from tests.control.api.callers import UNKNOWN, Caller
from tests.control.records import make_run, write

pytestmark = pytest.mark.django_db
STOPPED = {"sockets": 1, "processes": 2, "children": 0, "abandoned": [], "seconds": 0.1, "verified": True}
BODIES = {
    "interrupt": {},
    "steer": {"note": "look left"},
    "pause": {"when": "after_batch"},
    "unpause": {},
    "answer": {"call": "c", "text": "yes"},
    "raise": {"limits": {"max_turns": 200}, "reason": "nearly there"},
}


def test_an_interrupt_is_requested_and_nothing_more_is_claimed(operator: Caller):
    run = make_run()
    reply = operator.post(f"/api/runs/{run.pk}/interrupt", {"reason": "wrong branch"})
    assert reply.status == 202 and reply.body["changed"]
    IssuedOut.model_validate(reply.body)
    shown = operator.get(f"/api/commands/{reply.body['command']}")
    CommandOut.model_validate(shown.body)
    assert (shown.body["state"], shown.body["delivered_at"], shown.body["done_at"]) == ("requested", None, None)
    by = "token:test operator"
    assert (shown.body["scope"], shown.body["reason"], shown.body["by"]) == ("subtree", "wrong branch", by)
    assert Run.objects.get(pk=run.pk).status == "running"


def test_an_interrupt_needs_no_body(operator: Caller):
    assert operator.post(f"/api/runs/{make_run().pk}/interrupt").status == 202


def test_an_interrupt_pressed_five_times_is_one_command(operator: Caller):
    run = make_run()
    replies = [operator.post(f"/api/runs/{run.pk}/interrupt") for _ in range(5)]
    assert [reply.status for reply in replies] == [202] * 5
    assert [reply.body["changed"] for reply in replies] == [True, False, False, False, False]
    assert len({reply.body["command"] for reply in replies}) == 1
    assert Command.objects.count() == 1
    assert AuditEntry.objects.filter(action="interrupt").count() == 5


def test_a_run_that_nobody_holds_is_stopped_at_once(operator: Caller):
    run = make_run(held=False)
    reply = operator.post(f"/api/runs/{run.pk}/interrupt")
    assert reply.status == 202
    assert Run.objects.get(pk=run.pk).status == "interrupted"
    assert operator.get(f"/api/commands/{reply.body['command']}").body["state"] == "done"


def test_a_finished_run_is_told_so_and_left_alone(operator: Caller):
    run = make_run()
    write(run, RunCompleted(final="done"))
    reply = operator.post(f"/api/runs/{run.pk}/interrupt")
    assert (reply.status, reply.body["changed"], reply.body["reason"]) == (200, False, "already_finished")
    assert not Command.objects.exists()


@pytest.mark.parametrize("verb", [verb for verb in BODIES if verb != "interrupt"])
def test_a_finished_run_takes_no_other_command(operator: Caller, verb: str):
    run = make_run()
    write(run, RunCompleted(final="done"))
    reply = operator.post(f"/api/runs/{run.pk}/{verb}", BODIES[verb])
    assert (reply.status, reply.code) == (409, "run_finished")
    assert AuditEntry.objects.get().result == "run_finished"


@pytest.mark.parametrize("verb", BODIES)
@pytest.mark.parametrize("run_id", [UNKNOWN, "nonsense", "0", "%00", "..%2f", "x" * 500])
def test_an_unknown_run_and_a_malformed_id_are_told_alike(operator: Caller, verb: str, run_id: str):
    reply = operator.post(f"/api/runs/{run_id}/{verb}", BODIES[verb])
    assert (reply.status, reply.code) == (404, "not_found")
    assert "GET /api/" in reply.body["error"]["message"]


def test_times_of_a_command_follow_the_log(operator: Caller):
    run = make_run()
    command = operator.post(f"/api/runs/{run.pk}/interrupt").body["command"]
    write(run, CommandReceived(command=command, command_kind="interrupt", by="x"))
    assert operator.get(f"/api/commands/{command}").body["state"] == "delivered"
    write(run, RunStopping(command=command, by="x"))
    assert operator.get(f"/api/commands/{command}").body["state"] == "stopping"
    write(run, RunInterrupted(command=command, by="x", reason="", stopped=STOPPED))
    shown = operator.get(f"/api/commands/{command}").body
    assert (shown["state"], shown["done"], shown["of"]) == ("done", 1, 1)
    times = [shown[name] for name in ("requested_at", "delivered_at", "stopping_at", "done_at")]
    assert times == sorted(times) and all(time.endswith("Z") and len(time) == 27 for time in times)


def test_a_command_tells_of_every_run_of_the_tree(operator: Caller):
    parent = make_run()
    child = make_run(parent=parent)
    command = operator.post(f"/api/runs/{parent.pk}/interrupt").body["command"]
    write(child, RunInterrupted(command=command, by="x", reason="", stopped=STOPPED))
    shown = operator.get(f"/api/commands/{command}").body
    assert {line["run"]: line["state"] for line in shown["runs"]} == {parent.pk: "requested", child.pk: "done"}
    assert (shown["done"], shown["of"], shown["done_at"]) == (1, 2, None)


def test_a_note_waits_and_can_be_withdrawn(operator: Caller):
    run = make_run(held=False)
    command = operator.post(f"/api/runs/{run.pk}/steer", {"note": "look left"}).body["command"]
    first = operator.delete(f"/api/commands/{command}")
    assert (first.status, first.body["changed"]) == (200, True)
    assert Command.objects.get(pk=command).state == CommandState.WITHDRAWN
    second = operator.delete(f"/api/commands/{command}")
    assert (second.status, second.body["changed"], second.body["reason"]) == (200, False, "already_withdrawn")


def test_an_interrupt_cannot_be_withdrawn(operator: Caller):
    command = operator.post(f"/api/runs/{make_run().pk}/interrupt").body["command"]
    reply = operator.delete(f"/api/commands/{command}")
    assert (reply.body["changed"], reply.body["reason"]) == (False, "not_withdrawable")


@pytest.mark.parametrize("note", ["", "   ", "\n"])
def test_an_empty_note_is_refused(operator: Caller, note: str):
    reply = operator.post(f"/api/runs/{make_run().pk}/steer", {"note": note})
    assert (reply.status, reply.code) == (400, "empty_note")


def test_a_note_with_nul_and_half_a_character_is_kept_storable(operator: Caller):
    run = make_run()
    reply = operator.ask("POST", f"/api/runs/{run.pk}/steer", b'{"note": "a\\u0000b\\ud83d"}')
    assert reply.status == 202
    args = Command.objects.get().args
    assert "\x00" not in args["note"] and args["altered"]


def test_a_secret_in_a_note_is_not_kept(operator: Caller):
    run = make_run()
    operator.post(f"/api/runs/{run.pk}/steer", {"note": "use sk-proj-" + "a1B2" * 12})
    assert "a1B2a1B2" not in Command.objects.get().args["note"]


def test_pause_and_unpause_say_what_changed(operator: Caller):
    run = make_run()
    assert operator.post(f"/api/runs/{run.pk}/unpause").body["reason"] == "not_paused"
    first = operator.post(f"/api/runs/{run.pk}/pause", {"when": "before_call"})
    assert (first.status, first.body["changed"]) == (202, True)
    assert Command.objects.get().args == {"when": "before_call"}
    again = operator.post(f"/api/runs/{run.pk}/pause", {"when": "before_call"})
    assert (again.body["changed"], again.body["command"]) == (False, first.body["command"])
    assert operator.post(f"/api/runs/{run.pk}/unpause").body["changed"]


def test_an_answer_goes_to_the_call_that_waits(operator: Caller):
    run = make_run()
    write(run, RunWaiting(reason="question", call="c1", text="Which?"))
    wrong = operator.post(f"/api/runs/{run.pk}/answer", {"call": "c2", "text": "left"})
    assert (wrong.status, wrong.code) == (409, "not_waiting")
    right = operator.post(f"/api/runs/{run.pk}/answer", {"call": "c1", "text": "left"})
    assert (right.status, right.body["changed"]) == (202, True)
    assert Command.objects.get().args == {"call": "c1", "text": "left"}
    late = operator.post(f"/api/runs/{run.pk}/answer", {"call": "c1", "text": "right"})
    assert (late.body["changed"], late.body["reason"]) == (False, "already_answered")


@pytest.mark.parametrize(
    "body",
    [
        {"call": "c1"},
        {"call": "c1", "text": "x", "decision": "approve"},
        {"call": "c1", "decision": "edit"},
        {"call": "c1", "decision": "approve", "args": {}},
        {"call": "c1", "text": " "},
        {"text": "x"},
    ],
)
def test_an_answer_is_a_text_or_a_decision(operator: Caller, body: dict[str, object]):
    assert operator.post(f"/api/runs/{make_run().pk}/answer", body).status == 422


def test_an_approval_takes_a_decision_and_a_question_a_text(operator: Caller):
    run = make_run()
    path = f"/api/runs/{run.pk}/answer"
    write(run, RunWaiting(reason="approval", call="c1", text="?", name="run_command", args='{"command": "ls"}'))
    assert operator.post(path, {"call": "c1", "text": "yes"}).code == "needs_decision"
    bad = operator.post(path, {"call": "c1", "decision": "edit", "args": {"cmd": "ls"}})
    assert (bad.status, bad.code) == (422, "bad_args")
    good = operator.post(path, {"call": "c1", "decision": "deny", "reason": "no"})
    assert (good.status, Command.objects.get().args["reason"]) == (202, "no")
    other = make_run()
    write(other, RunWaiting(reason="question", call="c1", text="?"))
    assert operator.post(f"/api/runs/{other.pk}/answer", {"call": "c1", "decision": "approve"}).code == "needs_text"


def test_a_call_that_is_asked_for_again_can_be_answered_again(operator: Caller):
    run = make_run()
    path = f"/api/runs/{run.pk}/answer"
    write(run, RunWaiting(reason="approval", call="c1", text="?"))
    first = operator.post(path, {"call": "c1", "decision": "edit", "args": {}}).body["command"]
    write(run, CommandReceived(command=first, command_kind="answer", by="x"))
    write(run, RunContinued(decision="edit", by="x", problem="does not fit"))
    assert operator.post(path, {"call": "c1", "decision": "approve"}).body["reason"] == "already_answered"
    write(run, RunWaiting(reason="approval", call="c1", text="?"))
    assert operator.post(path, {"call": "c1", "decision": "approve"}).body["changed"]


def test_limits_are_raised_with_a_reason(operator: Caller):
    run = make_run()
    body = {"limits": {"max_cost": "5.50", "max_turns": 200}, "reason": "nearly there"}
    assert operator.post(f"/api/runs/{run.pk}/raise", body).status == 202
    command = Command.objects.get()
    assert (command.args, command.reason) == ({"limits": {"max_cost": "5.50", "max_turns": "200"}}, "nearly there")


@pytest.mark.parametrize("slip", [{"max_cost": "0.55"}, {"max_cost": "5.50"}, {"max_turns": 500, "max_cost": "5"}])
def test_a_raise_that_would_lower_a_limit_changes_nothing(operator: Caller, slip: dict[str, object]):
    path = f"/api/runs/{make_run().pk}/raise"
    assert operator.post(path, {"limits": {"max_cost": "5.50", "max_turns": 200}, "reason": "more"}).body["changed"]
    reply = operator.post(path, {"limits": slip, "reason": "a zero too few"})
    assert (reply.body["changed"], reply.body["reason"]) == (False, "not_higher")
    assert Command.objects.count() == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"limits": {}, "reason": "x"},
        {"limits": {"max_turns": 5}},
        {"limits": {"max_turns": 5}, "reason": ""},
        {"limits": {"max_turns": 0}, "reason": "x"},
        {"limits": {"max_turns": "5"}, "reason": "x"},
        {"limits": {"max_turns": True}, "reason": "x"},
        {"limits": {"max_cost": "much"}, "reason": "x"},
        {"limits": {"max_cost": "NaN"}, "reason": "x"},
        {"limits": {"max_children": 3}, "reason": "x"},
    ],
)
def test_bad_limits_are_told_by_field(operator: Caller, body: dict[str, object]):
    reply = operator.post(f"/api/runs/{make_run().pk}/raise", body)
    assert reply.status == 422
    assert not Command.objects.exists()


@pytest.mark.parametrize("command_id", [UNKNOWN, "nonsense"])
def test_an_unknown_command_is_not_found(operator: Caller, command_id: str):
    assert operator.get(f"/api/commands/{command_id}").status == 404
    assert operator.delete(f"/api/commands/{command_id}").status == 404


def test_every_act_leaves_an_audit_row_with_who_and_why(operator: Caller):
    run = make_run()
    operator.post(f"/api/runs/{run.pk}/interrupt", {"reason": "too dear"})
    row = AuditEntry.objects.get()
    assert (row.actor, row.role) == ("token:test operator", "operator")
    assert (row.action, row.target) == ("interrupt", f"run:{run.pk}")
    assert (row.reason, row.result) == ("too dear", "ok")
