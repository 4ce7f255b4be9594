"""Without JavaScript: the console still starts, steers, answers and stops by plain forms."""

import pytest
from playwright.async_api import Page, expect

from tests.e2e.whole.house import House
from tests.e2e.whole.run_page import is_now, start
from tests.e2e.whole.visits import Visits

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def _seen(page: Page, house: House, run: str, status: str) -> None:
    """A page without scripts shows what was so when it was asked for."""
    await house.reach(run, status)
    await page.reload()


async def test_plain_forms_start_steer_and_answer(visits: Visits, house: House) -> None:
    page = await visits.open("/", java_script_enabled=False)
    run = await start(page, "Get the tests green", "tour")
    await expect(page.locator("#messages")).to_contain_text("Started.")
    await _seen(page, house, run, "waiting")
    await is_now(page, "Asks you")
    await page.get_by_role("textbox", name="Steer").fill("name the lighthouse")
    await page.get_by_role("button", name="Send note").click()
    await expect(page.locator("#messages")).to_contain_text("Note queued.")
    await expect(page.locator("#side-notes .receipt")).to_contain_text("name the lighthouse")
    await page.get_by_label("Your answer").fill("Leave it at that")
    await page.get_by_role("button", name="Answer", exact=True).click()
    await expect(page.locator("#messages")).to_contain_text("Answer sent.")
    await _seen(page, house, run, "completed")
    await is_now(page, "Completed")
    await expect(page.locator("#side-notes .receipt")).to_contain_text("in at turn")
    await expect(page.locator("[data-final=completed]")).to_contain_text("Noted: “name the lighthouse”")


async def test_plain_forms_interrupt(visits: Visits, house: House) -> None:
    run = await house.start("slow", "Read me the log. marker=plain")
    await house.reach(run, "running")
    page = await visits.open(f"/runs/{run}/", java_script_enabled=False)
    await page.locator("#interrupt-open").click()
    await expect(page.get_by_role("heading", name="Interrupt this run?")).to_be_visible()
    await page.get_by_label("Reason").fill("plainly")
    await page.get_by_role("button", name="Interrupt").click()
    await expect(page.locator("#messages")).to_contain_text("Stop requested.")
    await _seen(page, house, run, "interrupted")
    await expect(page.locator("#side-stop")).to_contain_text("ann: plainly")
    await expect(page.locator(".stop-count")).to_contain_text("1 of 1 stopped")
