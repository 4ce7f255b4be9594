"""A postmortem as it leaves the house: a document that can be filed, free of secrets, of markup and of requests."""

import re
from datetime import datetime
from decimal import Decimal
from typing import Any

import orjson
import pytest
from django.test import Client

from agents import kinds
from control.incidents.postmortem import exports
from control.incidents.postmortem.document import Action, Document, Written
from control.incidents.postmortem.fold import report_of
from control.incidents.postmortem.markdown import code, line, prose
from tests.control.api.callers import caller
from tests.control.conftest import hinted, published, quiet
from tests.control.incidents.looking_back import facts, filed, recounted
from tests.fixtures.night import Pen, night

__all__ = ["hinted", "published", "quiet"]
CANARY = "sk-proj-c4naryQ8s2Vd0x7Lw3Rt9Zk1Mb5Np6Yh"
NASTY = "<img src=http://evil.example/x onerror=alert(1)> ![x](http://evil.example/y.png) | `a` \u202e# b"


def document(pen: Pen, **written: Any) -> Document:
    return Document(report=report_of(facts(pen)), written=Written(**written), site="https://console.example")


def headings(text: str) -> list[str]:
    return re.findall(r"^## (.+)$", text, re.M)


def test_the_markdown_is_a_document_with_every_section_in_order() -> None:
    text = exports.as_markdown(document(night(), owner="payments", state="review"))
    assert text.startswith("# nightly-fixer went in circles on run_tests pytest -q tests/test_invoice_total.py\n")
    assert headings(text) == [
        "Summary", "Impact", "Timeline", "Trigger", "Detection", "Contributing factors", "Repeated calls",
        "Edits that went back: `billing.py`", "Cost and input by turn", "What would have stopped it earlier",
        "Resolution", "What went well", "What went badly", "Where we were lucky", "Action items", "Links",
    ]  # fmt: skip
    assert "| Status | **in review** |" in text and "| Owner | payments |" in text
    assert "```diff\n--- state A\n+++ state B" in text
    # Each table is one: a head, a rule and rows of as many cells.
    for block in re.findall(r"(?:^\|.*\|\n)+", text, re.M):
        rows = block.strip().split("\n")
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {len(re.findall(r"(?<!\\)\|", rows[1]))}, rows[0]


def test_the_numbers_of_the_document_are_those_of_the_log() -> None:
    pen = night()
    text, again = exports.as_markdown(document(pen)), recounted(pen.bodies)
    cells = dict(re.findall(r"^\| ([A-Z][\w -]+) \| ([^|]+) \|$", text, re.M))
    assert cells["Model calls"] == str(again["model_calls"]) and cells["Edits"] == str(again["edits"])
    assert cells["Spent"] == f"${again['cost_usd']:.2f}"
    assert cells["Input tokens"].startswith(f"{again['tokens_in']:,} ")
    assert cells["Calls that taught nothing"] == str(again["wasted"][0])
    assert cells["Wasted"].startswith(f"${again['wasted'][1]:.2f}, ")
    begun = datetime.fromisoformat(again["begun"])
    assert f"| {begun:%H:%M:%S} | run | started with large-1 under policy off |" in text


def test_data_holds_the_report_with_money_as_text_and_times_in_utc() -> None:
    pen = night()
    made = orjson.loads(exports.as_json(document(pen)))
    again = recounted(pen.bodies)
    assert Decimal(made["report"]["impact"]["cost_usd"]) == again["cost_usd"]
    assert made["report"]["about"]["finished_at"] == again["ended"]
    assert len(made["report"]["turns"]) == again["model_calls"] and "lanes" not in made["report"]
    assert made["sections"]["summary"]["edited"] is False and "redacted" not in str(made)


def leaky() -> Pen:
    """Secrets wherever a run could have left some: an argument, an answer, a file, a note, an error, the last word."""
    pen = Pen()
    pen.begin()
    call = ""
    for number in range(4):
        (call,) = pen.ask(("run_tests", {"command": f"deploy --key {CANARY}"}))
        pen.answer(call, "run_tests", f"Error: bad key {CANARY}", status="error")
        (call,) = pen.ask(("edit_file", {"path": f"{CANARY}.env", "old": "x", "new": str(number)}))
        pen.write(call, f"{CANARY}.env", "v=0\n", "v=0\n" if number % 2 else f"v=1\nOPENAI_API_KEY={CANARY}\n")
        pen.answer(call, "edit_file", "ok")
    error = {"reason": "auth", "status": 401, "message": f"key {CANARY} is wrong"}
    pen.tell(kinds.CallRetried(error=error, action="retry", wait_s=1, until="", attempt=1), call="m9")
    pen.tell(kinds.SteerInjected(command="c", note=f"use {CANARY}", by="ann"))
    pen.tell(kinds.RunFailedEvent(error=error), turn=False)
    return pen


def test_no_export_tells_a_secret_of_the_log_or_of_the_people() -> None:
    written = {
        "texts": {"summary": (f"The key was {CANARY}.", 1)},
        "added": (f"key {CANARY} in the repository",),
        "actions": (Action(id="1", kind="prevent", text=f"rotate {CANARY}", link="https://x.example/"),),
    }
    made = document(leaky(), **written)
    for export in (exports.as_markdown(made).encode(), exports.as_html(made).encode(), exports.as_json(made)):
        assert CANARY.encode() not in export and CANARY[8:30].encode() not in export
        assert b"[redacted:" in export


def test_text_from_agents_becomes_no_markup() -> None:
    pen = Pen()
    pen.begin()
    for _ in range(4):
        (call,) = pen.ask(("run_tests", {"command": NASTY}))
        pen.answer(call, "run_tests", NASTY)
    pen.tell(kinds.SteerInjected(command="c", note=NASTY, by="ann"))
    pen.tell(kinds.RunCompleted(final=NASTY), turn=False)
    made = document(pen, texts={"summary": (NASTY, 1)})
    html, text = exports.as_html(made), exports.as_markdown(made)
    assert "<img" not in html and "<script" not in html and "\u202e" not in html
    assert "\u202e" not in text
    # Outside of code nothing opens a tag or asks for a picture.
    outside = re.sub(r"(?<!\\)(`+)(?:(?!\1).)+\1", "", text)
    assert not re.search(r"(?<!\\)<img", outside) and not re.search(r"(?<!\\)!\[", outside)
    assert line("a | b\n# c") == "a \\| b # c" and line("- x") == "\\- x"
    assert line("39.3 s") == "39.3 s" and line("39. s") == "39\\. s" and line("# x") == "\\# x"
    assert line("run_tests _x_ __y a_") == "run_tests \\_x\\_ \\_\\_y a\\_" and line("a__b") == "a\\_\\_b"
    assert code("`x`") == "`` `x` ``"
    assert prose("# own\n<b>") == "\\# own\n&lt;b>"


def test_the_file_asks_for_nothing_and_its_policy_fits_its_styles() -> None:
    html = exports.as_html(document(night()))
    assert not re.search(
        r"\b(?:src|srcset|data|action|formaction)=|@import|url\(|<(?:script|link|iframe|object|form)", html
    )
    assert not re.search(r"\sstyle=|\son\w+=", html)
    assert f'content="{exports.policy()}"'.replace("'", "&#x27;") in html


@pytest.mark.django_db
@pytest.mark.usefixtures("quiet")
def test_the_api_gives_the_three_forms_and_says_when_it_is_too_soon() -> None:
    from tests.control.records import make_run

    run, ann = filed(night()), caller("viewer")
    data = ann.get(f"/api/runs/{run.pk}/postmortem.json")
    assert data.status == 200 and data.body["report"]["about"]["end"] == "interrupted"
    assert {row["policy"] for row in data.body["report"]["earlier"]} == {"default", "strict", "ladder", "off"}
    assert data.body["report"]["oscillations"][0]["changes"][0]["diff"]
    text = ann.get(f"/api/runs/{run.pk}/postmortem.md")
    assert text.status == 200 and text.headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert f"http://testserver/runs/{run.pk}/at/12/".encode() in text.body
    html = ann.get(f"/api/runs/{run.pk}/postmortem.html")
    assert html.status == 200 and "default-src 'none'; style-src 'sha256-" in html.headers["Content-Security-Policy"]
    soon = ann.get(f"/api/runs/{make_run().pk}/postmortem.json")
    assert (soon.status, soon.code) == (409, "run_not_finished")
    assert Client().get(f"/api/runs/{run.pk}/postmortem.md").status_code == 401
