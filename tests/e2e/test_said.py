"""What agents and tools wrote, as it is seen: colours of terminals that can be read, Markdown laid out at choice."""

import re
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, expect

from agents import kinds
from agents.ids import new_id
from agents.kinds import CallCompleted, CallStarted
from control import plain
from control.runs import artifacts
from control.runs.models import Run
from tests.control.records import make_run, write
from tests.e2e.conftest import PHONE, Window, live
from tests.e2e.test_accessible import AXE, EVERYTHING, OTHER, leaves
from tests.e2e.test_accessible import COLOURS as COLOURS_ONLY
from tests.e2e.test_hostile_words import harmless, squeezed
from tests.fixtures.hostile import EVERY

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]
COLOURS = "\n".join(
    [f"\x1b[{code}mink {code}\x1b[0m" for code in (*range(30, 38), *range(90, 98))]
    + [f"\x1b[{ink};{ground}mink {ink} on {ground}\x1b[0m" for ink in (30, 31, 37) for ground in range(40, 48)]
    + ["\x1b[38;5;208m256\x1b[0m \x1b[38;2;250;250;10mtrue\x1b[0m \x1b[7mturned\x1b[0m", "\x1b[2J\x1b]0;title\x07end"]
)
# Of every piece of the result, how its letters stand out from what lies under them.
CONTRAST = """() => {
  const parts = (colour) => (colour.match(/[\\d.]+/g) || []).map(Number);
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => [r, g, b].map((v) => linear(v / 255))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (node) => {
    const under = parts(getComputedStyle(node).backgroundColor);
    return under.length === 4 && under[3] === 0 ? ground(node.parentElement) : under;
  };
  return [...document.querySelectorAll(".result span")].map((node) => {
    const [high, low] = [light(parts(getComputedStyle(node).color)), light(ground(node))].sort((a, b) => b - a);
    return [node.textContent, node.className, (high + 0.05) / (low + 0.05)];
  });
}"""
ANSWER = """## Found it

It **rounds** twice, see [the issue](https://issues.example/7):

1. each line
2. the sum

| line | sum |
|---|---|
| 3 | 4.01 |

```py
round(x)
```
![chart](https://charts.example/c.png?d=1)"""
COLOUR = "node => getComputedStyle(node).color"


def ran(run: Run, result: str, **more: Any) -> str:
    call, name = new_id(), "run_command"
    write(run, CallStarted(operation="execute_tool", name=name, args="{}"), turn=1, call=call)
    done = CallCompleted(operation="execute_tool", name=name, status="ok", result=result, cost_source="none", **more)
    write(run, done, turn=1, call=call)
    return call


def said(run: Run, text: str, turn: int = 1) -> None:
    call = new_id()
    write(run, CallStarted(operation="chat", name="m", model="m"), turn=turn, call=call)
    done = CallCompleted(operation="chat", name="m", status="ok", text=text, cost_source="none")
    write(run, done, turn=turn, call=call)


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_colours_of_terminals_are_seen_and_can_be_read(window: Window):
    run = make_run(task="Colours")
    call = ran(run, COLOURS)
    phone: dict[str, Any] = {"size": PHONE, "has_touch": True, "is_mobile": True}
    for theme, more in (("dark", {}), ("light", phone)):
        page = window.page(**more)
        page.context.add_cookies([{"name": "theme", "value": theme, "url": window.web.base}])
        for path in (f"/runs/{run.pk}/", f"/runs/{run.pk}/calls/{call}/"):
            page.goto(path)
            page.locator("#turns details").evaluate_all("all => all.forEach((one) => (one.open = true))")
            if "calls" not in path:
                page.locator("[data-whole]").click()
                expect(page.locator("[data-whole]")).to_have_count(0)
            found = page.evaluate(CONTRAST)
            assert len(found) > 40
            assert [piece for piece in found if piece[2] < 4.5] == [], theme
            assert page.locator(".result").inner_text().strip() == plain.visible(COLOURS)
            assert "⟨OSC 0;title⟩end" in page.locator(".result").inner_text() and fits(page)
        red, green = (page.locator(f".result .in-{hue}").first.evaluate(COLOUR) for hue in ("red", "green"))
        assert red != green
    assert window.complaints == []


def test_a_large_result_comes_slice_by_slice(window: Window):
    run = make_run(task="Large")
    whole = "".join(f"\x1b[32mline {number}\x1b[0m é\n" for number in range(9_000))
    ran(run, whole[:4_000], artifact=artifacts.put(whole.encode()), truncated=True)
    page = window.page()
    page.goto(f"/runs/{run.pk}/")
    page.locator(".call summary").click()
    more = page.locator("[data-whole]")
    slices = 0
    while more.count():
        more.click()
        slices += 1
        expect(page.locator("[data-whole][aria-busy]")).to_have_count(0)
    assert slices > 2
    assert page.locator(".result").evaluate("node => node.textContent") == plain.visible(whole)
    assert window.complaints == []


def test_markdown_is_laid_out_at_choice_and_the_choice_is_kept(window: Window):
    run = make_run(task="Find it")
    said(run, "Nothing to lay out.")
    said(run, ANSWER, turn=2)
    write(run, kinds.RunCompleted(final=ANSWER))
    page = window.page()
    gone = leaves(window, page)
    page.goto(f"/runs/{run.pk}/")
    answer = page.locator(".turn .answer")
    expect(answer.locator(".as-written")).to_contain_text("[the issue](https://issues.example/7)")
    expect(answer.locator(".prose")).to_be_hidden()
    answer.get_by_role("button", name="Lay out").click()
    expect(answer.locator(".as-written")).to_be_hidden()
    expect(page.locator(".end .prose .head")).to_have_text("Found it")
    expect(answer.locator(".prose table td").first).to_have_text("3")
    link = answer.get_by_role("link", name="the issue")
    assert link.get_attribute("rel") == "noopener noreferrer nofollow" and link.get_attribute("target") == "_blank"
    expect(answer.locator(".leads").first).to_have_text("⟨https://issues.example/7⟩")
    expect(answer.locator(".prose")).to_contain_text("⟨image chart https://charts.example/c.png?d=1⟩")
    expect(answer.get_by_role("button", name="As written")).to_be_focused()
    page.goto(f"/runs/{run.pk}/")
    expect(answer.locator(".prose")).to_be_visible()
    page.keyboard.press("Tab")
    answer.get_by_role("button", name="As written").press("Enter")
    expect(answer.locator(".as-written")).to_be_visible()
    assert gone == [] and window.complaints == []


def test_the_choice_works_without_scripts_and_on_a_phone(window: Window):
    run = make_run(task="Find it")
    said(run, ANSWER)
    page = window.page(size=PHONE, has_touch=True, is_mobile=True, java_script_enabled=False)
    page.goto(f"/runs/{run.pk}/")
    page.get_by_role("button", name="Lay out").click()
    expect(page).to_have_url(re.compile(f"/runs/{run.pk}/"))
    expect(page.locator(".prose")).to_be_visible()
    assert page.locator(".prose").bounding_box()["width"] <= 390  # type: ignore[index]


def test_an_answer_that_comes_while_one_looks_is_laid_out_too(window: Window):
    run = make_run(task="Watched")
    page = window.page()
    page.context.add_cookies([{"name": "prose", "value": "laid", "url": window.web.base}])
    live(page, f"/runs/{run.pk}/")
    said(run, ANSWER)
    expect(page.locator(".prose .head")).to_be_visible()


@pytest.mark.case("A6-04", "A6-05")
def test_hostile_words_that_are_laid_out_only_read(window: Window):
    """Each of the words as an answer of its own, so that none of them takes the form from another."""
    run = make_run(task="Words")
    for number, word in enumerate(EVERY):
        said(run, f"**{number}**\n\n{word}", turn=number // 6 + 1)
    page = window.page()
    page.context.add_cookies([{"name": "prose", "value": "laid", "url": window.web.base}])
    gone = leaves(window, page)
    page.goto(f"/runs/{run.pk}/")
    seen = harmless(page, "laid out")
    assert page.locator(".prose:visible").count() > 100
    for word in EVERY:
        if word.isprintable() and not re.search(r"[\[\]*_`~#<>|\\&]", word):
            assert squeezed(plain.visible(word))[:60] in seen
    assert gone == [] and window.complaints == []


def test_what_opens_on_the_page_of_a_run_is_accessible_too(window: Window):
    run = make_run(task="Find it")
    call = ran(run, COLOURS)
    said(run, ANSWER, turn=2)
    page = window.page()
    page.goto(f"/runs/{run.pk}/")
    page.get_by_role("searchbox", name="Find in this run").fill("rounds")
    page.keyboard.press("Enter")
    expect(page.locator(".hits mark").first).to_have_text("rounds")
    page.get_by_role("button", name="Lay out").first.click()
    page.locator(".call summary").click()
    page.locator("#copy-menu summary").click()
    for path in ("", f"/runs/{run.pk}/calls/{call}/", f"/runs/{run.pk}/find?q=rounds", "/?sort=-cost"):
        if path:
            page.goto(path)
        page.evaluate(AXE_SCRIPT)
        found = page.evaluate(AXE, EVERYTHING)
        page.evaluate(OTHER)
        assert found + page.evaluate(AXE, COLOURS_ONLY) == [], path
