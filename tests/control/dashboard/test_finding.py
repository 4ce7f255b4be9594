"""Words looked for in one run's log: where they stand, letter by letter, and nothing of what only looks like them."""

import pytest
from django.test import Client

from agents import kinds
from agents.ids import new_id
from agents.kinds import CallCompleted, CallStarted, TurnStarted
from control.dashboard.views import finding
from control.runs.models import Run
from tests.control.dashboard.pages import page
from tests.control.records import make_run, write

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]


def said(run: Run, text: str, turn: int) -> str:
    call = new_id()
    write(run, TurnStarted(), turn=turn)
    write(run, CallStarted(operation="execute_tool", name="read_file", args="{}"), turn=turn, call=call)
    done = CallCompleted(operation="execute_tool", name="read_file", status="ok", result=text, cost_source="none")
    write(run, done, turn=turn, call=call)
    return call


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a 100% sure_thing", "100% SURE_thing"),
        ('say "yes"\nand\tgo', '"yes"\nand'),
        ("C:\\temp\\new", "temp\\n"),
        ("grün ’quoted’ 漢字", "’quoted’ 漢"),
        ("<script>x</script>", "<script>"),
    ],
)
def test_words_are_found_as_they_were_written(operator: Client, text: str, words: str):
    run, other = make_run(task="Find"), make_run(task="Other")
    call = said(run, f"before {text} after", 1)
    said(other, text, 1)
    said(run, "100X sureXthing", 2)
    answer = operator.get(f"/runs/{run.pk}/find", {"q": words, "part": "1"})
    html = answer.content.decode()
    assert html.count("<li>") == 1 and f'data-jump="call-{call}"' in html and "turn 1" in html
    assert "<script>" not in html and "<html" not in html
    assert "<mark>" in page(operator, f"/runs/{run.pk}/find?q=before")


def test_names_of_fields_are_no_words_of_the_run(operator: Client):
    run = make_run(task="Find")
    said(run, "nothing", 1)
    assert "stands nowhere" in page(operator, f"/runs/{run.pk}/find?q=cost_source")
    assert "At least 2 letters" in page(operator, f"/runs/{run.pk}/find?q=n")
    write(run, kinds.RunCompleted(final="cost_source"))
    assert "<mark>cost_source</mark>" in page(operator, f"/runs/{run.pk}/find?q=cost_source")


def test_many_hits_come_page_by_page_and_none_twice(operator: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(finding, "SHOWN", 3)
    run = make_run(task="Find")
    for turn in range(1, 9):
        said(run, f"lighthouse {turn}", turn)
    path, seen = f"/runs/{run.pk}/find?q=lighthouse", []
    for _ in range(3):
        html = page(operator, path)
        seen += [word.split("<")[0].strip() for word in html.split("</mark>")[1:]]
        path = html.partition("data-find-more")[0].rpartition('href="')[2].split('"')[0].replace("&amp;", "&")
    assert seen == [str(turn) for turn in range(1, 9)]
    assert "data-find-more" not in html
