"""The fleet sorted by its columns: as numbers, over all runs, and steady while runs end."""

import json
import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from agents import kinds
from agents.spec import Status
from control.runs.models import Run
from tests.control.records import make_run, write
from tests.e2e.conftest import PHONE, Window, live

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]
COSTS = (None, Decimal(0), Decimal("0.000004"), Decimal("0.9"), Decimal("9"), Decimal("10"), Decimal("12.5"))
SECONDS = (9, 82, 600, 6000)
IDS = "() => [...document.querySelectorAll('.run-row')].map((row) => row.dataset.run)"


def sixty() -> list[Run]:
    """Runs of every length and cost, a third of them still at work."""
    dice = random.Random(7)
    now = datetime.now(UTC)
    for number in range(66):
        cost = dice.choice(COSTS)
        goes_on = number % 3 == 0
        # Who still works ages while the pages are asked for, and must not overtake one of like length meanwhile.
        ahead = 1_080 if goes_on else 0
        begun = now - timedelta(seconds=dice.choice(SECONDS) + ahead + number / 100)
        made = make_run(task=f"Run {number}", agent=dice.choice(("Zeta", "alpha", "beta")), owner=dice.choice("abc"))
        columns: dict[str, Any] = {
            "cost_usd": cost, "cost_unknown": cost is None, "input_tokens": dice.choice((9, 10, 82, 1_000)),
            "errors": dice.choice((0, 9, 10, 82)), "turns": dice.choice((2, 9, 10)), "started_at": begun,
            "last_activity_at": now - timedelta(seconds=number), "status": Status.RUNNING.value,
        }  # fmt: skip
        if not goes_on:
            ended = min(now, begun + timedelta(seconds=dice.choice(SECONDS)))
            columns |= {"status": Status.COMPLETED.value, "finished_at": ended}
        Run.objects.filter(pk=made.pk).update(**columns)
    return list(Run.objects.all())


def took(run: Run, now: datetime) -> float:
    assert run.started_at
    return ((run.finished_at or now) - run.started_at).total_seconds()


def pages(page: Page) -> list[str]:
    """The runs in their order, over all pages."""
    found: list[str] = []
    while True:
        found += page.evaluate(IDS)
        older = page.get_by_role("link", name="Older runs")
        if not older.is_visible():
            return found
        with page.expect_navigation():
            older.click()


@pytest.mark.case("A6-12")
def test_columns_sort_as_numbers_over_all_pages_with_the_unknown_last(window: Window):
    runs = {run.pk: run for run in sixty()}
    now = datetime.now(UTC)
    keys: dict[str, Any] = {
        "Cost": lambda run: run.cost_usd,
        "Tokens": lambda run: run.input_tokens + run.output_tokens,
        "Errors": lambda run: run.errors,
        "Turn": lambda run: run.turns,
        "Started": lambda run: took(run, now),
        "Idle": lambda run: None if run.finished_at else -run.last_activity_at.timestamp(),
    }
    page = window.page()
    for word, key in keys.items():
        page.goto("/")
        for sort in ("descending", "ascending"):
            with page.expect_navigation():
                page.locator("th").get_by_role("link", name=word).click()
            expect(page.locator(f"th[aria-sort={sort}]")).to_have_text(word)
            found = pages(page)
            assert len(found) == 66 and set(found) == set(runs), word
            values = [key(runs[pk]) for pk in found]
            known = [value for value in values if value is not None]
            assert values == known + [None] * (66 - len(known)), word
            assert known == sorted(known, reverse=sort == "descending"), word
            page.goto(page.url.partition("&cursor")[0])
    page.goto("/?sort=-cost")
    first, last = page.locator(".run-row").first, page.locator(".run-row").last
    expect(first.locator(".c-cost")).to_contain_text("$12.50")
    page.get_by_role("link", name="Older runs").click()
    expect(last.locator(".c-cost")).to_contain_text("unknown")
    assert window.complaints == []


@pytest.mark.case("A6-12")
def test_the_order_holds_while_runs_end(window: Window):
    runs = {run.pk: run for run in sixty()}
    page = window.page()
    live(page, "/?sort=-took&q=Run")
    before = page.evaluate(IDS)
    working = [pk for pk in before if runs[pk].finished_at is None][:2]
    for pk in working:
        run = runs[pk]
        write(run, kinds.RunCompleted(final="done"))
        # The log of these runs does not tell of their start, which only their rows have.
        Run.objects.filter(pk=pk).update(started_at=run.started_at)
        expect(page.locator(f'#run-{pk}[data-status="completed"]')).to_be_visible()
    assert page.evaluate(IDS) == before, "rows are patched where they stand"
    found = pages(page)
    assert sorted(found) == sorted(runs), "each run once, though two have ended between the pages"
    asked_at = datetime.fromisoformat(json.loads(parse_qs(urlsplit(page.url).query)["cursor"][0])["at"])
    assert found == sorted(runs, key=lambda pk: (took(runs[pk], asked_at), pk), reverse=True)
    page.get_by_role("link", name="By took").click()
    assert "sort" not in page.url and "q=Run" in page.url
    assert window.complaints == []


def test_a_phone_sorts_by_the_heads_of_the_columns_too(window: Window):
    sixty()
    page = window.page(size=PHONE, has_touch=True)
    page.goto("/")
    with page.expect_navigation():
        page.locator("thead").get_by_role("link", name="Cost").tap()
    assert "sort=-cost" in page.url
    head = page.locator("th[aria-sort=descending] a")
    expect(head).to_be_in_viewport()
    box = head.bounding_box()
    assert box and box["height"] >= 44
    expect(page.locator(".run-row").first.locator(".c-cost")).to_contain_text("$12.50")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
