"""The pages as a browser without scripts gets them: the fleet, a run, its parts on demand."""

import re
from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.commands import CommandKind, Scope
from agents.ids import new_id
from agents.kinds import CallCompleted, CallStarted, TurnStarted
from control.dashboard import fleet_feed
from control.runs import inbox
from control.runs.models import Run
from tests.control.dashboard.pages import page
from tests.control.records import make_run, write
from tests.fixtures.story import go_on, interrupted, story

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]


def test_every_page_allows_only_what_this_server_sends(operator: Client):
    run = story().run
    policies = (
        "/policies/",
        "/policies/default/",
        "/policies/strict/versions/",
        "/policies/-/compare/?a=strict&b=ladder",
    )
    for path in (
        "/",
        f"/runs/{run.pk}/",
        "/runs/new/",
        f"/runs/{run.pk}/interrupt",
        f"/runs/{run.pk}/policy/",
        *policies,
    ):
        answer = operator.get(path)
        policy = answer["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
        html = answer.content.decode()
        assert not re.search(r"<script(?![^>]*\bsrc=)", html), "no script without a file"
        assert not re.search(r"<[^>]+\sstyle=", html), "no inline style"
        assert not re.search(r"<[^>]+\son\w+=", html), "no inline handler"
        assert not re.search(r"""(?:src|href|action)=["']?(?:https?:)?//""", html), "nothing foreign"


def test_the_fleet_tells_state_in_word_and_shape(operator: Client):
    make_run(task="Cut 4.18.0", agent="releaser", owner="r.dev")
    html = page(operator, "/")
    row = html[html.index('class="run-row"') :]
    for words in ("Running", "#i-running", "Cut 4.18.0", "releaser", "r.dev", "/ 90"):
        assert words in row
    assert "<b>1</b> running" in html


def test_rows_show_their_frozen_limits_and_further_ones_cost_no_further_query(operator: Client):
    def queries(look: Callable[[], object]) -> int:
        with CaptureQueriesContext(connection) as asked:
            look()
        return len(asked)

    def limited() -> Run:
        return make_run(spec={"limits": {"max_turns": {"value": "7", "source": "request"}}, "prompt": "x" * 9_000})

    runs = [limited()]
    assert "/ 7" in page(operator, "/")
    one = queries(lambda: page(operator, "/"))
    runs += [limited() for _ in range(5)]
    assert queries(lambda: page(operator, "/")) == one
    named = [run.pk for run in runs]
    assert (
        queries(lambda: fleet_feed.row_pieces(named, "html"))
        == queries(lambda: fleet_feed.row_pieces(named, "json"))
        == 1
    )
    assert b"/ 7" in fleet_feed.row_pieces(named, "html")[named[0]].replace(b"<small>", b"")


def test_filters_live_in_the_address(operator: Client):
    make_run(task="alpha invoices", agent="importer", labels={"team": "billing"})
    make_run(task="beta docs", agent="writer")
    for query in ("agent:importer", "invoices", "label:team=billing", "agent:importer alpha status:running"):
        html = page(operator, f"/?q={query}")
        assert "alpha invoices" in html and "beta docs" not in html
    for query in ("agent:nobody", "label:team__regex=.*", "status:nonsense"):
        assert "No run matches" in page(operator, f"/?q={query}")
    assert "beta docs" in page(operator, "/?view=active")
    assert "No run matches" in page(operator, "/?view=tripped")


def test_the_fleet_pages_by_key_and_keeps_families_together(operator: Client, monkeypatch: pytest.MonkeyPatch):
    from control.dashboard import fleet_rows

    monkeypatch.setattr(fleet_rows, "PAGE", 3)
    first = make_run(task="first")
    make_run(task="child of first", parent=first)
    for name in ("second", "third"):
        make_run(task=name)
    html = page(operator, "/")
    order = re.findall(r'class="task-link[^"]*">(?:<span[^>]*>›</span> )?([^<]+)<', html)
    assert order == ["third", "second", "first"]
    following = re.search(r'href="(\?cursor=[^"]+)" rel="next"', html)
    assert following
    assert "child of first" in page(operator, f"/{following.group(1)}".replace("&amp;", "&"))


def test_a_run_page_tells_the_whole_story(operator: Client):
    html = page(operator, f"/runs/{story().run.pk}/")
    for words in (
        "Turn 1",
        "3 side by side, then 1 alone",
        "reads and a write on another path may overlap",
        "429 rate_limit: retry, waited 1.2 s",
        "not executed",
        "same call, same answer 4 times",
        "leaking fixture in conftest.py",
        "Which currency table is authoritative?",
        "Asks you",
        "9.9 k",
        "/ 80.0 k",
    ):
        assert words in html, words


def test_a_finished_run_has_no_open_step_and_its_verbs_say_why_not(operator: Client):
    teller = story()
    row = Run.objects.get(pk=teller.run.pk)
    assert row.waiting_call
    open_call = go_on(teller, row.waiting_call)
    issued = inbox.issue(run_id=row.pk, kind=CommandKind.INTERRUPT, by="m.ops", scope=Scope.SUBTREE)
    assert issued.command
    interrupted(teller, issued.command.pk)
    html = page(operator, f"/runs/{row.pk}/")
    assert 'data-state="running"' not in html and "data-streaming" not in html
    assert f'id="call-{open_call}" data-call="{open_call}" data-state="closed"' in html
    assert "1 of 1 stopped" in html and "verified" in html
    assert 'data-step="stopped"' in html and "there is nothing left to act on" in html


def test_only_the_newest_turns_load_and_the_rest_on_demand(operator: Client):
    run = make_run()
    for turn in range(1, 51):
        write(run, TurnStarted(), turn=turn)
    html = page(operator, f"/runs/{run.pk}/")
    assert 'id="turn-50"' in html and 'id="turn-21"' in html and 'id="turn-20"' not in html
    assert "?before=21" in html and 'id="outline-1"' in html
    fragment = operator.get(f"/runs/{run.pk}/earlier?before=21").json()
    assert 'id="turn-20"' in fragment["html"] and fragment["earlier"] is None
    assert 'id="turn-20"' in page(operator, f"/runs/{run.pk}/?before=21")


def test_a_long_result_is_a_preview_and_whole_on_demand(operator: Client):
    run = make_run()
    call = new_id()
    write(run, CallStarted(operation="execute_tool", name="run_command", args="{}"), turn=1, call=call)
    text = "line\n" * 4_000 + "the end"
    done = CallCompleted(operation="execute_tool", name="run_command", status="ok", result=text, cost_source="none")
    write(run, done, turn=1, call=call)
    html = page(operator, f"/runs/{run.pk}/")
    assert "the end" not in html and f'href="calls/{call}/"' in html and len(html) < 60_000
    assert "the end" in page(operator, f"/runs/{run.pk}/calls/{call}/")
    plain = operator.get(f"/runs/{run.pk}/calls/{call}/?plain=1")
    assert plain["Content-Type"].startswith("text/plain") and plain.getvalue().decode() == text
    assert operator.get(f"/runs/{run.pk}/calls/{new_id()}/").status_code == 404


def test_changes_after_a_cursor_are_what_a_frame_would_bring(operator: Client):
    run = make_run()
    write(run, TurnStarted(), turn=1)
    answer = operator.get(f"/runs/{run.pk}/changes?after=1").json()
    assert answer["seq"] == 2
    ids = [patch["id"] for patch in answer["patches"]]
    assert ids[:2] == ["turn-1", "outline-1"] and "side-status" in ids
    ahead = operator.get(f"/runs/{run.pk}/changes?after=3")
    assert ahead.status_code == 400 and ahead.json()["error"]["code"] == "cursor_ahead"
    assert operator.get(f"/runs/{run.pk}/changes?after=x").status_code == 400


def test_unknown_runs_are_not_found(operator: Client):
    for path in (f"/runs/{new_id()}/", "/runs/nonsense/"):
        assert operator.get(path).status_code == 404
