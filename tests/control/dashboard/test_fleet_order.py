"""What the fleet's address may say about its order; the order itself is looked at in a browser."""

import pytest
from django.test import Client

from control.dashboard.fleet_order import COLUMNS, order_from
from tests.control.dashboard.pages import page
from tests.control.records import make_run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("sign", ["", "-"])
def test_every_column_sorts_and_pages(operator: Client, monkeypatch: pytest.MonkeyPatch, column: str, sign: str):
    monkeypatch.setattr("control.dashboard.fleet_rows.PAGE", 2)
    made = [make_run(task=f"Run {number}", rung=("stop", None)[number % 2]).pk for number in range(5)]
    seen: list[str] = []
    path = f"/?sort={sign}{column}&q=Run"
    for _ in range(3):
        html = page(operator, path)
        seen += [word.split('"')[0] for word in html.split('data-run="')[1:]]
        path = "/" + html.split('rel="next"')[0].rpartition('href="')[2].split('"')[0].replace("&amp;", "&")
        assert "q=Run" in path or len(seen) == 5
    assert sorted(seen) == sorted(made)
    assert 'aria-sort="' in html


@pytest.mark.parametrize(
    "cursor", ["", "x", "[]", "1", '{"value":"a"}', '{"value":{},"id":"x","at":"2026-01-01T00:00:00+00:00"}', "{"]
)
def test_a_cursor_that_is_none_begins_again(operator: Client, cursor: str):
    run = make_run(task="Only one")
    assert f'data-run="{run.pk}"' in page(operator, f"/?sort=cost&cursor={cursor}")


def test_an_order_that_is_none_is_that_of_families():
    assert order_from("") is None and order_from("task__regex") is None and order_from("--cost") is None
