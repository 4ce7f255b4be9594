"""What tests read from and do on a run's page."""

import re
from typing import Any

from playwright.async_api import Locator, Page, expect

ID = re.compile(r"/runs/([0-9a-f-]{36})/")


async def start(page: Page, task: str, model: str, **fields: str) -> str:
    """Fill the form as a person does and send it; the id of the run whose page opens."""
    await page.goto("/runs/new/")
    await page.get_by_label("Task").fill(task)
    await page.get_by_label("Model", exact=True).fill(model)
    for label, value in fields.items():
        await page.get_by_label(label.replace("_", " "), exact=True).fill(value)
    await page.get_by_role("button", name="Start", exact=True).click()
    await expect(page.locator("#run")).to_be_visible()
    return run_id(page)


def run_id(page: Page) -> str:
    found = ID.search(page.url)
    assert found, page.url
    return found.group(1)


async def is_now(page: Page, word: str) -> None:
    """The page says this state of the run."""
    await expect(page.locator("#side-status")).to_have_attribute("data-word", word)


async def is_live(page: Page) -> None:
    await expect(page.locator("#badge")).to_have_attribute("data-state", "live")


def stream(page: Page) -> Locator:
    """The text that is just coming in."""
    return page.locator(".say[data-streaming]")


async def grows(text: Locator, beyond: int = 0) -> int:
    """Wait until a text is longer than that; how long it is then."""
    await expect(text).to_have_text(re.compile(rf".{{{beyond + 1},}}", re.S))
    return len(await text.inner_text())


async def interrupt(page: Page, reason: str) -> None:
    """By the button and the dialog."""
    await page.locator("#interrupt-open").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_be_visible()
    await dialog.get_by_label("Reason").fill(reason)
    await dialog.get_by_role("button", name="Interrupt").click()
    await expect(dialog).to_be_hidden()


async def stop_steps(page: Page) -> dict[str, str]:
    """The steps of the stop that have been reached, with what is written beside each."""
    found: list[list[str]] = await page.locator(".stop-step.done").evaluate_all(
        "nodes => nodes.map(node => [node.dataset.step, node.lastElementChild.textContent.trim()])"
    )
    return dict(found)  # type: ignore[arg-type]


async def drawn(page: Page) -> list[list[Any]]:
    """Every part of the transcript and outline in the order of the page: id, seq and state."""
    found: list[list[Any]] = await page.evaluate(
        """() => [...document.querySelectorAll("#turns [id], #outline [id]")]
             .map(node => [node.id, node.dataset.seq || "", node.dataset.state || ""])"""
    )
    return found


async def overflow(page: Page) -> list[str]:
    """Elements that make the page scroll sideways."""
    found: list[str] = await page.evaluate(
        """() => {
             const wide = document.documentElement.clientWidth;
             const most = Math.max(document.documentElement.scrollWidth, document.body.scrollWidth);
             if (most <= Math.min(wide, screen.width)) return [];
             const inner = node => { for (let up = node.parentElement; up; up = up.parentElement)
               if (getComputedStyle(up).overflowX !== "visible" && up !== document.body) return true; };
             return [`${most} px on ${screen.width}`, ...[...document.querySelectorAll("body *")]
               .filter(node => node.getBoundingClientRect().right > screen.width + 1 && !inner(node))
               .slice(0, 8).map(node => `${node.localName}#${node.id}.${node.className}`)];
           }"""
    )
    return found
