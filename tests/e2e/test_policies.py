"""Policies in a real browser, by keyboard alone: edit, be told what is wrong, save, compare; and jumps to evidence."""

import re

import pytest
from playwright.sync_api import Page, expect

from agents import kinds
from agents.kinds import TurnStarted, VerdictIssued
from control.accounts.models import Role
from control.fleet import policies
from tests.control.records import make_run, write
from tests.e2e.conftest import PHONE, Window, live

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]
PATHS = (
    "/policies/", "/policies/default/", "/policies/strict/", "/policies/strict/versions/", "/policies/strict/edit/",
    "/policies/-/new/?copy=ladder", "/policies/-/compare/?a=strict&b=ladder",
)  # fmt: skip


@pytest.fixture(autouse=True)
def the_four() -> None:
    """A test before may have emptied the tables."""
    policies.ensure_shipped()


def reach(page: Page, id: str, presses: int = 40) -> None:
    """Go on with Tab until the focus is there, as a person without a mouse does."""
    for _ in range(presses):
        if page.evaluate("document.activeElement?.id") == id:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {id}")


def test_a_policy_is_edited_saved_and_compared_by_keyboard(window: Window):
    page = window.page(role=Role.ADMIN)
    page.goto("/policies/strict/")
    page.keyboard.press("Tab")
    page.get_by_role("link", name="Edit…").focus()
    page.keyboard.press("Enter")
    text = page.get_by_label("TOML")
    expect(text).to_have_value(re.compile("max_steps = 12"))
    reach(page, "policy-text")
    page.keyboard.press("Control+A")
    page.keyboard.type("# Sixteen are enough.\n[fuses]\nmax_steps = 16\nmax_stps = 1\n")
    reach(page, "policy-reason")
    page.keyboard.type("the importer needs more")
    reach(page, "policy-save")
    page.keyboard.press("Enter")

    # Told in words, and the cursor stands on the line.
    problem = page.get_by_role("alert")
    expect(problem).to_contain_text("Line 4: fuses knows no 'max_stps'")
    expect(text).to_be_focused()
    assert page.evaluate("getSelection().toString()") == "max_stps = 1"
    expect(page.get_by_label("Why")).to_have_value("the importer needs more")
    page.keyboard.type("max_tokens = 80000")
    reach(page, "policy-check")
    page.keyboard.press("Enter")
    expect(page.locator("#difference")).to_contain_text("fuses.max_steps")
    expect(page.locator("#difference .change").first).to_have_text(re.compile(r"note"))
    reach(page, "policy-save")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("strict v2")
    expect(page.locator(".source")).to_contain_text("# Sixteen are enough.")

    page.get_by_role("link", name="Compare…").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Compare")
    reach(page, "side-b")
    page.keyboard.type("strict v1")
    reach(page, "compare-send")
    page.keyboard.press("Enter")
    expect(page.locator("#compare-sum")).to_contain_text("4 values differ")
    expect(page.locator(".sides")).to_contain_text("fuses.max_identical_calls")
    assert [line for line in window.complaints if "400" not in line] == []


def test_every_page_of_policies_fits_a_phone_and_its_targets_a_thumb(window: Window):
    page = window.page(role=Role.ADMIN, size=PHONE, has_touch=True)
    for path in PATHS:
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path
        small = page.locator("main .button:visible, main select:visible, main input.field:visible").evaluate_all(
            "nodes => nodes.map(n => [n.textContent.trim(), n.getBoundingClientRect().height]).filter(x => x[1] < 43.5)"
        )
        assert small == [], path
    assert window.complaints == []


def test_every_field_of_the_editor_has_a_name(window: Window):
    page = window.page(role=Role.ADMIN)
    for path in ("/policies/strict/edit/", "/policies/-/new/", "/policies/-/compare/"):
        page.goto(path)
        unnamed = page.locator("main :is(input, select, textarea):not([type=hidden])").evaluate_all(
            "nodes => nodes.filter(n => !n.labels || !n.labels.length).map(n => n.outerHTML)"
        )
        assert unnamed == [], path


def test_evidence_jumps_within_the_page_and_else_through_the_server(window: Window):
    run = make_run()
    first = write(run, kinds.SteerInjected(command="c", note="The fixture leaks.", by="ann"), turn=1).last
    for number in range(2, 45):
        write(run, TurnStarted(), turn=number)
    near = write(run, kinds.SteerInjected(command="d", note="Leave it.", by="ann"), turn=44).last
    write(
        run,
        VerdictIssued(
            detector="repeats", rung="block", rule="repeat_read", fingerprint="f", step=3, count=4,
            evidence=[first, near], wasted_tokens=0, explanation="4 times the same read", shadow=False,
        ),
        turn=44,
    )  # fmt: skip
    page = window.page()
    live(page, f"/runs/{run.pk}/")
    page.get_by_role("link", name=f"#{near}").click()
    expect(page.locator(f"#event-{near}")).to_be_focused()
    assert page.url.endswith(f"#event-{near}") and "before" not in page.url
    page.get_by_role("link", name=f"#{first}").click()
    expect(page.locator(f"#event-{first}")).to_be_in_viewport()
    assert f"#event-{first}" in page.url and "before=" in page.url
    assert window.complaints == []
