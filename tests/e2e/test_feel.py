"""What the page says of itself and of time: offline, half-open lines, silent models, dead workers, zones, paper."""

from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect

from agents.ids import new_id
from agents.kinds import CallStarted, RunWaiting, TurnStarted
from control.runs.clock import database_now
from control.runs.models import Run
from tests.control.records import make_run, write
from tests.e2e.conftest import Window, live
from tests.fixtures.story import story

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]
HIDDEN = """(hidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
# A notice is kept instead of shown: a browser without a desktop shows none.
NOTICES = """
  window.told = [];
  window.Notification = class {
    static permission = "granted";
    constructor(title, more) { window.told.push(more.body); }
  };
"""


def badge(page: Page, word: str) -> None:
    expect(page.locator("#badge")).to_contain_text(word, timeout=20_000)


@pytest.mark.case("A6-14")
def test_a_dead_worker_a_page_offline_and_a_silent_model_look_different(window: Window):
    dead, silent = make_run(task="Its worker died"), make_run(task="Its model says nothing")
    Run.objects.filter(pk=dead.pk).update(lease_until=database_now() - timedelta(seconds=30))
    for run in (silent, dead):
        write(run, TurnStarted(), CallStarted(operation="chat", name="m"), turn=1, call=new_id())
    lost, waits, offline = window.page(), window.page(), window.page()
    live(lost, f"/runs/{dead.pk}/")
    expect(lost.locator("#side-status")).to_have_attribute("data-word", "No contact")
    live(waits, f"/runs/{silent.pk}/")
    expect(waits.locator("#side-status")).to_have_attribute("data-word", "Running")
    expect(waits.locator("#turn-1 .live-word")).to_contain_text("waiting for the model")
    live(offline, f"/runs/{silent.pk}/")
    offline.context.set_offline(True)
    badge(offline, "offline since")
    assert offline.evaluate("document.body.dataset.line") == "stale"
    write(silent, TurnStarted(), turn=2)
    offline.context.set_offline(False)
    badge(offline, "live")
    expect(offline.locator("#turn-2")).to_be_visible()
    assert offline.evaluate("document.body.dataset.line") == "live"


@pytest.mark.case("A6-08")
def test_a_page_that_slept_is_right_again_within_two_seconds(window: Window):
    run = make_run()
    page = window.page()
    live(page, f"/runs/{run.pk}/")
    # As after a sleep: the line looks open, nothing comes over it, and for long nothing was heard.
    page.evaluate(HIDDEN, True)
    page.evaluate(
        """() => { const { live } = document.getElementById("run").pilothouse;
             live.socket.onmessage = () => undefined; live.heard = Date.now() - 300000; }"""
    )
    for turn in range(1, 301):
        write(run, TurnStarted(), turn=turn)
    assert page.evaluate("document.getElementById('run').pilothouse.live.socket.readyState") == 1
    page.evaluate(HIDDEN, False)
    expect(page.locator("#turn-300")).to_be_attached(timeout=2_000)
    assert page.locator("#turns > .turn").count() <= 90
    badge(page, "live")
    assert window.complaints == []


def test_times_are_utc_until_somebody_wants_their_own_clock(window: Window):
    run = story().run
    page = window.page(timezone_id="Asia/Kolkata")
    live(page, f"/runs/{run.pk}/")
    time = page.locator("#turn-1 .turn-head time").last
    utc = time.inner_text()
    page.locator("#me-menu summary").click()
    page.get_by_role("button", name="Times as my clock").click()
    hours, minutes, seconds = map(int, utc.split(":"))
    moved = (hours * 60 + minutes + 330) % 1440
    own = f"{moved // 60:02d}:{moved % 60:02d}:{seconds:02d}"
    expect(time).to_have_text(own)
    page.reload()
    expect(time).to_have_text(own)
    time.hover()
    assert "Z" in (time.get_attribute("title") or "") and "ago" in (time.get_attribute("title") or "")
    page.locator("#me-menu summary").click()
    page.get_by_role("button", name="Times in UTC").click()
    expect(time).to_have_text(utc)
    assert window.complaints == []


def test_on_paper_the_run_is_whole_and_light_and_has_no_buttons(window: Window):
    run = story().run
    page = window.page()
    live(page, f"/runs/{run.pk}/")
    page.emulate_media(media="print")
    for gone in (".top", "#interrupt-open", "#steer", "#filters"):
        expect(page.locator(gone)).to_be_hidden()
    expect(page.locator("#turn-3")).to_be_visible()
    assert page.evaluate("getComputedStyle(document.querySelector('.middle')).overflowY") == "visible"
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"


def test_a_hidden_page_notifies_and_counts_in_its_title(window: Window):
    page = window.page()
    page.context.add_init_script(NOTICES)
    live(page, "/inbox/")
    page.evaluate(HIDDEN, True)
    run, call = make_run(), new_id()
    write(run, RunWaiting(reason="question", call=call, text="Which port?"), turn=1, call=call)
    expect(page).to_have_title("(1) Inbox · Pilothouse", timeout=15_000)
    assert page.evaluate("window.told") == ["A run waits for you."]
    page.evaluate(HIDDEN, False)
    assert window.complaints == []


@pytest.mark.case("A6-10")
def test_pages_of_a_growing_list_show_each_run_once(window: Window):
    first = [make_run(task=f"run {number}").pk for number in range(130)]
    page = window.page()
    page.goto("/")
    seen: list[str] = []
    while True:
        seen += page.locator(".run-row").evaluate_all("rows => rows.map((row) => row.dataset.run)")
        for number in range(3):
            write(make_run(task=f"late {number}"), TurnStarted(), turn=1)
        write(Run.objects.get(pk=first[number]), TurnStarted(), turn=number + 1)
        older = page.locator("a[rel=next]:visible")
        if not older.count():
            break
        older.click()
        page.wait_for_load_state("load")
    assert [pk for pk in seen if pk in first] == first[::-1] and len(seen) == len(set(seen))
