"""Fuses as gauges, the ladder as pips, the frozen policy by name: what the run page and the fleet tell of them."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client

from agents import kinds
from agents.policy.policies import shipped
from control.dashboard import gauges
from control.runs.models import Account, Run
from tests.control.dashboard.pages import page
from tests.control.records import make_run, write
from tests.fixtures.story import Teller

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]
TEST = {"command": "pytest -q"}
ALL = {
    "fuses": {
        "max_working_seconds": 100, "max_model_calls": 10, "max_identical_calls": 4, "max_oscillations": 2,
        "max_failures_in_a_row": 5, "max_children": 8, "max_depth": 2,
    }
}  # fmt: skip


def spec(body: dict[str, Any], version: int | None = 1, **limits: str) -> dict[str, Any]:
    given = {name: {"value": value, "source": "policy"} for name, value in limits.items()}
    return {"policy_body": body, "policy_version": version, "limits": given}


def fuses(run: Run) -> dict[str, gauges.Fuse]:
    run.refresh_from_db()
    family = list(Run.objects.filter(root=run.root).order_by("path"))
    return {fuse.name: fuse for fuse in gauges.all_fuses(run, datetime.now(UTC), family)}


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def turn(teller: Teller, *results: tuple[str, str], args: dict[str, Any] = TEST) -> None:
    """One turn that asks for the same command as often as there are results `(status, text)`."""
    for call, (status, text) in zip(teller.ask("Again.", [("run_command", args)] * len(results)), results, strict=True):
        teller.begin(call, "run_command", args, "unknown", 0)
        teller.finish(call, "run_command", text, status=status)


def test_every_fuse_of_the_policy_is_counted_as_the_guard_counts():
    run = make_run(spec=spec(ALL))
    teller = Teller(run=run)
    teller.start()
    turn(teller, ("error", "1 failed"), ("error", "1 failed"))
    turn(teller, ("error", "1 failed"))
    child = make_run(parent=run)
    make_run(parent=child)
    Run.objects.filter(pk=run.pk).update(children=2)
    found = fuses(run)
    used = {name: int(found[name].used or 0) for name in ALL["fuses"] if name != "max_working_seconds"}
    assert used == {
        "max_model_calls": 2, "max_identical_calls": 3, "max_oscillations": 0, "max_failures_in_a_row": 3,
        "max_children": 2, "max_depth": 2,
    }  # fmt: skip
    assert found["max_identical_calls"].what == "run_command" and not found["max_identical_calls"].near
    Account.objects.create(key=f"run:{run.pk}", calls_spent=9)
    turn(teller, ("ok", "3 passed"))
    found = fuses(run)
    assert (found["max_failures_in_a_row"].used, found["max_identical_calls"].used) == (0, 4)
    assert found["max_model_calls"].used == 9 and found["max_model_calls"].near


def test_edits_that_go_back_are_counted_by_content():
    run = make_run(spec=spec(ALL))
    teller = Teller(run=run)
    teller.start()
    for content in "abab":
        (call,) = teller.ask("Round.", [("edit_file", {"path": "m.py"})])
        edit = kinds.EditRecorded(path="m.py", before_sha256=None, sha256=content * 64, bytes=1, state="changed")
        teller.tell(edit, call=call)
        teller.finish(call, "edit_file", "ok")
    assert fuses(run)["max_oscillations"].used == 2


def test_working_time_stands_still_while_a_run_waits():
    run = make_run(spec=spec(ALL))
    teller = Teller(run=run)
    teller.start()
    began = teller.at
    teller.at += timedelta(seconds=60)
    teller.tell(kinds.RunWaiting(reason="question", text="Which?"))
    waited = teller.at
    found = fuses(run)["max_working_seconds"]
    assert found.used is not None and round(float(found.used)) == 60 and found.since is None
    teller.at += timedelta(seconds=30)
    teller.tell(kinds.RunContinued())
    found = fuses(run)["max_working_seconds"]
    assert found.since == teller.at - (waited - began)


def test_a_raised_limit_is_shown_with_its_source():
    run = make_run(spec=spec({}, max_steps="12"))
    write(run, kinds.FuseRaised(limits={"max_steps": "40", "max_cost": None}, by="ann", reason="nearly done"))
    found = fuses(run)["max_steps"]
    assert (found.limit, found.source) == (40, "raised")


def test_only_what_the_policy_sets_is_shown(operator: Client):
    run = make_run(policy="strict", spec=spec(shipped("strict"), version=3, max_steps="12", max_tokens="80000"))
    teller = Teller(run=run)
    teller.start()
    for _ in range(5):
        turn(teller, ("ok", "same"), ("ok", "same"))
    html = page(operator, f"/runs/{run.pk}/")
    side = html[html.index('id="side-fuses"') :].split("</section>")[0]
    assert "max_identical_calls" in side and "max_children" not in side and "max_working" not in side
    assert 'class="colour-waiting"' in side.split('id="fuse-max_steps"')[1].split("</dd>")[0]
    assert (
        "10 / 12" in words(side) and "gauge-warn" in side and "Identical calls run_command policy 10 / 2" in words(side)
    )
    assert f'href="/runs/{run.pk}/policy/">strict v3</a>' in html
    row = page(operator, "/")
    assert "10/12 steps" in words(row[row.index('class="run-row"') :])


def test_the_fuse_that_tripped_is_marked_and_its_card_says_what_would_help(operator: Client):
    run = make_run(spec=spec(shipped("strict"), max_steps="12"))
    told = {
        "detector": "fuses", "rule": "max_steps", "explanation": "13 tool calls of 12 allowed", "evidence": [2],
        "advice": "Raise max_steps to let a run like this go on.", "wasted_tokens": 41000, "wasted_usd": "1.07",
    }  # fmt: skip
    write(run, kinds.TurnStarted(), turn=1)
    write(run, kinds.RunTripped(step=13, fuse="max_steps", verdict=told, final="I changed the rounding and back."))
    html = page(operator, f"/runs/{run.pk}/")
    assert 'class="fuse is-tripped" id="fuse-max_steps"' in html
    card = html[html.index('data-final="tripped"') :].split("</section>")[0]
    text = words(card)
    for word in (
        "fuse max_steps at step 13",
        "13 tool calls of 12 allowed",
        "Tokens wasted 41.0 k",
        "Money wasted $1.07",
        "What would help Raise max_steps",
        "Its last words I changed the rounding",
    ):
        assert word in text, word
    assert 'href="at/2/"' in card


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"shadow": True, "ladder": {"block": 3}}, "shadow"),
        ({"rules": {"pending": {"block": 3, "shadow": True}}}, "1 in shadow"),
    ],
)
def test_a_policy_that_only_looks_on_is_marked(operator: Client, body: dict[str, Any], told: str):
    run = make_run(policy="trial", spec=spec(body))
    html = page(operator, f"/runs/{run.pk}/")
    side = words(html[html.index('id="side-fuses"') :].split("</h2>")[0])
    assert f"policy trial v1 {told}" in side


def test_a_policy_of_the_run_alone_has_a_page_too(operator: Client):
    run = make_run(policy="careful", spec=spec({"fuses": {"max_steps": 7}}, version=None))
    text = words(page(operator, f"/runs/{run.pk}/policy/"))
    assert "Policy careful frozen" in text and "It belongs to this run alone." in text and "max_steps = 7" in text
    assert words(page(operator, f"/runs/{make_run().pk}/policy/"))


def test_a_policy_that_can_no_longer_be_read_costs_the_page_nothing(operator: Client):
    run = make_run(policy="old", spec=spec({"limits": {"x": 1}, "rules": []}))
    assert "No policy any more" in page(operator, f"/runs/{run.pk}/policy/")
    assert "Fuses" in page(operator, f"/runs/{run.pk}/")
