"""Getting in: the printed link, the password form, and what a viewer may not do."""

import re

import pytest
from playwright.async_api import expect

from tests.e2e.whole.house import PASSWORD, House
from tests.e2e.whole.run_page import is_now
from tests.e2e.whole.visits import Visits

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_printed_link_signs_in_once(visits: Visits, house: House) -> None:
    page = await visits.open(house.link, who=None)
    await expect(page).to_have_title("Fleet · Pilothouse")
    await expect(page.locator("#me-menu summary")).to_contain_text("admin")

    visits.expect("410")
    second = await visits.open(house.link, who=None)
    await expect(second.get_by_role("heading")).to_have_text("This link has been used or is too old")
    await second.get_by_role("link", name="Sign in with a password").click()
    await expect(second.get_by_label("User name")).to_be_focused()


async def test_wrong_password_is_told_and_the_name_kept(visits: Visits) -> None:
    visits.expect("400")
    page = await visits.open("/runs/new/", who=None)
    await page.get_by_label("User name").fill("ann")
    await page.get_by_label("Password").fill("not this one")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("do not belong together")
    await expect(page.get_by_label("User name")).to_have_value("ann")

    await page.get_by_label("Password").fill(PASSWORD)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Start a run")).to_be_visible()


async def test_signing_out_ends_the_live_page_too(visits: Visits, house: House) -> None:
    page = await visits.open("/sign-in/?next=//elsewhere.example/", who=None)
    await page.get_by_label("User name").fill("ann")
    await page.get_by_label("Password").fill(PASSWORD)
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{house.base}/")
    await page.locator("#me-menu summary").click()
    await page.get_by_role("button", name="Sign out").click()
    await expect(page).to_have_url(re.compile("/sign-in/"))
    await page.goto("/")
    await expect(page).to_have_url(re.compile("/sign-in/"))


async def test_viewer_sees_everything_and_may_act_on_nothing(visits: Visits, house: House) -> None:
    run = await house.start("slow", "Read the log. marker=viewed")
    page = await visits.open(f"/runs/{run}/", who="vic")
    await is_now(page, "Running")
    await expect(page.locator("#turn-1")).to_be_visible()
    for node in await page.locator(".needs-operator").all():
        await expect(node).to_be_hidden()
    await page.keyboard.press("i")
    await expect(page.get_by_role("dialog")).to_be_hidden()

    token = await page.locator("#acts input[name=csrfmiddlewaretoken]").get_attribute("value")
    for verb in ("interrupt", "steer", "pause", "unpause", "answer"):
        form = {"csrfmiddlewaretoken": token or "", "note": "n", "call": "c", "text": "t", "when": "after_batch"}
        answer = await page.request.post(f"/runs/{run}/{verb}", form=form, headers={"Referer": page.url})
        assert answer.status == 403, verb
    visits.expect("403")
    await page.goto("/runs/new/")
    await expect(page.get_by_role("heading")).to_have_text("Not allowed")
    assert (await house.run(run))["status"] == "running"
    await house.call("POST", f"/api/runs/{run}/interrupt", {})
