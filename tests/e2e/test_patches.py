"""Patches in a real browser: what has kept its shape is written where it stands, and nothing moves under the reader."""

import random

import pytest
from playwright.sync_api import Page, expect

from agents.kinds import TurnStarted
from control.runs.models import Run
from tests.control.records import make_run, write
from tests.e2e.conftest import Window, live

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]

# Puts `old` into the page, marks each of its elements with its place, patches it, and tells what stands there then:
# each element with its mark (none: it is new) and its words.
PATCHED = """async ([old, fresh]) => {
  const { apply } = await import("/static/js/patch.js");
  const box = document.createElement("div");
  box.innerHTML = old;
  document.getElementById("main").append(box);
  [...box.querySelectorAll("*")].forEach((node, place) => (node.mark = place));
  const field = box.querySelector("input, textarea");
  if (field) field.value = "typed";
  const details = box.querySelector("details");
  if (details) details.open = true;
  apply({ op: "replace", id: "patched", html: fresh });
  const told = [...box.querySelectorAll("*")].map((node) => [node.mark ?? null, node.localName, node.textContent]);
  const more = { value: field?.value, open: details?.open, html: box.innerHTML, field: field?.isConnected };
  box.remove();
  return { told, more };
}"""


def patched(page: Page, old: str, fresh: str) -> tuple[list[list[object]], dict[str, object]]:
    found = page.evaluate(PATCHED, [old, fresh])
    return found["told"], found["more"]


@pytest.fixture
def page(window: Window) -> Page:
    page = window.page()
    live(page, "/")
    return page


def test_words_numbers_and_bars_change_in_the_elements_that_show_them(page: Page):
    old = '<p id="patched" class="a"><b title="x">1</b> of <i hidden>2</i><svg><rect width="3"></rect></svg></p>'
    fresh = '<p id="patched" class="b"><b>7</b> of <i>9</i><svg><rect width="4" height="1"></rect></svg></p>'
    told, more = patched(page, old, fresh)
    assert [mark for mark, _, _ in told] == [0, 1, 2, 3, 4]
    assert more["html"] == fresh


def test_what_moved_keeps_its_element_and_is_not_written_over_by_its_neighbour(page: Page):
    old = '<ul id="patched"><li id="a"><u>a</u></li><li id="b"><u>b</u></li></ul>'
    fresh = '<ul id="patched"><li id="b"><u>b</u></li><li id="c"><u>c</u></li></ul>'
    told, more = patched(page, old, fresh)
    marks = {words: mark for mark, name, words in told if name == "li"}
    assert marks["b"] == 3 and marks["c"] != 3
    assert more["html"] == fresh


def test_another_shape_inside_leaves_what_stands_beside_it_alone(page: Page):
    old = '<div id="patched"><p><b>1</b></p><p>same <i>shape</i></p></div>'
    fresh = '<div id="patched"><p><b>1</b><em>near</em></p><p>same <i>form</i></p></div>'
    told, more = patched(page, old, fresh)
    assert more["html"] == fresh
    assert [mark for mark, name, _ in told if name in ("p", "i")] == [1, 3, 4]


def test_what_somebody_has_typed_or_unfolded_stays(page: Page):
    old = '<div id="patched"><input data-typed><details><summary>s</summary>1</details></div>'
    fresh = '<div id="patched"><input data-typed value="theirs"><details><summary>s</summary>2</details></div>'
    told, more = patched(page, old, fresh)
    assert more["value"] == "typed" and more["open"] is True and more["field"] is True
    assert [mark for mark, _, _ in told] == [0, 1, 2, 3]
    assert "2</details>" in str(more["html"])


def test_a_field_that_is_nobodys_takes_the_value_that_comes(page: Page):
    old, fresh = [f'<div id="patched"><input value="{value}"></div>' for value in ("old", "new")]
    _, more = patched(page, old, fresh)
    assert more["value"] == "new"


def test_two_hundred_changes_leave_order_focus_and_picked_rows_as_they_were(window: Window):
    runs = [make_run() for _ in range(40)]
    page = window.page()
    live(page, "/")
    order = page.locator(".run-row").evaluate_all("rows => rows.map((row) => row.dataset.run)")
    focused, picked = runs[30], runs[5]
    page.locator(f"#run-{picked.pk} input").check()
    page.locator(f"#run-{focused.pk} .task-link").focus()
    marks = "(rows) => rows.forEach((row) => [...row.querySelectorAll('*')].forEach((node) => (node.mark = row.id)))"
    page.locator(".run-row").evaluate_all(marks)
    turns = dict.fromkeys((run.pk for run in runs), 0)
    chance = random.Random(5)
    for _ in range(200):
        run = chance.choice(runs)
        turns[run.pk] += 1
        write(run, TurnStarted(), turn=turns[run.pk])
    for run in runs:
        shown = Run.objects.values_list("turns", flat=True).get(pk=run.pk)
        expect(page.locator(f"#run-{run.pk} .c-turn b")).to_have_text(str(shown))
    assert page.locator(".run-row").evaluate_all("rows => rows.map((row) => row.dataset.run)") == order
    assert page.evaluate("document.activeElement.closest('tr').id") == f"run-{focused.pk}"
    expect(page.locator(f"#run-{picked.pk} input")).to_be_checked()
    new = (
        "(rows) => rows.flatMap((row) => [...row.querySelectorAll('*')].filter((node) => node.mark !== row.id)).length"
    )
    assert page.locator(".run-row").evaluate_all(new) == 0
