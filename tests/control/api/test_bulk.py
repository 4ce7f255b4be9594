"""The kill switch: a dry run that tells who and who not, one batch, a block on new starts, and truthful progress."""

import pytest

from agents.kinds import RunCompleted, RunInterrupted
from control.accounts.models import AuditEntry
from control.api.outputs import BulkDryOut, BulkOut, BulkStartedOut
from control.runs.models import Block, Command, Run
from tests.control.api.callers import UNKNOWN, Caller
from tests.control.records import make_run, write

pytestmark = pytest.mark.django_db
STOPPED = {"sockets": 1, "processes": 2, "children": 0, "abandoned": [], "seconds": 0.1, "verified": True}


def kill(caller: Caller, filter: dict[str, object], **given: object):
    return caller.post("/api/interrupt", {"filter": filter, "reason": "runaway spend", **given})


def counts(caller: Caller, bulk: str) -> dict[str, int]:
    return {name: count for name, count in caller.get(f"/api/bulk/{bulk}").body["counts"].items() if count}


def test_a_dry_run_tells_who_would_be_stopped_and_who_not_and_touches_nothing(operator: Caller):
    live = [make_run(agent="scout") for _ in range(4)]
    done = make_run(agent="scout")
    write(done, RunCompleted(final="done"))
    make_run(agent="other")
    reply = kill(operator, {"agent": "scout"}, dry_run=True)
    BulkDryOut.model_validate(reply.body)
    assert (reply.status, reply.body["eligible"], len(reply.body["sample"])) == (200, 4, 3)
    assert {row["id"] for row in reply.body["sample"]} <= {run.pk for run in live}
    (left,) = reply.body["not_eligible"]
    assert (left["why"], left["status"], left["count"], left["sample"]) == (
        "already_finished",
        "completed",
        1,
        [done.pk],
    )
    assert not Command.objects.exists() and not AuditEntry.objects.exists()


def test_every_matching_run_is_asked_and_no_other(operator: Caller):
    live = [make_run(agent="scout") for _ in range(3)]
    other = make_run(agent="other")
    reply = kill(operator, {"agent": "scout"})
    BulkStartedOut.model_validate(reply.body)
    assert (reply.status, reply.body["eligible"], reply.body["changed"]) == (202, 3, True)
    assert {c.run_id for c in Command.objects.filter(bulk=reply.body["bulk"])} == {run.pk for run in live}
    assert not Command.objects.filter(run_id=other.pk).exists()


def test_a_run_below_a_matching_one_is_reached_by_its_command(operator: Caller):
    parent = make_run(agent="scout")
    child = make_run(parent=parent, agent="scout")
    bulk = kill(operator, {"agent": "scout"}).body["bulk"]
    assert [c.run_id for c in Command.objects.all()] == [parent.pk]
    assert operator.get(f"/api/bulk/{bulk}").body["total"] == 2
    write(child, RunInterrupted(command=Command.objects.get().pk, by="x", reason="", stopped=STOPPED))
    assert counts(operator, bulk) == {"requested": 1, "stopped": 1, "verified": 1}


def test_progress_claims_no_more_than_the_log_says(operator: Caller):
    runs = [make_run(agent="scout") for _ in range(3)]
    bulk = kill(operator, {"agent": "scout"}).body["bulk"]
    commands = {c.run_id: c.pk for c in Command.objects.all()}
    write(runs[0], RunInterrupted(command=commands[runs[0].pk], by="x", reason="", stopped=STOPPED))
    unsure = STOPPED | {"verified": False, "why": "worker_frozen"}
    write(runs[1], RunInterrupted(command=commands[runs[1].pk], by="x", reason="", stopped=unsure))
    reply = operator.get(f"/api/bulk/{bulk}")
    BulkOut.model_validate(reply.body)
    assert counts(operator, bulk) == {"stopped": 2, "verified": 1, "unverified": 1, "requested": 1}
    (failure,) = reply.body["failures"]
    assert (failure["run"], failure["code"], failure["why"]) == (runs[1].pk, "unverified", "worker_frozen")
    assert reply.body["finished"] is False


def test_a_queued_run_ends_by_the_kill_switch_and_says_so(operator: Caller):
    run = make_run(held=False)
    kill(operator, {"ids": [run.pk]})
    run = Run.objects.get(pk=run.pk)
    assert (run.status, run.exit_reason) == ("interrupted", "kill_switch")


def test_what_is_stopping_already_is_told_and_asked_no_second_time(operator: Caller):
    run = make_run()
    operator.post(f"/api/runs/{run.pk}/interrupt")
    reply = kill(operator, {"all": True})
    assert (reply.body["changed"], reply.body["bulk"], reply.body["reason"]) == (False, None, "nothing_to_stop")
    assert reply.body["not_eligible"][0]["why"] == "already_stopping"
    assert Command.objects.count() == 1


def test_unknown_ids_are_told(operator: Caller):
    run = make_run()
    reply = kill(operator, {"ids": [run.pk, UNKNOWN, "nonsense"]}, dry_run=True)
    assert reply.body["eligible"] == 1
    assert reply.body["not_eligible"] == [
        {"why": "not_found", "status": None, "count": 2, "sample": [UNKNOWN, "nonsense"]}
    ]


@pytest.mark.parametrize("dry_run", [True, False])
def test_an_empty_filter_stops_nobody(operator: Caller, dry_run: bool):
    make_run()
    reply = kill(operator, {}, dry_run=dry_run)
    assert (reply.status, reply.code) == (400, "empty_filter")
    assert not Command.objects.exists()


def test_all_means_all_but_still_obeys_the_other_words(operator: Caller):
    make_run(agent="scout"), make_run(agent="other")
    assert kill(operator, {"all": True}, dry_run=True).body["eligible"] == 2
    assert kill(operator, {"all": True, "agent": "scout"}, dry_run=True).body["eligible"] == 1


def test_a_reason_is_needed(operator: Caller):
    assert operator.post("/api/interrupt", {"filter": {"all": True}}).status == 422


def test_a_repeat_with_its_key_stops_nobody_new(operator: Caller):
    make_run()
    body = {"filter": {"all": True}, "reason": "runaway spend"}
    first = operator.post("/api/interrupt", body, idempotency_key="k1")
    later = make_run()
    second = operator.post("/api/interrupt", body, idempotency_key="k1")
    assert second.body == first.body
    assert not Command.objects.filter(run_id=later.pk).exists()


def test_blocked_starts_are_refused_until_the_block_is_lifted(operator: Caller, admin: Caller):
    make_run()
    block = kill(operator, {"agent": "default"}, block_new_starts=True).body["block"]
    start = {"agent": "default", "task": "Look around"}
    refused = operator.post("/api/runs", start)
    assert (refused.status, refused.code) == (423, "starts_blocked")
    assert [row["id"] for row in operator.get("/api/blocks").body["blocks"]] == [block]
    assert operator.delete(f"/api/blocks/{block}").status == 422
    lifted = operator.delete(f"/api/blocks/{block}", {"reason": "found it"})
    assert (lifted.status, lifted.body) == (200, {"changed": True, "reason": None})
    again = operator.delete(f"/api/blocks/{block}", {"reason": "found it"})
    assert again.body == {"changed": False, "reason": "already_lifted"}
    assert operator.post("/api/runs", start).status == 201
    assert operator.get("/api/blocks").body["blocks"] == []
    row = Block.objects.get()
    assert (row.lifted_by, row.lift_reason) == ("token:test operator", "found it")


def test_a_block_is_set_also_where_there_is_nothing_to_stop(operator: Caller):
    reply = kill(operator, {"agent": "scout"}, block_new_starts=True)
    assert (reply.body["changed"], reply.body["bulk"]) == (True, None)
    assert Block.objects.get().pk == reply.body["block"]


@pytest.mark.parametrize("given", [UNKNOWN, "nonsense"])
def test_unknown_bulks_and_blocks_are_not_found(operator: Caller, given: str):
    assert operator.get(f"/api/bulk/{given}").status == 404
    assert operator.delete(f"/api/blocks/{given}", {"reason": "x"}).status == 404


def test_the_audit_trail_keeps_the_filter(operator: Caller):
    make_run()
    reply = kill(operator, {"agent": "default"})
    row = AuditEntry.objects.get()
    assert (row.action, row.filter, row.reason) == ("interrupt_many", {"agent": "default"}, "runaway spend")
    assert row.target == f"bulk:{reply.body['bulk']}"
