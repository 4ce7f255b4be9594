"""Copying: "Copied." is said when it is true, also without a secure context and within dialogs; what is copied for a
shell means the same there."""

import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import orjson
import pytest
from playwright.sync_api import Page, Route, expect

from control.runs import artifacts
from control.runs.models import Run
from tests.control.records import make_run
from tests.e2e.conftest import PHONE, Window, live
from tests.e2e.test_said import ran

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser, pytest.mark.case("A6-16")]
ELSEWHERE = "http://dash.example"
TASK = 'It\'s "done" when $HOME, `id` and \\ stay:\n\tline two ’ é !x %PATH% @{a}'
KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"
# The clipboard as another program would get it: a page without a secure context cannot read it itself.
LISTEN = """() => addEventListener("paste", (event) => {
  window.pasted = event.clipboardData.getData("text/plain");
  event.preventDefault();
}, { once: true })"""


def pasted(page: Page) -> str:
    page.evaluate(LISTEN)
    page.keyboard.press("Control+V")
    return str(page.evaluate("window.pasted"))


def over_http(window: Window, **more: Any) -> Page:
    """The same server as a host of the network, without TLS: a browser gives such a page no clipboard."""
    page = window.page(**more)
    cookie = next(one for one in page.context.cookies() if one["name"] == "sessionid")
    page.context.add_cookies([{"name": "sessionid", "value": cookie["value"], "url": ELSEWHERE}])

    def serve(route: Route) -> None:
        path = route.request.url.removeprefix(ELSEWHERE)
        route.fulfill(response=route.fetch(url=f"{window.web.base}{path}"))

    page.route(f"{ELSEWHERE}/**", serve)
    return page


@contextmanager
def listener() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """A server that notes what it is sent."""
    taken: list[tuple[str, bytes]] = []

    class Taker(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            taken.append((self.headers["Authorization"], body))
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Taker)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", taken
    server.shutdown()


def menu(page: Page, word: str) -> None:
    page.locator("#copy-menu summary").click()
    page.locator("#copy-menu").get_by_role("button", name=word).click()


def test_a_page_without_a_secure_context_copies_all_the_same(window: Window):
    run = make_run(task="Copy me")
    large = "\x1b[31mred\x1b[0m ü\n" * 350_000
    ran(run, large[:2_000], artifact=artifacts.put(large.encode()), truncated=True)
    page = over_http(window)
    page.goto(f"{ELSEWHERE}/runs/{run.pk}/")
    assert page.evaluate("[isSecureContext, typeof navigator.clipboard]") == [False, "undefined"]
    menu(page, "The run's id")
    expect(page.locator("#messages")).to_contain_text("Copied.")
    assert pasted(page) == run.pk
    page.locator("#interrupt-open").click()
    page.get_by_role("dialog").get_by_role("button", name="Copy the run's id").click()
    expect(page.locator("dialog [data-copied]")).to_be_visible()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.get_by_role("link", name="Keep it running").click()
    assert pasted(page) == run.pk
    page.locator(".call summary").click()
    page.locator(".copy-all").click()
    expect(page.locator("#messages")).to_contain_text(f"Copied {len(large):,} characters.", timeout=30_000)
    assert pasted(page) == large


def test_where_nothing_may_copy_the_text_is_shown_selected(window: Window):
    run = make_run(task="Copy me")
    page = window.page(size=PHONE, has_touch=True, is_mobile=True)
    live(page, f"/runs/{run.pk}/")
    page.evaluate("""() => {
      navigator.clipboard.writeText = () => Promise.reject(new DOMException("no", "NotAllowedError"));
      document.execCommand = () => false;
    }""")
    menu(page, "The run's id")
    dialog = page.get_by_role("dialog", name="Copy it by hand")
    expect(dialog).to_be_visible()
    assert page.evaluate("getSelection().toString() || document.activeElement.value") == run.pk
    assert dialog.locator("textarea").evaluate("field => field.selectionEnd - field.selectionStart") == len(run.pk)
    assert "Copied" not in page.locator("#messages").inner_text()
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)


def test_a_start_pasted_into_a_shell_sends_the_same_bytes_and_no_key(window: Window):
    run = make_run(task=TASK, labels={"team": "it's", "api_key": KEY})
    Run.objects.filter(pk=run.pk).update(spec={"model": {"model": "m'1", "base_url": "http://127.0.0.1:9/v1"}})
    page = window.page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/runs/{run.pk}/")
    copied = {}
    for word in ("as curl", "for PowerShell"):
        menu(page, word)
        expect(page.locator("#messages .message")).to_have_text(re.compile("Copied"))
        copied[word] = str(page.evaluate("navigator.clipboard.readText()"))
        page.locator("#messages").evaluate("box => box.replaceChildren()")
    assert KEY not in str(copied)
    with listener() as (base, taken):
        line = copied["as curl"].replace(window.web.base, base)
        subprocess.run(["sh", "-c", line], check=True, env={**os.environ, "PILOTHOUSE_TOKEN": "t-1"})
    ((authorization, body),) = taken
    assert authorization == "Bearer t-1"
    # What PowerShell takes for the body: between single quotes nothing means anything but two of them in a row.
    literal = re.search(r"-Body '([^']*)'$", copied["for PowerShell"])
    assert literal and literal.group(1).isascii() and literal.group(1).encode() == body
    sent = orjson.loads(body)
    assert sent["task"] == TASK and sent["labels"]["team"] == "it's" and sent["model"] == "m'1"
    assert "$env:PILOTHOUSE_TOKEN" in copied["for PowerShell"]
    assert window.complaints == []
