"""What agents, tools and providers write is shown, and never becomes markup."""

import re
from typing import Any

import pytest
from django.test import Client

from agents import kinds
from agents.commands import CommandKind
from agents.ids import new_id
from agents.kinds import CallCompleted, CallStarted, RunWaiting, TurnStarted
from control.runs import inbox
from control.runs.models import Run
from tests.control.dashboard.pages import page
from tests.control.records import make_run, write

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u202egnp.exe\u200b\x1b[31mred"


def evil_run() -> Run:
    """A hostile string in every field that an agent, a tool or a provider can fill."""
    run = make_run(task=EVIL, agent=EVIL[:100], owner=EVIL, labels={EVIL: EVIL}, policy=EVIL[:100])
    call, chat, ask = new_id(), new_id(), new_id()
    reference = {"sha256": EVIL, "bytes": 1}
    write(
        run,
        kinds.RunQueued(agent=EVIL, task=EVIL, labels={EVIL: EVIL}),
        kinds.RunStarted(
            worker=EVIL, host=EVIL, epoch=2, model={"model": EVIL}, policy=EVIL, limits={}, prompt=reference,
            tools=reference, workspace=EVIL, branch=EVIL, note=EVIL,
        ),
        kinds.MemoryInjected(notes=[EVIL]),
    )  # fmt: skip
    write(run, CallStarted(operation="chat", name=EVIL, model=EVIL, provider=EVIL, credential=EVIL), turn=1, call=chat)
    error = {"reason": EVIL, "message": EVIL, "status": EVIL, "evidence": EVIL}
    write(run, kinds.CallRetried(error=error, action=EVIL, wait_s=1, until=EVIL, attempt=1), turn=1, call=chat)
    asked = [{"call": call, "wire_id": EVIL, "name": EVIL, "args": EVIL}]
    answer = CallCompleted(
        operation="chat", name=EVIL, status="ok", text=EVIL, tool_calls=asked, cost_source="unknown", finish_reason=EVIL
    )
    write(run, answer, turn=1, call=chat)
    write(run, kinds.BatchPlanned(groups=[[call], [new_id()]], why=EVIL), turn=1)
    tool = CallStarted(operation="execute_tool", name=EVIL, args=f'{{"path": "{new_id()}"}}', concurrency=EVIL)
    write(run, tool, turn=1, call=call)
    result = CallCompleted(
        operation="execute_tool", name=EVIL, status="error", args=EVIL, result=EVIL, cost_source="none",
        artifact=reference,
    )  # fmt: skip
    write(
        run,
        result,
        kinds.EditRecorded(path=EVIL, before_sha256=EVIL, sha256=EVIL, bytes=1, state=EVIL),
        turn=1,
        call=call,
    )
    write(
        run,
        kinds.VerdictIssued(
            detector=EVIL[:60], rung="block", rule=EVIL[:60], fingerprint="f", step=1, count=1, evidence=[1],
            wasted_tokens=1, explanation=EVIL, shadow=True,
        ),
        kinds.ContextCompressed(before_tokens=1, after_tokens=1, summary=EVIL, from_seq=1, to_seq=1),
        kinds.CredentialRotated(from_=EVIL, to=EVIL, reason=EVIL, cooldown_s=1),
        kinds.ModelFellBack(from_=EVIL, to=EVIL, reason=EVIL),
        kinds.SteerInjected(command=new_id(), note=EVIL, by=EVIL, after_call=call),
        kinds.SteerRefused(command=new_id(), code=EVIL[:60]),
        kinds.HintInjected(verdict={}, text=EVIL),
        kinds.FuseRaised(limits={EVIL: EVIL}, by=EVIL, reason=EVIL),
        kinds.CommandReceived(command=new_id(), command_kind="pause", by=EVIL, reason=EVIL),
        kinds.Unknown(name="future.event", raw={EVIL: EVIL}),
        turn=1,
    )  # fmt: skip
    inbox.issue(run_id=run.pk, kind=CommandKind.STEER, by=EVIL, args={"note": EVIL})
    inbox.issue(run_id=run.pk, kind=CommandKind.INTERRUPT, by=EVIL, reason=EVIL)
    write(run, RunWaiting(reason="question", call=ask, text=EVIL, choices=[EVIL]), turn=1, call=ask)
    return run


def test_hostile_text_is_shown_and_never_run(operator: Client):
    run = evil_run()
    for path in ("/", f"/runs/{run.pk}/", f"/runs/{run.pk}/interrupt"):
        html = page(operator, path)
        assert "<script>alert" not in html and "<img" not in html
        # What a button sends stands as it was given; what is seen does not.
        seen = re.sub(r' value="[^"]*"', "", html)
        assert "\u202e" not in seen and "\u200b" not in seen, path
        assert "&lt;script&gt;alert(1)" in html and "⟨U+202E⟩" in html
        assert "\x1b" not in seen


def test_hostile_ends_are_escaped_too(operator: Client):
    ends: list[Any] = [
        kinds.RunCompleted(final=EVIL),
        kinds.RunExhausted(limit=EVIL[:50], final=EVIL, final_by=EVIL),
        kinds.RunFailedEvent(error={"reason": EVIL[:40], "message": EVIL, "status": EVIL}),
        kinds.RunTripped(step=1, fuse=EVIL[:40], final=EVIL, verdict={"explanation": EVIL}),
        kinds.RunLost(worker=EVIL, last_seen=EVIL),
        kinds.RunInterrupted(
            command=None, by=EVIL, reason=EVIL, stopped={"seconds": 1, "verified": False, "why": EVIL}
        ),
    ]
    for end in ends:
        run = make_run()
        write(run, end)
        html = page(operator, f"/runs/{run.pk}/")
        assert "<script>alert" not in html and "\u202e" not in html and "data-final=" in html


def test_events_of_forms_nobody_foresaw_cost_only_their_own_shape(operator: Client):
    run = make_run()
    call = new_id()
    write(run, CallStarted(operation="execute_tool", name="x"), turn=1, call=call)
    odd = CallCompleted(operation="execute_tool", name="x", status="ok", result=["no", "text"], cost_source="none")  # type: ignore[arg-type]
    write(run, odd, turn=1, call=call)
    write(run, TurnStarted(), turn=2)
    assert 'id="turn-2"' in page(operator, f"/runs/{run.pk}/")
