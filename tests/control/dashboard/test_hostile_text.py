"""What agents, tools and providers write is shown, and never becomes markup."""

import re
from typing import Any

import pytest
from django.test import Client

from agents import kinds
from agents.ids import new_id
from agents.kinds import CallCompleted, CallStarted, TurnStarted
from tests.control.dashboard.pages import page
from tests.control.records import make_run, write
from tests.fixtures.hostile_run import hostile_run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u202egnp.exe\u200b\x1b[31mred"


def test_hostile_text_is_shown_and_never_run(operator: Client):
    run = hostile_run(lambda: EVIL)
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
