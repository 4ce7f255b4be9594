"""The rooms beside the runs in a real browser: by keyboard, on a phone, two people at once, and without scripts."""

import re
import time
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from agents.ids import new_id
from agents.kinds import Body, RunCompleted, RunWaiting, TurnStarted
from control.accounts.models import Role, Token, User
from control.fleet.models import Agent
from control.runs import bus, hints
from control.runs.clock import database_now
from control.runs.models import Command, Run, Worker
from tests.control.records import make_run, write
from tests.e2e.conftest import PHONE, Window, live

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]
ROOMS = ("/inbox/", "/agents/", "/agents/default/", "/workers/", "/credentials/", "/audit/", "/account/", "/styleguide")


def worker() -> Worker:
    now = database_now()
    return Worker.objects.create(host="north-1", pid=41, started_at=now, seen_at=now, capacity=8)


def fits(page: Page, width: int) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth") <= width)


def test_a_worker_is_drained_by_keyboard_alone(window: Window):
    one = worker()
    page = window.page()
    page.goto("/workers/")
    page.locator(f"#drain-{one.pk} summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("new kernel")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Asked. It hands over 0 runs")).to_be_visible()
    expect(page.locator(f"#worker-{one.pk}")).to_contain_text("Draining")
    assert not window.complaints


def test_a_menu_that_is_open_and_words_in_it_outlive_the_look_for_news(window: Window):
    one = worker()
    page = window.page()
    page.goto("/workers/")
    page.locator(f"#drain-{one.pk} summary").click()
    field = page.locator(f"#why-drain-{one.pk}")
    field.fill("new ker")
    page.get_by_role("heading", name="Workers").focus()
    Worker.objects.filter(pk=one.pk).update(version="9.9.9")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator(f"#worker-{one.pk}")).to_contain_text("9.9.9")
    expect(field).to_have_value("new ker")
    expect(field).to_be_visible()


def test_a_token_is_made_shown_once_and_revoked(window: Window):
    page = window.page()
    page.goto("/account/")
    page.get_by_label("What it is for").fill("nightly import")
    page.get_by_label("Role").select_option("operator")
    page.get_by_label("steer", exact=True).check()
    page.get_by_role("button", name="Make the token").click()
    expect(page.locator("#secret")).to_contain_text(re.compile("ph_.{30,}"))
    page.goto("/account/")
    expect(page.get_by_text("only to look and steer")).to_be_visible()
    page.get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("Revoked. It opens nothing any more.")).to_be_visible()
    assert Token.objects.get().revoked_at is not None and not window.complaints


def test_an_agent_is_edited_and_a_fault_keeps_every_word(window: Window):
    page = window.page(role=Role.ADMIN)
    page.goto("/agents/default/edit/")
    text = page.get_by_label("TOML")
    text.fill('prompt = "Mend."\ntools = ["read_fiel"]\n')
    page.get_by_role("button", name="Save version 2").click()
    expect(page.get_by_role("alert")).to_contain_text("Line 2: There is no tool 'read_fiel'")
    expect(text).to_have_value('prompt = "Mend."\ntools = ["read_fiel"]\n')
    text.fill('prompt = "Mend."\ntools = ["read_file"]\n')
    page.get_by_label(re.compile("^Why")).fill("shorter")
    page.get_by_role("button", name="Save version 2").click()
    expect(page.get_by_text("Saved as version 2. New runs start with it.")).to_be_visible()
    assert Agent.objects.get(name="default", current=True).prompt == "Mend."


@pytest.mark.parametrize("path", ROOMS)
def test_a_room_fits_a_phone_and_complains_of_nothing(window: Window, path: str):
    worker()
    page = window.page(role=Role.ADMIN, size=PHONE)
    page.goto(path)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert fits(page, PHONE["width"]) and not window.complaints


# When a page first showed something, in milliseconds of the one clock that both browsers and this test have.
WHEN = """([selector, word]) => {
  const seen = () => {
    const node = document.querySelector(selector);
    return word ? node?.textContent.includes(word) : !node;
  };
  window.when = new Promise((done, fail) => {
    const end = Date.now() + 10000;
    const ask = () => (seen() ? done(Date.now()) : Date.now() > end ? fail(selector) : setTimeout(ask, 5));
    ask();
  });
}"""
SOON_MS = 300


def say(run: Run, body: Body, **where: Any) -> None:
    """Write as a worker does: into the log, and then the hint."""
    done = write(run, body, **where)
    message = hints.events_message(run.root, run.epoch, run.pk, done.first, done.last, done.bodies)
    bus.bus().publish(bus.EVENTS, message)


def shown_at(page: Page) -> float:
    return float(page.evaluate("window.when"))


def test_two_people_see_the_same_and_the_slower_one_is_told(window: Window):
    run = make_run(task="Find the port of staging")
    call = new_id()
    ann, ben, cut_off = window.page(), window.page(role=Role.ADMIN), window.page(role=Role.ADMIN)
    cut_off.route_web_socket(re.compile("/ws/"), lambda socket: None)
    live(ann, "/inbox/")
    live(ben, f"/runs/{run.pk}/")
    asked = RunWaiting(reason="question", call=call, text="Which port?", choices=["8000", "80"])
    say(run, asked, turn=1, call=call)
    for page in (ann, ben):
        expect(page.get_by_role("button", name="8000")).to_be_visible()
    cut_off.goto(f"/runs/{run.pk}/")
    ann.evaluate(WHEN, [f"#inbox-{call}", ""])
    ben.evaluate(WHEN, [f"#ask-{call}", "operator"])
    pressed = time.time() * 1000
    ann.get_by_role("button", name="8000").click()
    times = [shown_at(page) for page in (ann, ben)]
    print(f"shown {[round(at - pressed) for at in times]} ms after the click, {abs(times[0] - times[1]):.0f} ms apart")
    assert abs(times[0] - times[1]) < SOON_MS
    expect(ann.locator("#asks-sent")).to_contain_text("operator: “8000”")
    # Whoever has heard nothing of it and answers too is told who was first, and nothing is sent.
    cut_off.get_by_role("button", name="80", exact=True).click()
    expect(cut_off.locator("#messages")).to_contain_text("operator answered first: “8000”. Yours was not sent.")
    assert [command.args["text"] for command in Command.objects.all()] == ["8000"]


def test_an_end_shows_on_both_screens_at_once(window: Window):
    run = make_run(task="Drain the queue")
    ann, ben = window.page(), window.page(role=Role.ADMIN)
    live(ann, f"/runs/{run.pk}/")
    live(ben, "/")
    say(run, TurnStarted(), turn=7)
    expect(ben.locator(f"#run-{run.pk} .c-turn b")).to_have_text("7")
    ann.evaluate(WHEN, ["#side-status", "Completed"])
    ben.evaluate(WHEN, [f"#run-{run.pk}", "Completed"])
    written = time.time() * 1000
    say(run, RunCompleted(final="Done."))
    times = [shown_at(page) - written for page in (ann, ben)]
    print(f"shown after {[round(at) for at in times]} ms")
    assert abs(times[0] - times[1]) < SOON_MS


def test_without_scripts_an_ask_is_answered_and_put_off(window: Window):
    run = make_run(task="Find the port of staging")
    call = new_id()
    write(run, RunWaiting(reason="question", call=call, text="Which port?", choices=["8000"]), turn=1, call=call)
    page = window.page(java_script_enabled=False)
    page.goto("/inbox/")
    page.get_by_text("Not now").click()
    page.get_by_role("button", name="For an hour").click()
    expect(page.get_by_text("Nobody waits for you.")).to_be_visible()
    page.locator("#asks-later summary").click()
    page.get_by_role("button", name="Show again").click()
    page.get_by_role("button", name="8000").click()
    expect(page.get_by_text("Answer sent.")).to_be_visible()
    assert User.objects.count() == 1
