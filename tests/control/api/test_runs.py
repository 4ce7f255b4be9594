"""Starting, listing and reading runs."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agents.kinds import RunCompleted, TurnStarted
from control.accounts.models import AuditEntry
from control.api.outputs import EventsOut, RunDetailOut, RunsOut, StartedOut
from control.runs.models import Event, Run
from tests.control.api.callers import UNKNOWN, Caller
from tests.control.records import make_run, write

pytestmark = pytest.mark.django_db


def start(caller: Caller, **given: object):
    return caller.post("/api/runs", {"agent": "default", "task": "Look around", **given})


def test_a_start_gives_id_status_and_url(operator: Caller):
    reply = start(operator, labels={"team": "pay"}, limits={"max_turns": 3, "max_cost": "0.50"}, project="p1")
    assert reply.status == 201
    StartedOut.model_validate(reply.body)
    run = Run.objects.get()
    assert reply.body == {"id": run.pk, "status": "queued", "url": f"/runs/{run.pk}/"}
    assert (run.owner, run.project, run.labels) == ("token:test operator", "p1", {"team": "pay"})
    assert [e.kind for e in Event.objects.all()] == ["run.queued"]
    row = AuditEntry.objects.get()
    assert (row.action, row.target, row.result) == ("start", f"run:{run.pk}", "ok")


def test_a_start_with_a_key_starts_once(operator: Caller):
    body = {"agent": "default", "task": "Look around"}
    ids = {operator.post("/api/runs", body, idempotency_key="k").body["id"] for _ in range(3)}
    assert len(ids) == 1 and Run.objects.count() == 1


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"agent": "nobody"}, "unknown_agent"),
        ({"agent": ""}, "unknown_agent"),
        ({"task": ""}, "empty_task"),
        ({"task": "  \n"}, "empty_task"),
        ({"task": "x" * 1_000_001}, "task_too_long"),
        ({"workspace": "/etc"}, "workspace_outside_roots"),
        ({"workspace": "/nowhere/at/all"}, "workspace_outside_roots"),
        ({"base_url": "ftp://host/v1"}, "bad_base_url"),
        ({"base_url": "host/v1"}, "bad_base_url"),
        ({"base_url": "file:///etc/passwd"}, "bad_base_url"),
        ({"policy": "nonsense"}, "unknown_policy"),
        ({"credential": "nonsense"}, "unknown_credential"),
    ],
)
def test_a_start_that_cannot_work_is_refused_before_anything_is_made(operator: Caller, given: dict, code: str):
    reply = start(operator, **given)
    assert 400 <= reply.status < 500
    assert reply.code == code
    assert len(reply.body["error"]["message"]) > 20
    assert not Run.objects.exists()
    assert AuditEntry.objects.get().result == code


def test_a_workspace_that_is_not_there_is_refused(operator: Caller, settings, tmp_path: Path):
    settings.WORKSPACE_ROOTS = [tmp_path]
    reply = start(operator, workspace=str(tmp_path / "gone"))
    assert (reply.status, reply.code) == (400, "workspace_missing")


def test_a_workspace_is_not_left_through_a_link(operator: Caller, settings, tmp_path: Path):
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to("/etc")
    settings.WORKSPACE_ROOTS = [inside]
    assert start(operator, workspace=str(inside / "link")).code == "workspace_outside_roots"


@pytest.mark.parametrize(
    "given",
    [
        {"task": 5},
        {"task": None},
        {"agent": ["default"]},
        {"labels": {"a": 1}},
        {"labels": []},
        {"limits": {"max_turns": 0}},
        {"limits": {"max_turns": 1.5}},
        {"limits": {"max_cost": -1}},
        {"limits": {"max_seconds": "5"}},
        {"limits": {"max_children": 1}},
        {"dry_run": "yes"},
        {"taks": "typo"},
        {"project": ""},
        {"model": "a\x00b"},
    ],
)
def test_a_field_that_is_wrong_gets_422(operator: Caller, given: dict):
    assert start(operator, **given).status == 422
    assert not Run.objects.exists()


def test_a_task_with_half_a_character_starts_and_is_marked(operator: Caller):
    reply = operator.ask("POST", "/api/runs", b'{"agent": "default", "task": "look \\ud83d around\\u0000"}')
    assert reply.status == 201
    assert json.loads(Event.objects.get().body)["data"]["altered"]


# --- listing ----------------------------------------------------------------------------------------


def ids(reply) -> list[str]:
    RunsOut.model_validate(reply.body)
    return [row["id"] for row in reply.body["runs"]]


def test_runs_are_listed_newest_first_and_paged_without_gap_or_repeat(viewer: Caller):
    runs = [make_run() for _ in range(7)]
    # The same moment: then the id decides.
    Run.objects.filter(pk__in=[run.pk for run in runs[2:5]]).update(created_at=datetime(2026, 1, 2, tzinfo=UTC))
    expected = list(Run.objects.order_by("-created_at", "-pk").values_list("pk", flat=True))
    seen: list[str] = []
    cursor = ""
    for _ in range(10):
        reply = viewer.get(f"/api/runs?limit=2&cursor={cursor}")
        seen += ids(reply)
        cursor = reply.body["next"]
        make_run()
        if cursor is None:
            break
    assert seen == expected


def test_filters_are_joined_by_and(viewer: Caller):
    one = make_run(agent="scout", labels={"team": "pay", "odd__key": "x"}, project="p1", task="Fix the Ünicode bug")
    two = make_run(agent="scout", labels={"team": "ops"}, project="p2", task="100% done_ness")
    write(two, RunCompleted(final="x"))
    three = make_run(agent="other", project="p1")
    everyone = {one.pk, two.pk, three.pk}
    for query, expected in [
        ("agent=scout", {one.pk, two.pk}),
        ("agent=scout,other", everyone),
        ("status=completed", {two.pk}),
        ("status=running,completed", everyone),
        ("label=team", {one.pk, two.pk}),
        ("label=team=pay", {one.pk}),
        ("label=team:ops", {two.pk}),
        ("label=odd__key=x", {one.pk}),
        ("label=nothing", set()),
        ("project=p1", {one.pk, three.pk}),
        ("project=p1&agent=scout", {one.pk}),
        ("q=unicode", set()),
        ("q=fix%20the", {one.pk}),
        ("q=100%25", {two.pk}),
        ("q=e_n", {two.pk}),
        (f"q={three.pk}", {three.pk}),
        ("agent=", everyone),
    ]:
        reply = viewer.get(f"/api/runs?{query}")
        assert reply.status == 200, (query, reply.body)
        assert set(ids(reply)) == expected, query


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("status=nonsense", 400, "bad_status"),
        ("cursor=nonsense", 400, "bad_cursor"),
        ("cursor=%F0%9F%98%80", 400, "bad_cursor"),
        ("limit=0", 422, "invalid"),
        ("limit=201", 422, "invalid"),
        ("limit=x", 422, "invalid"),
        ("q=%00", 422, "invalid"),
        ("label=%00=1", 422, "invalid"),
        ("q=" + "x" * 501, 422, "invalid"),
    ],
)
def test_a_listing_that_cannot_be_answered_says_why(viewer: Caller, query: str, status: int, code: str):
    make_run()
    reply = viewer.get(f"/api/runs?{query}")
    assert (reply.status, reply.code) == (status, code)


# --- one run ----------------------------------------------------------------------------------------


def test_one_run_is_its_row_and_more(viewer: Caller, operator: Caller):
    pk = start(operator).body["id"]
    reply = viewer.get(f"/api/runs/{pk}")
    assert reply.status == 200
    RunDetailOut.model_validate(reply.body)
    assert reply.body["id"] == pk
    assert reply.body["cost_usd"] is None or isinstance(reply.body["cost_usd"], str)
    assert reply.body["created_at"].endswith("Z") and len(reply.body["created_at"]) == 27
    assert viewer.get(f"/api/runs/{pk.upper()}").body["id"] == pk


@pytest.mark.parametrize("tail", ["", "/events", "/calls.jsonl"])
@pytest.mark.parametrize("run_id", [UNKNOWN, "nonsense", "%00", "' or 1=1 --"])
def test_an_unknown_run_is_not_found(viewer: Caller, run_id: str, tail: str):
    reply = viewer.get(f"/api/runs/{run_id}{tail}")
    assert (reply.status, reply.code) == (404, "not_found")
    assert "GET /api/runs" in reply.body["error"]["message"]


def test_events_are_read_from_a_cursor_without_gap_or_repeat(viewer: Caller):
    run = make_run()
    for turn in range(1, 10):
        write(run, TurnStarted(), turn=turn)
    seqs: list[int] = []
    after = 0
    while True:
        reply = viewer.get(f"/api/runs/{run.pk}/events?after={after}&limit=4")
        EventsOut.model_validate(reply.body)
        assert (reply.body["last_seq"], reply.body["epoch"]) == (10, 1)
        if not reply.body["events"]:
            break
        seqs += [event["seq"] for event in reply.body["events"]]
        after = seqs[-1]
    assert seqs == list(range(1, 11))


def test_events_are_the_stored_bytes(viewer: Caller):
    run = make_run()
    reply = viewer.get(f"/api/runs/{run.pk}/events")
    assert reply.body["events"] == [json.loads(Event.objects.get().body)]


def test_a_cursor_from_the_future_is_refused(viewer: Caller):
    run = make_run()
    reply = viewer.get(f"/api/runs/{run.pk}/events?after=2")
    assert (reply.status, reply.code) == (400, "cursor_ahead")
    assert reply.body["error"]["detail"]["last_seq"] == 1
    assert viewer.get(f"/api/runs/{run.pk}/events?after=1").body["events"] == []


@pytest.mark.parametrize(
    "query", ["after=-1", "after=x", "after=1e3", "limit=0", "limit=5001", "after=99999999999999999999"]
)
def test_a_cursor_that_is_no_number_is_refused(viewer: Caller, query: str):
    assert viewer.get(f"/api/runs/{make_run().pk}/events?{query}").status == 422
