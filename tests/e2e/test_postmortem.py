"""A postmortem in a real browser: zoom by button and by drag, on a desk and on a phone."""

import re
from itertools import pairwise

import pytest
from playwright.sync_api import expect

from tests.control.incidents.looking_back import filed
from tests.e2e.conftest import PHONE, Window
from tests.fixtures.night import night

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]


def test_a_part_of_the_night_is_shown_closer_by_drag_and_by_button(window: Window):
    run = filed(night(laps=12))
    page = window.page()
    page.goto(f"/runs/{run.pk}/postmortem")
    marks = page.locator("#pm-picture title")
    whole = marks.count()
    rail = page.locator(".pm-row").first.bounding_box()
    assert rail is not None
    page.mouse.move(rail["x"] + rail["width"] * 0.2, rail["y"] + 40)
    page.mouse.down()
    page.mouse.move(rail["x"] + rail["width"] * 0.5, rail["y"] + 42)
    page.mouse.up()
    expect(page.get_by_role("link", name="Whole run")).to_be_visible()
    assert re.search(r"\?from=\d+&to=\d+$", page.url) and 0 < marks.count() < whole
    page.get_by_role("link", name="Whole run").click()
    expect(marks).to_have_count(whole)
    assert window.complaints == []


def test_it_is_readable_on_a_phone(window: Window):
    run = filed(night(laps=12))
    page = window.page(size=PHONE)
    page.goto(f"/runs/{run.pk}/postmortem")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    letters = page.locator(".pm-boxes text")
    assert letters.count() == 12
    # The letters keep their size, and no two of them lie on each other.
    places = letters.evaluate_all("all => all.map(one => one.getBoundingClientRect()).map(r => [r.left, r.right])")
    assert all(one[1] <= other[0] for one, other in pairwise(places))
    page.get_by_role("link", name="Closer").click()
    expect(page.get_by_role("link", name="Wider")).to_be_visible()
    assert window.complaints == []
