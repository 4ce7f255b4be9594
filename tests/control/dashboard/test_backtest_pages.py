"""Backtests in the window and over the API: asked, watched, ended midway, looked at run by run; a draft of limits."""

import re
from html import unescape
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from agents.spec import Status
from control.accounts.models import AuditEntry
from control.fleet.policies import ensure_shipped
from control.incidents.backtest import work
from control.incidents.models_backtest import Backtest
from control.runs.models import Run
from tests.control.api.callers import caller
from tests.control.dashboard.pages import page
from tests.control.incidents.recording import Made, record

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]
FAILING = Made(tool="edit_file", args={"path": "<b>.py"}, result="error: no such text", failed=True)
READS = [Made(tool="read_file", args={"path": f"m{n}.py"}, result=f"line {n}") for n in range(14)]


@pytest.fixture
def runs() -> tuple[Run, Run]:
    """One that looped until somebody stopped it, and a long healthy one that `strict` would have stopped."""
    ensure_shipped()
    looped = record([FAILING] * 8, status=Status.INTERRUPTED, task="mend <b>.py", agent="fixer")
    return looped, record(READS, task="read it all", agent="reader")


def text(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def asked(client: Client, **form: Any) -> Backtest:
    answer = client.post("/policies/-/backtest/", {"a": "strict@1", **form})
    assert answer.status_code == 302, answer.content.decode()[-3000:]
    return Backtest.objects.get()


def test_two_policies_are_asked_about_and_stand_side_by_side(operator: Client, runs: tuple[Run, Run]):
    made = asked(operator, b="ladder@1", days="7")
    html = text(page(operator, f"/policies/-/backtest/{made.pk}/"))
    assert "0 of 2 runs judged" in html and "Stop here" in html
    work.judge(made.pieces.get().pk)
    html = page(operator, f"/policies/-/backtest/{made.pk}/")
    said = text(html)
    assert "strict v1" in said and "ladder v1" in said and "2 runs judged" in said and "last 7 days" in said
    figures = dict(re.findall(r'data-figure="([\w.]+)".*?</th>\s*(.*?)</tr>', html, re.S))
    numbers = {name: text(cells).split() for name, cells in figures.items()}
    assert (numbers["stopped"], numbers["healthy.stopped"]) == (["2", "1"], ["1", "0"])
    assert numbers["saved_calls"] == ["8", "3"]
    assert "at step 3 of 8" in said and "at step 13 of 14" in said and "mend <b>.py" in said
    healthy = text(page(operator, f"/policies/-/backtest/{made.pk}/?policy=0&healthy=1"))
    assert "read it all" in healthy and "mend" not in healthy
    assert "No such run." in text(page(operator, f"/policies/-/backtest/{made.pk}/?policy=1&healthy=1"))
    entry = AuditEntry.objects.get(action="backtest")
    assert (entry.target, entry.result) == (f"backtest:{made.pk}", "ok")


def test_a_form_that_means_no_run_keeps_what_was_typed(operator: Client, runs: tuple[Run, Run]):
    answer = operator.post("/policies/-/backtest/", {"a": "strict@1", "agent": "nobody", "status": "completed"})
    html = answer.content.decode()
    assert answer.status_code == 400 and 'value="nobody"' in html and "No run that is over matches" in html
    assert operator.post("/policies/-/backtest/", {"a": "strict@9"}).status_code == 400
    assert operator.post("/policies/-/backtest/", {"a": "strict@1", "status": "odd"}).status_code == 400
    assert not Backtest.objects.exists()


def test_a_viewer_looks_and_does_not_ask(viewer: Client, operator: Client, runs: tuple[Run, Run]):
    made = asked(operator)
    assert "backtest-send" not in page(viewer, "/policies/-/backtest/")
    assert viewer.post("/policies/-/backtest/", {"a": "strict@1"}).status_code == 403
    assert viewer.post(f"/policies/-/backtest/{made.pk}/cancel").status_code == 403
    operator.post(f"/policies/-/backtest/{made.pk}/cancel")
    assert "Ended midway by" in text(page(viewer, f"/policies/-/backtest/{made.pk}/"))
    assert not work.judge(made.pieces.get().pk)


def test_the_api_asks_tells_and_lists_the_runs(runs: tuple[Run, Run]):
    looped, healthy = runs
    who = caller("operator")
    own = {"name": "few", "fuses": {"max_steps": 5}}
    reply = who.post("/api/backtests", {"policies": ["strict", own], "filter": {"agent": "fixer,reader"}})
    assert reply.status == 202 and reply.body["total"] == 2 and reply.body["state"] == "running"
    made = Backtest.objects.get()
    work.judge(made.pieces.get().pk)
    told = who.get(f"/api/backtests/{made.pk}").body
    assert told["share"] == 1 and [one["name"] for one in told["policies"]] == ["strict", "few"]
    assert told["policies"][1]["healthy"]["stopped"] == 1
    assert told["policies"][0]["saved_usd"] == "0.065"
    rows = who.get(f"/api/backtests/{made.pk}/runs?policy=1&healthy=true").body["runs"]
    assert [(row["run"], row["stop_step"], row["rule"]) for row in rows] == [(healthy.pk, 6, "max_steps")]
    assert who.get(f"/api/backtests/{made.pk}/runs?outcome=stopped").body["runs"][0]["run"] == looped.pk
    assert who.delete(f"/api/backtests/{made.pk}").body == {"changed": False, "reason": "already_done"}
    bad = who.post("/api/backtests", {"policies": [{"name": "odd", "fuses": {"max_steps": 0}}]})
    assert (bad.status, bad.code) == (422, "bad_policy")


def test_the_command_line_judges_here_and_prints_the_figures(runs: tuple[Run, Run], capsys: pytest.CaptureFixture[str]):
    call_command("backtest", "strict", "off", "--here", "--agent", "fixer")
    out = capsys.readouterr().out
    assert '"state":"done"' in out and '"stopped":1' in out
    assert AuditEntry.objects.get(action="backtest").actor.startswith("cli:")


def test_limits_are_suggested_and_one_click_leads_to_a_draft(admin: Client, runs: tuple[Run, Run]):
    html = page(admin, "/policies/-/suggest/?quantile=0.9&margin=0.5")
    assert "Only 1 completed run" in text(html) and "reader" in html and "fixer" not in html
    form = {
        name: unescape(value)
        for name, value in re.findall(r'<input type="hidden" name="(name|text|reason)" value="([^"]*)"', html)
    }
    draft = admin.post("/policies/-/new/", {**form, "do": "preview"}).content.decode()
    assert 'value="reader-limits"' in draft and "max_steps = 21" in unescape(draft)
    assert "# Only 1 completed run" in unescape(draft)
