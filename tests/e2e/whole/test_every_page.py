"""Every page at the desk and on a phone: nothing overflows, nothing fails unseen, nothing is fetched from elsewhere."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.e2e.whole.house import House
from tests.e2e.whole.run_page import is_live, overflow
from tests.e2e.whole.visits import DESK, PHONE, Visits

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
NARROW = {"viewport": {"width": 820, "height": 1180}}
# Each menu opened in turn: which of them reach beyond the edges of the window.
MENUS_BEYOND = """() => [...document.querySelectorAll("details.menu")].filter((menu) => {
  if (!menu.checkVisibility()) return false;
  menu.open = true;
  const { left, right, width } = (menu.querySelector(".menu-items") || menu).getBoundingClientRect();
  const beyond = width && (left < 0 || right > document.documentElement.clientWidth);
  menu.open = false;
  return beyond;
}).map((menu) => menu.id)"""
SIZES = {"desk": {"viewport": DESK}, "tablet": NARROW, "phone": PHONE}


async def _fits(page: Page, path: str) -> None:
    await page.goto(path)
    await expect(page.locator("main")).to_be_visible()
    if await page.locator("#badge").count():
        await is_live(page)
    assert await overflow(page) == [], path
    assert await page.evaluate(MENUS_BEYOND) == [], path


@pytest.mark.parametrize("size", SIZES)
async def test_every_page_fits_and_keeps_to_itself(visits: Visits, house: House, size: str) -> None:
    visits.expect("status of 40[04]")
    asking = await house.start("tour", "A tour that waits for its answer", labels={"size": size})
    lost = await house.start("tour", "Nobody listens there", base_url="http://127.0.0.1:9/v1")
    try:
        await _all_fit(visits, house, SIZES[size], asking, lost)
    finally:
        for run in (asking, lost):
            await house.call("POST", f"/api/runs/{run}/interrupt", {})


async def _all_fit(visits: Visits, house: House, profile: dict[str, Any], asking: str, lost: str) -> None:
    eight = await house.start("batch", "Do eight things at once")
    await house.reach(asking, "waiting")
    await house.reach(eight, "completed")
    page = await visits.open("/", **profile)
    shell = next(e["call"] for e in await house.events(eight) if e["data"].get("name") == "run_command")
    paths = ["/", "/?view=needs", "/?q=nothing+like+it", "/runs/new/", f"/runs/{asking}/", f"/runs/{asking}/interrupt"]
    for path in [*paths, f"/runs/{eight}/", f"/runs/{eight}/calls/{shell}/", f"/runs/{lost}/", "/runs/nowhere/"]:
        await _fits(page, path)
    policies = ["", "default/", "strict/versions/", "strict/edit/", "-/new/?copy=default", "-/compare/?a=strict&b=off"]
    admin = await visits.open("/", who="ada", **profile)
    agents = [
        "",
        "default/",
        "default/versions/",
        "default/edit/",
        "-/new/?copy=default",
        "-/compare/?a=default&b=default",
    ]
    rooms = ["/inbox/", "/workers/", "/credentials/", "/audit/", "/account/", "/styleguide"]
    theirs = [*(f"/policies/{path}" for path in policies), *(f"/agents/{path}" for path in agents)]
    for path in [*theirs, *rooms, f"/runs/{eight}/policy/"]:
        await _fits(admin, path)
    stranger = await visits.open("/sign-in/", who=None, **profile)
    await _fits(stranger, "/sign-in/")
    await stranger.get_by_role("button", name="Sign in").click()
    await expect(stranger.get_by_role("alert")).to_be_visible()
    assert await overflow(stranger) == []


@pytest.mark.parametrize("theme", ["Dark", "Light"])
async def test_theme_holds_from_the_first_paint(visits: Visits, theme: str) -> None:
    page = await visits.open("/runs/new/")
    await page.locator("#me-menu summary").click()
    await page.get_by_role("button", name=theme, exact=True).click()
    await expect(page.get_by_role("heading", name="Start a run")).to_be_visible()
    await expect(page.locator("html")).to_have_attribute("data-theme", theme.lower())
    await page.goto("/")
    await expect(page.locator("html")).to_have_attribute("data-theme", theme.lower())
