"""Every page by axe, dark and light: the pages are those of the URL table, so that a new one cannot be forgotten.

A route whose parts the scene does not know, or that answers with an error, fails here.
"""

from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from django.test import Client
from playwright.sync_api import Page

from control.accounts.models import Role, User
from tests.control.permissions import PAGES, addresses
from tests.e2e.conftest import Window
from tests.fixtures.scene import scene

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]
# Pages that are asked for with words behind them, or that show themselves otherwise with some.
WITH_WORDS = ("/?view=needs", "/?q=nothing+like+it", "/stop/?agent=nightly", "/steer/?agent=nightly", "/audit/?q=ann")
# What a route cannot be asked without.
ASKED = {"/compare/": "?a=default&b=nightly", "/changes": "?after=0", "/earlier": "?before=3"}
AXE = """(rules) => axe.run(document, { resultTypes: ["violations"], ...rules }).then((found) => found.violations
  .filter((one) => ["serious", "critical"].includes(one.impact))
  .flatMap((one) => one.nodes.slice(0, 4).map((node) => `${one.id}: ${node.target.join(" ")}: ${
    [...node.any, ...node.all].map((check) => check.message).slice(0, 2).join("; ")}`)))"""
EVERYTHING: dict[str, Any] = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
# A theme is a set of colours; all else has been looked at in the other one.
# The page of Swagger UI is another project's; what it asks for and complains of is looked at all the same.
FOREIGN = ("/api/docs",)
COLOURS: dict[str, Any] = {"runOnly": ["color-contrast", "link-in-text-block"]}
OTHER = """() => { const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark"; }"""


def html_pages(parts: dict[str, list[str]], client: Client) -> list[str]:
    """The addresses of all pages, by asking each route of the table that can be read."""
    found = []
    for route, methods in sorted(PAGES.items()):
        is_file = "." in route.rpartition("/")[2]
        if "GET" not in methods or is_file or route.startswith(("sign-in/", "metrics", "readyz")):
            continue
        for path in addresses(route, parts):
            path += next((words for end, words in ASKED.items() if path.endswith(end)), "")
            answer = client.get(path)
            good = (200, 302, 404, 410) if "<str:secret>" in route else (200, 302, 409)
            assert answer.status_code in good, f"{path}: {answer.status_code}; does the scene know its parts?"
            whole = answer["Content-Type"].startswith("text/html") and b"<html" in answer.content[:200]
            if answer.status_code == 200 and whole:
                found.append(path)
    return found


def looked_at(page: Page, path: str) -> list[str]:
    """What axe finds serious or critical in both themes."""
    page.goto(path)
    if path in FOREIGN:
        page.wait_for_load_state("networkidle")
        return []
    page.evaluate(AXE_SCRIPT)
    first = page.evaluate(AXE, EVERYTHING)
    page.evaluate(OTHER)
    return [f"{path} {fault}" for fault in [*first, *page.evaluate(AXE, COLOURS)]]


def leaves(window: Window, page: Page) -> list[str]:
    """Requests to anywhere but the page's own server, as they happen."""
    gone: list[str] = []
    page.on("request", lambda request: None if request.url.startswith(window.web.base) else gone.append(request.url))
    return gone


def test_no_page_has_a_serious_fault_complains_or_asks_elsewhere(window: Window):
    page = window.page(role=Role.ADMIN, reduced_motion="reduce")
    gone = leaves(window, page)
    page.context.add_cookies([{"name": "theme", "value": "dark", "url": window.web.base}])
    faults = looked_at(page, "/")
    shown = scene()
    asker = Client()
    asker.force_login(User.objects.get(username=Role.ADMIN.value))
    pages = [*html_pages(shown.parts, asker), f"/runs/{shown.ended}/"]
    assert len(pages) > 30
    faults += [fault for path in (*pages, *WITH_WORDS) for fault in looked_at(page, path)]
    assert window.complaints == [] and gone == []
    page.context.clear_cookies(name="sessionid")
    faults += looked_at(page, "/sign-in/")
    for path in ("/sign-in/made-up/", "/nowhere/"):
        faults += looked_at(page, path)
    # What a browser writes by itself about an answer that is no 200.
    assert [line for line in window.complaints if "status of 4" not in line] == [] and gone == []
    assert faults == []
