"""From the form to Completed: a run that is started, watched, steered and answered by a person."""

import pytest
from playwright.async_api import expect

from tests.e2e.whole.house import House
from tests.e2e.whole.run_page import is_live, is_now, run_id, start
from tests.e2e.whole.visits import Visits

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
NOTE = "Please name the lighthouse in your summary"


async def test_tour_is_watched_steered_answered_and_completed(visits: Visits, house: House) -> None:
    page = await visits.open()
    run = await start(page, "Get the basket project's tests green", "tour", Labels="team=deck")
    await page.evaluate("window.sameDocument = true")
    await is_live(page)
    for turn in (1, 2, 3):
        await expect(page.locator(f"#turn-{turn}")).to_be_visible()
    await is_now(page, "Asks you")
    await expect(page.locator("#outline .outline-turn")).to_have_count(await page.locator("#turns .turn").count())
    await expect(page.locator(".call[data-state=ok] .call-name", has_text="edit_file")).to_be_visible()
    await expect(page.locator(".ask")).to_contain_text("Shall I add a short README")

    await page.get_by_role("textbox", name="Steer").fill(NOTE)
    await page.get_by_role("button", name="Send note").click()
    receipt = page.locator("#side-notes .receipt")
    await expect(receipt).to_contain_text(NOTE)
    assert await receipt.get_attribute("data-state") != "done"
    await expect(page.get_by_role("textbox", name="Steer")).to_have_value("")

    await page.get_by_role("button", name="Leave it at that").click()
    await is_now(page, "Completed")
    await expect(page.locator(".ask")).to_have_count(0)
    await expect(page.locator("[data-final=completed]")).to_contain_text("Your answer was “Leave it at that”")
    await expect(page.locator("[data-final=completed]")).to_contain_text(f"Noted: “{NOTE}”")
    assert await page.evaluate("window.sameDocument"), "everything came without a reload"

    (injected,) = [event for event in await house.events(run) if event["kind"] == "steer.injected"]
    shown = page.locator(f"#event-{injected['seq']}")
    await expect(shown).to_contain_text(NOTE)
    await expect(shown).to_contain_text("ann")
    await expect(receipt).to_contain_text(f"in at turn {injected['turn']}")
    await expect(page.locator(f"#turn-{injected['turn']}", has=shown)).to_be_visible()


async def test_form_refuses_and_keeps_what_was_typed(visits: Visits) -> None:
    visits.expect("400")
    page = await visits.open("/runs/new/")
    send = page.get_by_role("button", name="Start", exact=True)
    task = page.get_by_label("Task")

    await page.get_by_label("Model", exact=True).fill("tour")
    await send.click()
    await expect(page.locator(".row.bad", has=task)).to_contain_text("task")
    await expect(page.get_by_label("Model", exact=True)).to_have_value("tour")

    await task.fill("Mend it\n  and keep this indented line")
    await page.get_by_label("Model", exact=True).fill("no-such-model")
    await page.get_by_label("Labels").fill("team=deck")
    await send.click()
    await expect(page.locator(".row.bad")).to_have_count(1)
    await expect(page.locator(".row.bad")).to_contain_text("does not play 'no-such-model'")
    await expect(page.get_by_label("Model", exact=True)).to_have_value("no-such-model")

    for address in ("ftp://models.example/v1", "models.example", "file:///etc/passwd"):
        await page.get_by_label("Base URL").fill(address)
        await send.click()
        await expect(page.locator(".row.bad", has=page.get_by_label("Base URL"))).to_contain_text("http")
        await expect(page.get_by_label("Base URL")).to_have_value(address)
    await expect(task).to_have_value("Mend it\n  and keep this indented line")
    await expect(page.get_by_label("Labels")).to_have_value("team=deck")

    await page.get_by_label("Base URL").fill("")
    await page.get_by_label("Model", exact=True).fill("chat")
    await send.click()
    await is_now(page, "Completed")
    assert run_id(page)


async def test_fleet_row_moves_on_without_a_reload(visits: Visits, house: House) -> None:
    page = await visits.open("/")
    await is_live(page)
    await page.evaluate("window.sameDocument = true")
    run = await house.start("tour", "Watched from the fleet")
    row = page.locator(f"#run-{run}")
    await expect(row.locator(".c-status")).to_contain_text("Asks you")
    (ask,) = [event for event in await house.events(run) if event["kind"] == "run.waiting"]
    await house.call("POST", f"/api/runs/{run}/answer", {"call": ask["data"]["call"], "text": "Add a README"})
    await expect(row.locator(".c-status")).to_contain_text("Completed")
    assert await page.evaluate("window.sameDocument")
    await row.get_by_role("link", name="Watched from the fleet").click()
    await is_now(page, "Completed")
