"""The inbox in a real browser: asks come by themselves, are answered there, and nobody's words get lost."""

import re

import pytest
from playwright.sync_api import expect

from agents.commands import CommandKind
from agents.ids import new_id
from agents.kinds import RunWaiting
from control.runs import inbox
from control.runs.models import Command, Run
from tests.control.records import make_run, write
from tests.e2e.conftest import PHONE, Window, live

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]


def asked(text: str = "Which port?", choices: list[str] | None = None) -> tuple[Run, str]:
    run = make_run(task="Find the port of staging")
    call = new_id()
    write(run, RunWaiting(reason="question", call=call, text=text, choices=choices), turn=1, call=call)
    return run, call


def test_a_question_shows_by_itself_is_counted_and_answered(window: Window):
    page = window.page()
    live(page, "/inbox/")
    expect(page.get_by_text("Nobody waits for you.")).to_be_visible()
    _, call = asked(choices=["8000", "8080"])
    card = page.locator(f"#inbox-{call}")
    expect(card).to_be_visible()
    expect(page).to_have_title(re.compile(r"^\(1\) Inbox"))
    expect(page.locator("[data-asked] b")).to_have_text("1")
    card.get_by_role("button", name="8080").click()
    expect(card).to_have_count(0)
    expect(page.get_by_text("Answered, on the way")).to_be_visible()
    expect(page).to_have_title(re.compile("^Inbox"))
    assert Command.objects.get().args == {"call": call, "text": "8080"}
    assert not window.complaints


def test_who_types_while_another_answers_keeps_the_words_and_is_told(window: Window):
    run, call = asked()
    page = window.page()
    live(page, "/inbox/")
    card = page.locator(f"#inbox-{call}")
    card.get_by_label("Your answer").fill("I think it is 8443")
    inbox.issue(run_id=run.pk, kind=CommandKind.ANSWER, by="ben", args={"call": call, "text": "8080"})
    expect(card.locator("[data-gone]")).to_have_text("Answered. ben: “8080”")
    expect(card.get_by_label("Your answer")).to_have_value("I think it is 8443")
    expect(card.get_by_role("button", name="Answer")).to_be_disabled()
    assert not window.complaints


def test_by_keyboard_alone_an_ask_is_put_off_and_taken_up(window: Window):
    _, call = asked()
    page = window.page()
    live(page, "/inbox/")
    page.get_by_text("Not now").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="For an hour").focus()
    page.keyboard.press("Enter")
    expect(page.locator(f"#inbox-{call}")).to_have_count(0)
    page.locator("#asks-later summary").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Show again").focus()
    page.keyboard.press("Enter")
    expect(page.locator(f"#inbox-{call}")).to_be_visible()
    assert not window.complaints


def test_on_a_phone_the_page_fits_and_enter_means_the_words(window: Window):
    _, call = asked(choices=["8000", "8080"])
    page = window.page(size=PHONE)
    live(page, "/inbox/")
    page.get_by_label("Your answer").fill("8443")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Answer sent.")).to_be_visible()
    assert Command.objects.get().args == {"call": call, "text": "8443"}
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert not window.complaints
