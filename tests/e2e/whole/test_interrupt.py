"""Stopping: by the dialog, a whole family, by keyboard alone, by thumb on a phone, and pressed again and again."""

import asyncio
import re

import pytest
from playwright.async_api import Page, expect

from tests.bench.stack import marked
from tests.e2e.whole.house import House, until
from tests.e2e.whole.run_page import grows, interrupt, is_live, is_now, run_id, start, stop_steps, stream
from tests.e2e.whole.visits import PHONE, Visits

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
STEPS = ["requested", "delivered", "stopping", "stopped"]
# Writes down every state of the stop that the page has shown.
RECORD = """() => {
  window.stops = [];
  const look = () => {
    const now = document.getElementById("side-stop")?.dataset.stop.trim();
    if (now && now !== window.stops.at(-1)) window.stops.push(now);
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, attributes: true });
}"""


async def test_stream_is_cut_and_every_step_is_shown(visits: Visits, house: House) -> None:
    page = await visits.open()
    run = await start(page, "Read me the log of the night watch. marker=cut", "slow")
    await page.evaluate(RECORD)
    length = await grows(stream(page))
    await grows(stream(page), length)
    await expect(page.locator("#side-cuts")).to_have_text("cuts 1 stream")

    await interrupt(page, "wrong watch")
    await is_now(page, "Interrupted")
    await expect(page.locator("#side-stop")).to_have_attribute("data-stop", re.compile("stopped"))
    assert list(await stop_steps(page)) == STEPS
    assert all(re.search(r"\d", told) for told in (await stop_steps(page)).values())
    await expect(page.locator("#side-stop")).to_contain_text("ann: wrong watch")
    await expect(page.locator(".stop-count")).to_have_text(re.compile(r"1 of 1 stopped\s+in [\d.]+ m?s\s+verified"))
    await expect(page.locator(".stop-ended")).to_have_text("1 stream cut")
    await expect(page.locator("[data-final=interrupted]")).to_contain_text("verified")
    shown = await page.evaluate("window.stops")
    assert all(STEPS[: len(state.split())] == state.split() for state in shown), shown

    (request,) = await house.requests("cut")
    assert request["how"] == "client_gone"
    assert (await house.run(run))["status"] == "interrupted"
    await expect(page.locator("#interrupt-open")).to_have_attribute("aria-disabled", "true")


async def test_family_of_three_ends_with_all_its_processes(visits: Visits, house: House) -> None:
    # Naps of a minute: with short ones a stop may come between two of them, when there is nothing to end.
    run = await house.start("family", "Let two sub-agents work. seconds=1200 marker=kin")
    page = await visits.open(f"/runs/{run}/")
    await expect(page.locator("#side-family .kin")).to_have_count(3)
    runs = [str(await node.get_attribute("id")).removeprefix("kin-") for node in await page.locator(".kin").all()]
    children = [other for other in runs if other != run]

    async def napping() -> bool:
        return all([len(await asyncio.to_thread(marked, child)) >= 3 for child in children])

    await until(napping, "both children keep processes")
    await expect(page.locator("#side-cuts")).to_contain_text("stops 2 sub-agents")
    await expect(page.locator("#side-cuts")).to_contain_text("kills 2 process trees")

    await interrupt(page, "enough naps")
    await is_now(page, "Interrupted")
    await expect(page.locator(".stop-count")).to_have_text(re.compile(r"3 of 3 stopped\s+in [\d.]+ m?s\s+verified"))
    assert [len(marked(one)) for one in runs] == [0, 0, 0]
    # Each child keeps a shell, two loops and their naps.
    ended = re.search(r"(\d+) processes ended", await page.locator(".stop-ended").inner_text())
    assert ended and int(ended.group(1)) >= 6
    assert [(await house.run(one))["status"] for one in runs] == ["interrupted"] * 3
    for node in await page.locator(".kin").all():
        await expect(node).to_contain_text("interrupted")
    for child in children:
        await page.goto(f"/runs/{child}/")
        await is_now(page, "Interrupted")
        await expect(page.locator("#side-stop")).to_contain_text("ann: enough naps")
        await expect(page.locator(".stop-count")).to_contain_text("3 of 3 stopped")
        await expect(page.locator("[data-final=interrupted]")).to_be_visible()


async def test_five_presses_are_one_stop(visits: Visits, house: House) -> None:
    run = await house.start("slow", "Read me the log. marker=five")
    page = await visits.open(f"/runs/{run}/")
    await grows(stream(page))
    await page.locator("#interrupt-open").click()
    await page.evaluate("for (let n = 0; n < 5; n++) document.getElementById('interrupt-confirm').form.requestSubmit()")
    await is_now(page, "Interrupted")
    await expect(page.locator(".stop-count")).to_contain_text("1 of 1 stopped")
    kinds = [event["kind"] for event in await house.events(run)]
    assert kinds.count("run.interrupted") == 1 and kinds[-1] == "run.interrupted"
    assert kinds.count("command.received") == 1
    await expect(page.locator("#messages .error")).to_have_count(0)


async def _tab_to(page: Page, selector: str) -> None:
    """Tab until the focus is there, as somebody without a mouse does."""
    for _ in range(80):
        if await page.evaluate("wanted => document.activeElement?.matches(wanted)", selector):
            return
        await page.keyboard.press("Tab")
    raise AssertionError(f"{selector} is not reached by Tab")


async def test_keyboard_alone_starts_watches_and_interrupts(visits: Visits, house: House) -> None:
    page = await visits.open()
    keys = page.keyboard
    await _tab_to(page, "nav a[href='/runs/new/']")
    await keys.press("Enter")
    await expect(page).to_have_url(re.compile("/runs/new/"))
    await _tab_to(page, "#id_task")
    await keys.type("Read the log. marker=keys")
    await _tab_to(page, "#id_model")
    await keys.type("slow")
    await _tab_to(page, "#start-send")
    await keys.press("Enter")
    await is_now(page, "Running")
    run = run_id(page)
    await grows(stream(page))

    await keys.press("s")
    await expect(page.get_by_role("textbox", name="Steer")).to_be_focused()
    await keys.type("i am typing, this opens nothing")
    await expect(page.get_by_role("dialog")).to_be_hidden()
    await keys.press("Escape")
    await keys.press("i")
    await expect(page.get_by_label("Reason")).to_be_focused()
    await keys.press("Escape")
    await expect(page.get_by_role("dialog")).to_be_hidden()
    await is_now(page, "Running")
    await keys.press("i")
    await keys.type("by hand")
    await keys.press("Enter")
    await is_now(page, "Interrupted")
    await expect(page.locator("#side-stop")).to_contain_text("ann: by hand")

    await page.goto("/")
    await keys.press("j")
    await expect(page.locator(".task-link").first).to_be_focused()
    await keys.press("/")
    await expect(page.locator("#q")).to_be_focused()
    await keys.type("marker=keys")
    await keys.press("Enter")
    await expect(page.locator(".run-row")).to_have_count(1)
    await keys.press("j")
    await keys.press("Enter")
    await expect(page).to_have_url(re.compile(run))


async def test_thumb_stops_a_run_on_a_phone(visits: Visits, house: House) -> None:
    run = await house.start("slow", "Read me the log. marker=thumb")
    page = await visits.open("/", **PHONE)
    await page.locator(f"#run-{run} .task-link").tap()
    await expect(page).to_have_url(re.compile(run))
    await is_live(page)
    await grows(stream(page))
    button = page.locator(".thumb").get_by_text("Interrupt")
    await expect(button).to_be_visible()
    box = await button.bounding_box()
    assert box and box["height"] >= 44 and box["y"] > 844 / 2 and box["y"] + box["height"] <= 844
    await button.tap()
    confirm = page.locator("#interrupt-confirm")
    await expect(confirm).to_be_visible()
    box = await confirm.bounding_box()
    assert box and box["height"] >= 44
    await confirm.tap()
    await is_now(page, "Interrupted")
    await expect(page.locator(".stop-count")).to_contain_text("1 of 1 stopped")
    await expect(page.locator(".stop-count")).to_be_in_viewport()
    await expect(button).to_have_attribute("aria-disabled", "true")
