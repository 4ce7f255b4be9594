"""Text from agents, tools and people is shown and never run, wherever it stands."""

from typing import Any

import pytest
from playwright.async_api import expect

from tests.e2e.whole.house import House
from tests.e2e.whole.run_page import drawn, is_live, is_now, overflow
from tests.e2e.whole.scripts import Scripts
from tests.e2e.whole.visits import PHONE, Visits
from tests.scripted_server import Response, ask_tools, say

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
EVIL = "</script><script>window.taken=1</script><img src=/taken onerror=window.taken=1><b onmouseover=x>'\"&lt;"
LONG = "x" * 400
BIDI = "safe\u202etxt.exe\u200b"


async def _answer(given: int, request: Any) -> Response:
    if given == 0:
        odd = ('"><img src=/taken onerror=taken=1>', {"path": EVIL})
        shell = ("run_command", {"command": f"cat <<'END'\n{EVIL}\n\x1b[31mred\x1b[0m {BIDI}\n{LONG}\nEND"})
        return ask_tools(shell, odd, ("clarify", {"question": f"{EVIL} {LONG}", "choices": [EVIL, "go on"]}), text=EVIL)
    return say(f"{EVIL} {BIDI} {LONG}")


async def test_hostile_text_is_shown_and_not_run(visits: Visits, house: House, scripts: Scripts) -> None:
    scripts.play("hostile", _answer)
    task = f"{EVIL}\n{BIDI} {LONG}"
    labels = {"<b>k</b>": EVIL[:60]}
    run = await house.start("hostile", task, base_url=scripts.base_url, labels=labels)
    page = await visits.open(f"/runs/{run}/")
    await is_now(page, "Asks you")
    await page.get_by_role("textbox", name="Steer").fill(f"{EVIL} {LONG}")
    await page.get_by_role("button", name="Send note").click()
    await expect(page.locator("#side-notes .receipt")).to_contain_text("<script>window.taken=1")
    shell = page.locator(".call", has=page.locator(".call-name", has_text="run_command"))
    await shell.locator("summary").click()
    await expect(shell.locator(".result")).to_contain_text(EVIL)
    await expect(shell.locator(".result")).to_contain_text("red safe⟨U+202E⟩txt.exe⟨U+200B⟩")
    await page.locator(".ask .choices button").first.click()
    await is_now(page, "Completed")

    await expect(page.locator("[data-final] .say")).to_contain_text(f"{EVIL} safe⟨U+202E⟩")
    await expect(page.locator(".note-steer .said")).to_contain_text(EVIL)
    await expect(page.locator(".task .say")).to_contain_text(EVIL)
    live = await drawn(page)
    for path in (f"/runs/{run}/", f"/runs/{run}/interrupt", "/", "/?q=%3Cscript%3Etaken%3D1%3C/script%3E"):
        await page.goto(path)
        assert await overflow(page) == []
        assert await page.evaluate("window.taken") is None
        await expect(page.locator("main img, main script, main b[onmouseover]")).to_have_count(0)
    await page.goto(f"/runs/{run}/")
    assert await drawn(page) == live

    phone = await visits.open(f"/runs/{run}/", **PHONE)
    await is_live(phone)
    assert await overflow(phone) == []
    await phone.goto("/")
    assert await overflow(phone) == []
