"""Pages as people open them: each is watched for errors in the console and for requests that leave the house."""

import re
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import Browser, BrowserContext, Page, expect

from tests.e2e.whole.house import PASSWORD, House

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
]
DESK = {"width": 1440, "height": 900}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


async def sign_in(browser: Browser, house: House, name: str) -> Any:
    """Sign in by password; the profile to go on with."""
    context = await browser.new_context(base_url=house.base)
    page = await context.new_page()
    await page.goto("/sign-in/")
    await page.get_by_label("User name").fill(name)
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page).to_have_title(re.compile("Fleet"))
    state = await context.storage_state()
    await context.close()
    return state


@dataclass(kw_only=True)
class Visits:
    """The pages of one test. `complaints` are what went wrong and nobody expected. No slots: the driver sets marks."""

    house: House
    browser: Browser
    cookies: dict[str, Any]
    complaints: list[str] = field(default_factory=list)
    _expected: list[str] = field(default_factory=list)
    _contexts: list[BrowserContext] = field(default_factory=list)

    async def open(self, path: str = "/", *, who: str | None = "ann", **profile: Any) -> Page:
        """A page in a fresh profile; `who` is signed in."""
        state = self.cookies[who] if who else None
        options = {"viewport": DESK, **profile}
        context = await self.browser.new_context(base_url=self.house.base, storage_state=state, **options)
        context.set_default_timeout(20_000)
        self._contexts.append(context)
        context.on("page", self._watch)
        page = await context.new_page()
        await page.goto(path)
        return page

    def expect(self, pattern: str) -> None:
        """Complaints that match are what this test provokes."""
        self._expected.append(pattern)

    async def close(self) -> list[str]:
        for context in self._contexts:
            await context.close()
        return [text for text in self.complaints if not any(re.search(known, text) for known in self._expected)]

    def _watch(self, page: Page) -> None:
        page.on("console", lambda line: line.type in ("error", "warning") and self._say(page, f"console: {line.text}"))
        page.on("pageerror", lambda error: self._say(page, f"error: {error}"))
        page.on("request", lambda request: self._origin(page, request.url))
        page.on("websocket", lambda socket: self._origin(page, socket.url))
        page.on("dialog", lambda dialog: self._say(page, f"dialog: {dialog.message}"))
        page.on("crash", lambda _: self._say(page, "crashed"))

    def _say(self, page: Page, text: str) -> None:
        self.complaints.append(f"{page.url} {text}")

    def _origin(self, page: Page, url: str) -> None:
        if url.replace("ws://", "http://", 1).split("?")[0].startswith(f"{self.house.base}/"):
            return
        self._say(page, f"request leaves the house: {url[:200]}")
