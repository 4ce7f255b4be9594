"""A run as a recorded call sequence: what was asked and answered, in the order of asking."""

import json
from io import StringIO

import pytest
from django.core.management import call_command

from agents.ids import new_id
from agents.kinds import CallCompleted, ContextCompressed, EditRecorded, SteerInjected
from control.runs import artifacts
from control.runs.models import Run
from tests.control.api.callers import Caller
from tests.control.records import make_run, write

pytestmark = pytest.mark.django_db


def asked(run: Run, *calls: tuple[str, str, str], turn: int, text: str = "") -> None:
    """One answer of the model that asks for `(call, tool, args)`s."""
    wanted = [{"call": call, "wire_id": call, "name": name, "args": args} for call, name, args in calls]
    body = CallCompleted(
        operation="chat",
        name="m",
        status="ok",
        text=text,
        tool_calls=wanted or None,
        usage={"input": 90, "output": 10, "cache_read": 0, "cache_write": 0, "reasoning": 0},
        cost_usd="0.05",
        cost_source="reported",
    )
    write(run, body, turn=turn, call=new_id())


def answered(run: Run, call: str, name: str, result: str, status: str = "ok", turn: int = 1) -> None:
    body = CallCompleted(operation="execute_tool", name=name, status=status, result=result, cost_source="none")
    write(run, body, turn=turn, call=call)


def test_calls_come_in_the_order_of_asking_with_args_results_and_batches(viewer: Caller):
    run = make_run()
    a, b, c, d = (new_id() for _ in range(4))
    asked(run, (a, "read_file", '{"path": "x"}'), (b, "run_command", "no json"), turn=1, text="Let me see.")
    answered(run, b, "run_command", "exit 1", status="error")
    answered(run, a, "read_file", "content")
    write(run, SteerInjected(command=new_id(), note="look left", by="ann"), turn=1)
    asked(run, (c, "write_file", '{"path": "x", "content": "y"}'), turn=2)
    write(
        run,
        EditRecorded(path="x", before_sha256=None, sha256="s", bytes=1, state="changed", artifact=artifacts.put(b"y")),
        turn=2,
        call=c,
    )
    answered(run, c, "write_file", "written", turn=2)
    write(run, ContextCompressed(before_tokens=9, after_tokens=1, summary="so far", from_seq=1, to_seq=2))
    asked(run, (d, "read_file", "{}"), turn=3)
    reply = viewer.get(f"/api/runs/{run.pk}/calls.jsonl")
    assert reply.headers["Content-Type"].startswith("application/jsonl")
    (line,) = reply.body.decode().splitlines()
    made = json.loads(line)
    assert made["id"] == run.pk
    assert [(x["tool"], x["args"], x["result"], x["is_error"], x["batch"]) for x in made["calls"]] == [
        ("read_file", {"path": "x"}, "content", False, 1),
        ("run_command", "no json", "exit 1", True, 1),
        ("__user__", {"text": "look left"}, "", False, 2),
        ("write_file", {"path": "x", "content": "y"}, "written", False, 2),
        ("__compaction__", {"text": "so far"}, "", False, 3),
    ]
    assert [(x.get("cost_usd"), x.get("tokens")) for x in made["calls"]] == [
        (0.05, 100),
        (None, None),
        (None, None),
        (0.05, 100),
        (None, None),
    ]
    assert made["calls"][3]["edits"] == {"x": "y"}


def test_a_text_without_a_call_is_a_pseudo_call():
    run = make_run()
    asked(run, turn=1, text="I will now write the document.")
    out = StringIO()
    call_command("export_run", run.pk, stdout=out)
    (call,) = json.loads(out.getvalue())["calls"]
    assert (call["tool"], call["args"]["text"]) == ("__assistant_text__", "I will now write the document.")


def test_an_edit_whose_content_is_gone_still_exports(viewer: Caller):
    run = make_run()
    a = new_id()
    asked(run, (a, "write_file", "{}"), turn=1)
    gone = {"sha256": "0" * 64, "bytes": 1}
    write(run, EditRecorded(path="x", before_sha256=None, sha256="s", bytes=1, state="changed", artifact=gone), call=a)
    answered(run, a, "write_file", "written")
    assert "edits" not in json.loads(viewer.get(f"/api/runs/{run.pk}/calls.jsonl").body)["calls"][0]
