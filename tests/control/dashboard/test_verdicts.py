"""Verdicts in the transcript: word and shape per rung, the rule, the count, and evidence that leads somewhere."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from agents import kinds
from agents.ids import new_id
from agents.kinds import CallCompleted, TurnStarted, VerdictIssued
from control.runs.models import Run
from tests.control.dashboard.pages import page
from tests.control.records import make_run, write

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]


def verdict(**more: Any) -> VerdictIssued:
    given: dict[str, Any] = {
        "detector": "repeats", "rung": "observe", "rule": "repeat_read", "fingerprint": "f", "step": 3, "count": 4,
        "evidence": [], "wasted_tokens": 0, "explanation": "repeat_read: 4 times the same read; noted", "shadow": False,
    }  # fmt: skip
    return VerdictIssued(**{**given, **more})


def judged(run: Run, *said: VerdictIssued) -> None:
    write(run, TurnStarted(), *said, turn=1)


def notes(html: str) -> list[str]:
    return re.findall(r'<div class="note note-verdict.*?</div>', html, re.S)


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


@pytest.mark.parametrize(
    ("rung", "word", "shape"),
    [
        ("observe", "Observed", "eye"), ("steer", "Told the model", "note"), ("block", "Blocked", "blocked"),
        ("escalate", "Escalated", "up"), ("stop", "Stopped the run", "flash"), ("new", "new", "question"),
    ],
)  # fmt: skip
def test_each_rung_has_a_word_and_a_shape(operator: Client, rung: str, word: str, shape: str):
    run = make_run()
    judged(run, verdict(rung=rung))
    (note,) = notes(page(operator, f"/runs/{run.pk}/"))
    assert f"#i-{shape}" in note and words(note).startswith(f"{word} repeat_read 4× ")
    assert "4 times the same read; noted" in note and "repeat_read: 4" not in note


def test_shadow_says_what_would_have_been_done(operator: Client):
    run = make_run()
    judged(run, verdict(rung="stop", shadow=True))
    html = page(operator, f"/runs/{run.pk}/")
    (note,) = notes(html)
    assert "Would stop the run" in note and "is-shadow" in note and ">shadow<" in note
    assert 'aria-label="ladder: nothing yet"' in html


def test_a_fuse_that_is_near_is_no_repeat(operator: Client):
    run = make_run()
    judged(run, verdict(detector="fuses", rule="max_steps", count=83, explanation="83 % of max_steps is used"))
    (note,) = notes(page(operator, f"/runs/{run.pk}/"))
    assert "Near a fuse" in note and "83×" not in note


def test_block_modes_advice_and_waste_are_told(operator: Client):
    run = make_run()
    judged(
        run,
        verdict(rung="block", mode="stub"),
        verdict(rung="block", mode="refuse", advice="Change the path.", wasted_tokens=18_400, wasted_usd="0.49"),
    )
    html = page(operator, f"/runs/{run.pk}/")
    stub, refuse = map(words, notes(html))
    assert "run, answered as unchanged" in stub and "wasted" not in stub
    assert "not run" in refuse and "wasted 18.4 k tokens, $0.490" in refuse and "Change the path." in refuse
    stats = words(html[html.index('class="stat stat-ladder"') :].split("</div>")[0])
    assert stats.endswith("block repeat_read 4×")


def test_a_hint_names_its_rule(operator: Client):
    run = make_run()
    write(run, kinds.HintInjected(verdict={"rule": "pending", "count": 5}, text="[Guard: wait longer]"), turn=1)
    write(run, kinds.HintInjected(verdict={}, text="[Guard: bare]"), turn=1)
    text = words(page(operator, f"/runs/{run.pk}/"))
    assert "Told the model pending 5×" in text and "[Guard: wait longer]" in text and "[Guard: bare]" in text


def test_evidence_leads_to_the_row_on_the_page_and_to_the_page_that_has_it(operator: Client):
    run = make_run()
    call = new_id()
    write(run, TurnStarted(), turn=1)
    done = CallCompleted(operation="execute_tool", name="run_command", status="error", result="1 failed")
    seq = write(run, done, turn=1, call=call).last
    for number in range(2, 60):
        write(run, TurnStarted(), turn=number)
    write(run, verdict(rung="block", evidence=[seq, 999]), turn=59)
    (note,) = notes(page(operator, f"/runs/{run.pk}/"))
    assert f'href="at/{seq}/" data-jump="call-{call}"' in note
    answer = operator.get(f"/runs/{run.pk}/at/{seq}/")
    assert answer["Location"] == f"/runs/{run.pk}/?before=10#call-{call}"
    assert f'id="call-{call}"' in page(operator, answer["Location"])
    last = Run.objects.get(pk=run.pk).last_seq
    assert operator.get(f"/runs/{run.pk}/at/{last}/")["Location"] == f"/runs/{run.pk}/#event-{last}"
    assert operator.get(f"/runs/{run.pk}/at/999/").status_code == 404


def test_blocked_and_stubbed_calls_show_what_the_model_was_told(operator: Client):
    run = make_run()
    for status, told in (("blocked", "Not run. 4 times the same read."), ("stub", "Unchanged since call 2.")):
        done = CallCompleted(operation="execute_tool", name="read_file", status=status, result=told)
        write(run, done, turn=1, call=new_id())
    text = words(page(operator, f"/runs/{run.pk}/"))
    assert "not executed" in text and "unchanged" in text
    assert text.count("Not run. 4 times the same read.") == 2 and text.count("Unchanged since call 2.") == 2


def test_a_verdict_stands_below_its_call_although_it_comes_first(operator: Client):
    run = make_run()
    calls = [new_id(), new_id()]
    asked = [{"call": call, "wire_id": call, "name": "read_file", "args": "{}"} for call in calls]
    chat = CallCompleted(operation="chat", name="m", status="ok", text="", tool_calls=asked, cost_source="none")
    write(run, TurnStarted(), turn=1)
    write(run, chat, turn=1, call=new_id())
    watched = write(run, verdict(rung="block"), turn=1, call=calls[0]).last
    write(run, verdict(rung="observe"), turn=1, call=calls[1])
    assert notes(page(operator, f"/runs/{run.pk}/")) == []
    done = CallCompleted(operation="execute_tool", name="read_file", status="blocked", result="Not run.")
    write(run, done, turn=1, call=calls[0])
    html = page(operator, f"/runs/{run.pk}/")
    assert html.index(f'id="call-{calls[0]}"') < html.index("Blocked</b>")
    fresh = operator.get(f"/runs/{run.pk}/changes?after={watched + 1}").json()["patches"]
    assert any(f'id="event-{watched}"' in patch["html"] for patch in fresh)
    # The other call never came: what was said of it is told before the end.
    write(run, kinds.RunCompleted(final="done"))
    html = page(operator, f"/runs/{run.pk}/")
    assert len(notes(html)) == 2 and html.index("Observed</b>") < html.index('data-final="completed"')
