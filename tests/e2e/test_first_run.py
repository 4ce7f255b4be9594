"""The fleet of a console on which nothing has run yet: a short tour, and a drill at the press of a button."""

import pytest
from playwright.sync_api import expect

from control.accounts.models import Role
from control.runs.models import Run
from tests.control.records import make_run
from tests.e2e.conftest import DESKTOP, PHONE, Window, live

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desk", "phone"])
def test_the_first_page_starts_a_drill_by_keyboard(window: Window, size: dict[str, int]):
    page = window.page(size=size)
    live(page, "/")
    expect(page.get_by_role("heading", name="No run yet")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    page.get_by_role("button", name="Start the drill").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#side-status")).to_have_attribute("data-word", "Queued")
    run = Run.objects.get()
    assert (run.agent, run.labels, run.spec["model"]["model"]) == ("default", {"drill": "tour"}, "tour")
    page.goto("/")
    expect(page.locator("#empty")).to_have_count(0)
    assert window.complaints == []


def test_the_tour_makes_room_for_the_first_run_and_is_no_page_for_filters(window: Window):
    page = window.page(role=Role.VIEWER)
    live(page, "/")
    expect(page.get_by_text("You may look.")).to_be_visible()
    expect(page.get_by_role("button", name="Start the drill")).to_be_hidden()
    run = make_run()
    expect(page.locator(f"#run-{run.pk}")).to_be_visible()
    expect(page.locator("#empty")).to_have_count(0)
    page.goto("/?q=nothing")
    expect(page.locator("#empty")).to_contain_text("No run matches.")
    assert window.complaints == []
