"""A real browser before a real web process on the test's own database."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from control.accounts.models import Role, User
from tests.control.conftest import hinted, published, quiet
from tests.control.dashboard.conftest import Web, fresh_documents, person, web

__all__ = ["fresh_documents", "hinted", "person", "published", "quiet", "web"]

DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def browser(django_db_setup: None, chromium_path: str) -> Iterator[Browser]:
    """One per module: the driver runs a loop in this thread, which no other module's tests should meet.

    The ORM is used between the driver's calls, never inside them, so Django's guard may look away.
    """
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as driver:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        made = driver.chromium.launch(executable_path=chromium_path, args=["--no-sandbox"])
        yield made
        made.close()


class Window:
    """Signed-in pages; whatever the browser complains about fails the test."""

    def __init__(self, browser: Browser, web: Web, person: Callable[..., User]) -> None:
        self.web = web
        self.complaints: list[str] = []
        self._browser = browser
        self._person = person
        self._contexts: list[BrowserContext] = []

    def page(self, *, role: Role = Role.OPERATOR, size: dict[str, int] = DESKTOP, **more: Any) -> Page:
        user = User.objects.filter(username=role.value).first() or self._person(role)
        client = Client()
        client.force_login(user)
        context = self._browser.new_context(viewport=size, base_url=self.web.base, **more)  # type: ignore[arg-type]
        cookie = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": self.web.base}
        context.add_cookies([cookie])  # type: ignore[list-item]
        context.set_default_timeout(10_000)
        self._contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda line: self.complaints.append(line.text) if line.type == "error" else None)
        return page

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@pytest.fixture
def window(browser: Browser, web: Web, person: Callable[..., User]) -> Iterator[Window]:
    made = Window(browser, web, person)
    yield made
    made.close()


def live(page: Page, path: str) -> None:
    """Open a page and wait until its socket is up."""
    page.goto(path)
    page.wait_for_selector('[data-badge][data-state="live"]')
