"""What cannot work is said: a note to a finished run, a stop that comes too late, a run that is not there."""

import uuid

import pytest
from playwright.async_api import expect

from tests.e2e.whole.house import House
from tests.e2e.whole.run_page import is_live, is_now
from tests.e2e.whole.visits import Visits

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_finished_run_takes_no_notes_and_says_why(visits: Visits, house: House) -> None:
    run = await house.start("chat", "Say hello")
    await house.reach(run, "completed")
    page = await visits.open(f"/runs/{run}/")
    await is_live(page)
    await expect(page.get_by_role("button", name="Send note")).to_be_disabled()
    await expect(page.locator("#side-cuts")).to_contain_text("completed")
    await page.keyboard.press("i")
    await expect(page.get_by_role("dialog")).to_be_hidden()

    token = await page.locator("#acts input[name=csrfmiddlewaretoken]").get_attribute("value") or ""
    headers = {"Accept": "application/json", "Referer": page.url}
    form = {"csrfmiddlewaretoken": token, "note": "too late"}
    note = await page.request.post(f"/runs/{run}/steer", form=form, headers=headers)
    assert (note.status, (await note.json())["error"]["code"]) == (409, "run_finished")
    stop = await page.request.post(f"/runs/{run}/interrupt", form=form, headers=headers)
    assert (stop.status, (await stop.json())["code"]) == (200, "already_finished")
    assert (await house.run(run))["status"] == "completed"


async def test_late_note_without_scripts_is_refused_in_words(visits: Visits, house: House) -> None:
    run = await house.start("chat", "Say hello")
    await house.reach(run, "completed")
    page = await visits.open(f"/runs/{run}/", java_script_enabled=False)
    await page.get_by_role("textbox", name="Steer").fill("too late")
    await page.get_by_role("button", name="Send note").click()
    await expect(page.locator("#messages .error")).to_contain_text("The run has ended")
    await is_now(page, "Completed")


async def test_unknown_run_is_told_on_a_page_of_the_house(visits: Visits) -> None:
    visits.expect("404")
    for path in (f"/runs/{uuid.uuid4()}/", "/runs/no-such-run/", "/nowhere/"):
        page = await visits.open(path)
        await expect(page.locator(".top .brand")).to_be_visible()
        await expect(page.get_by_role("heading")).to_be_visible()
        await page.locator("main").get_by_role("link").click()
        await expect(page).to_have_title("Fleet · Pilothouse")
